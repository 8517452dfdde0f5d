/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases from their configuration, and when they are over; see cases.h. */
#include "gateway/node/test_rtt/cases.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/signals.h"
#include "util/container_of.h"
#include "util/num.h"

#define RATE_MAX_HZ 1e7
#define COUNT_DEFAULT 1000
#define DURATION_DEFAULT_S 300.0

const char *const rtt_mode_names[] = {
	[RTT_MIN] = "min",
	[RTT_MAX] = "max",
	[RTT_STOP_AFTER_COUNT] = "stop_after_count",
	[RTT_STOP_AFTER_DURATION] = "stop_after_duration",
	[RTT_AT_LEAST_COUNT] = "at_least_count",
	[RTT_AT_LEAST_DURATION] = "at_least_duration",
	NULL,
};

#define SETTING(field) offsetof(struct rtt_settings, field)

const struct config_key rtt_setting_keys[RTT_SETTING_COUNT] = {
	{ "rates", CONFIG_JSON, SETTING(rates),
	  .help = "Samples per second, a number or a list" },
	{ "values", CONFIG_JSON, SETTING(values),
	  .help = "Values in a sample, an integer or a list" },
	{ "count", CONFIG_INT, SETTING(count), "0", .min = 0, .max = 1e15,
	  .help = "Samples to send; 1000 where neither this nor duration is given" },
	{ "limit", CONFIG_INT, SETTING(limit), "0", .min = 0, .max = 1e15,
	  .help = "Older name of count" },
	{ "duration", CONFIG_REAL, SETTING(duration_s), "0", .min = 0,
	  .max = 1e9, .help = "Seconds that samples are sent" },
	{ "warmup", CONFIG_REAL, SETTING(warmup_s), "0", .min = 0, .max = 1e9,
	  .help = "Seconds that samples are sent before they count" },
	{ "cooldown", CONFIG_REAL, SETTING(cooldown_s), "0", .min = 0,
	  .max = 1e9, .help = "Seconds of silence behind a case" },
	{ "mode", CONFIG_ENUM, SETTING(mode), "min", .names = rtt_mode_names,
	  .help = "min, max: what of count and duration is reached first, last; "
		  "stop_after_count, stop_after_duration: that one alone; "
		  "at_least_count: so many must have come back; "
		  "at_least_duration: as stop_after_duration" },
};

/* A number, or a text that holds one (from the environment). */
static bool number_of(const json_t *j, double *value)
{
	const char *text = json_string_value(j);

	if (json_is_number(j)) {
		*value = json_number_value(j);
		return true;
	}
	return text && num_parse_double(text, text + strlen(text), value) ==
			       text + strlen(text);
}

/* Entry `index` of a list; a single value is a list of one. NULL behind it. */
static const json_t *entry_of(const json_t *list, size_t index)
{
	if (json_is_array(list))
		return json_array_get(list, index);
	return index ? NULL : list;
}

static int check_numbers(struct config *c, const json_t *at, const char *key,
			 const json_t *list, double max, bool whole)
{
	const json_t *j;
	size_t i;

	for (i = 0; (j = entry_of(list, i)); i++) {
		double v;

		if (number_of(j, &v) && v > 0 && v <= max &&
		    (!whole || v == rint(v)))
			continue;
		config_fail(c, at, key,
			    whole ? "expected an integer from 1 to %.0f, or a list of them" :
				    "expected a number above 0, at most %.0f, or a list of them",
			    max);
		return -EINVAL;
	}
	if (i)
		return 0;
	config_fail(c, at, key, list ? "the list is empty" :
			    "is missing, in the case as well as on the node");
	return -EINVAL;
}

/* `limit` says the same as `count`; both are a contradiction. */
static int take_limit(struct config *c, const json_t *at, struct rtt_settings *s)
{
	if (s->limit && s->count && s->limit != s->count) {
		config_fail(c, at, "limit", "is another name of `count`, which says %lld",
			    (long long)s->count);
		return -EINVAL;
	}
	if (s->limit)
		s->count = s->limit;
	return 0;
}

/* Settings of the case come before those of the node for all cases. */
static void inherit(struct rtt_settings *s, const json_t *at,
		    const struct rtt_settings *common)
{
	struct {
		const char *key;
		size_t offset, size;
	} parts[] = {
		{ "rates", SETTING(rates), sizeof(s->rates) },
		{ "values", SETTING(values), sizeof(s->values) },
		{ "count", SETTING(count), sizeof(s->count) },
		{ "duration", SETTING(duration_s), sizeof(s->duration_s) },
		{ "warmup", SETTING(warmup_s), sizeof(s->warmup_s) },
		{ "cooldown", SETTING(cooldown_s), sizeof(s->cooldown_s) },
		{ "mode", SETTING(mode), sizeof(s->mode) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (!json_object_get(at, parts[i].key) &&
		    !(parts[i].offset == SETTING(count) && s->limit))
			memcpy((char *)s + parts[i].offset,
			       (const char *)common + parts[i].offset,
			       parts[i].size);
}

/* A mode that waits for a limit that is not set gets the default limit. */
static void complete(struct rtt_case *k)
{
	bool by_duration = k->mode == RTT_STOP_AFTER_DURATION ||
			   k->mode == RTT_AT_LEAST_DURATION;
	bool by_count = k->mode == RTT_STOP_AFTER_COUNT ||
			k->mode == RTT_AT_LEAST_COUNT;

	if (by_duration && k->duration_s == 0)
		k->duration_s = DURATION_DEFAULT_S;
	if (!by_duration && !k->count && (by_count || k->duration_s == 0))
		k->count = COUNT_DEFAULT;
}

/* Appends the cross product of one entry. */
static int add_cases(struct rtt_case **cases, unsigned *count,
		     const struct rtt_settings *s)
{
	const json_t *rate, *values;

	for (size_t r = 0; (rate = entry_of(s->rates, r)); r++) {
		for (size_t v = 0; (values = entry_of(s->values, v)); v++) {
			struct rtt_case *all =
				reallocarray(*cases, *count + 1, sizeof(*all));
			struct rtt_case *k;
			double number = 0;

			if (!all)
				return -ENOMEM;
			*cases = all;
			k = &all[(*count)++];
			*k = (struct rtt_case){
				.count = (uint64_t)s->count,
				.duration_s = s->duration_s,
				.warmup_s = s->warmup_s,
				.cooldown_s = s->cooldown_s,
				.mode = (enum rtt_mode)s->mode,
			};
			number_of(rate, &k->rate_hz);
			number_of(values, &number);
			k->values = (unsigned)number;
			complete(k);
		}
	}
	return 0;
}

/* `at` is an entry of `cases`, or the node itself when there is no such key. */
static int add_entry(struct rtt_case **cases, unsigned *count,
		     struct config *c, const json_t *at,
		     struct rtt_settings *s)
{
	if (check_numbers(c, at, "rates", s->rates, RATE_MAX_HZ, false) ||
	    check_numbers(c, at, "values", s->values, SIGNALS_MAX, true))
		return -EINVAL;
	return add_cases(cases, count, s);
}

int rtt_cases_parse(struct rtt_case **cases, unsigned *count, struct config *c,
		    json_t *cfg, const struct rtt_settings *common)
{
	json_t *list = json_object_get(cfg, "cases");
	struct rtt_settings s = *common;
	const json_t *e;
	int ret = 0;

	*cases = NULL;
	*count = 0;
	if (json_is_null(list))
		list = NULL;
	if (!list)
		ret = add_entry(cases, count, c, cfg, &s);
	for (size_t i = 0; !ret && list && (e = entry_of(list, i)); i++) {
		if (!json_is_object(e)) {
			config_fail(c, cfg, "cases",
				    "expected a group such as { rates = 1000, values = ( 1, 8 ) }, or a list of groups");
			ret = -EINVAL;
			break;
		}
		ret = config_unpack(c, e, rtt_setting_keys, RTT_SETTING_COUNT,
				    &s, NULL, 0);
		if (ret)
			break;
		ret = take_limit(c, e, &s);
		inherit(&s, e, common);
		if (ret)
			break;
		ret = add_entry(cases, count, c, e, &s);
	}
	if (!ret && !*count) {
		config_fail(c, cfg, "cases", "the list is empty");
		ret = -EINVAL;
	}
	if (!ret)
		return 0;
	free(*cases);
	*cases = NULL;
	*count = 0;
	return ret;
}

bool rtt_case_is_over(const struct rtt_case *k, uint64_t sent,
		      uint64_t received, double passed_s)
{
	bool counted = k->count && sent >= k->count;
	bool passed = k->duration_s > 0 && passed_s >= k->duration_s;

	switch (k->mode) {
	case RTT_MIN:
		return counted || passed;
	case RTT_MAX:
		return (counted || !k->count) &&
		       (passed || k->duration_s == 0);
	case RTT_STOP_AFTER_COUNT:
		return counted;
	case RTT_AT_LEAST_COUNT:
		/* A path that returns nothing would keep us here for ever. */
		return received >= k->count || passed;
	case RTT_STOP_AFTER_DURATION:
	case RTT_AT_LEAST_DURATION:
		return passed;
	}
	return true;
}
