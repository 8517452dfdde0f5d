/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hook `frame`: marks the first sample of each frame. Frames begin at multiples
 * of an interval of the sequence number or of the origin time.
 *
 * Intervals of time are counted from the epoch, 1970-01-01 in UTC, so that a frame
 * of 10 minutes begins at full tens of minutes, whatever was lost before.
 */
#include "gateway/plugin/hook.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/sample/time.h"
#include "util/clock.h"

enum trigger { SEQUENCE, TIMESTAMP };
static const char *const trigger_names[] = { "sequence", "timestamp", NULL };

static const char *const unit_names[] = { "milliseconds", "seconds", "minutes",
					  "hours", NULL };

/* As `unit` says it, or behind a number in `interval`. */
static const struct unit {
	const char *suffixes[4];
	uint64_t ns;
} units[] = {
	{ { "ms", "millisecond", "milliseconds" }, 1000000 },
	{ { "s", "second", "seconds", "sec" }, NSEC_PER_SEC },
	{ { "m", "minute", "minutes", "min" }, 60 * NSEC_PER_SEC },
	{ { "h", "hour", "hours" }, 3600 * NSEC_PER_SEC },
};

/* The longest interval and offset. */
#define DAYS_MAX 3650

struct frame {
	int trigger, unit_index;
	json_t *interval_value;
	double offset_given;

	uint64_t interval, offset; /* samples or ns */
	bool seen;
	int64_t frame;             /* number of that of the last sample */
};

extern const struct hook_type hook_frame;

static const struct config_key frame_keys[] = {
	{ "trigger", CONFIG_ENUM, offsetof(struct frame, trigger), "timestamp",
	  .names = trigger_names, .help = "What is counted" },
	{ "interval", CONFIG_JSON, offsetof(struct frame, interval_value),
	  .help = "Length of a frame: samples, or a time such as \"1s\" (the default); a mere number is one of milliseconds unless `unit` says more" },
	{ "unit", CONFIG_ENUM, offsetof(struct frame, unit_index), "milliseconds",
	  .names = unit_names,
	  .help = "Unit of interval and offset when the trigger is timestamp" },
	{ "offset", CONFIG_REAL, offsetof(struct frame, offset_given), "0",
	  .min = 0, .max = 1e15,
	  .help = "Where the first frame begins, in the unit of interval" },
};

static const struct unit *find_unit(const char *suffix)
{
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		for (size_t k = 0; k < ARRAY_SIZE(units[i].suffixes); k++)
			if (units[i].suffixes[k] &&
			    !strcmp(units[i].suffixes[k], suffix))
				return &units[i];
	return NULL;
}

/* The number in `interval`, and its unit in *u when it says one. */
static int parse_interval(struct hook *h, struct config *c, double *value,
			  const struct unit **u)
{
	const struct frame *f = h->private_data;
	const char *text = json_string_value(f->interval_value);
	char *end;

	*value = 1;
	if (!f->interval_value || json_is_null(f->interval_value)) {
		if (!json_object_get(h->cfg, "unit"))
			*u = find_unit("s");
		return 0;
	}
	if (json_is_number(f->interval_value)) {
		*value = json_number_value(f->interval_value);
		return 0;
	}
	if (!text)
		goto err;
	*value = strtod(text, &end);
	if (end == text || !isfinite(*value))
		goto err;
	end += strspn(end, " ");
	if (!*end)
		return 0;
	*u = find_unit(end);
	if (!*u)
		goto err;
	if (f->trigger == SEQUENCE) {
		config_fail(c, h->cfg, "interval",
			    "'%.40s' is a time, but the trigger is sequence; without `trigger` time is counted",
			    text);
		return -EINVAL;
	}
	if (json_object_get(h->cfg, "unit") && *u != &units[f->unit_index]) {
		config_fail(c, h->cfg, "unit", "contradicts the interval '%.40s'",
			    text);
		return -EINVAL;
	}
	return 0;
err:
	config_fail(c, h->cfg, "interval",
		    "expected a number, or a text such as \"500ms\", \"1s\", \"10m\" or \"1h\"");
	return -EINVAL;
}

static int parse_sequence(struct hook *h, struct config *c, double interval)
{
	struct frame *f = h->private_data;

	if (interval < 1 || interval > 1e15 || interval != floor(interval)) {
		config_fail(c, h->cfg, "interval",
			    "%.9g is out of range, expected a whole number of samples",
			    interval);
		return -EINVAL;
	}
	if (f->offset_given != floor(f->offset_given)) {
		config_fail(c, h->cfg, "offset",
			    "%.9g is no whole number of samples",
			    f->offset_given);
		return -EINVAL;
	}
	f->interval = (uint64_t)interval;
	f->offset = (uint64_t)f->offset_given % f->interval;
	return 0;
}

static int parse_time(struct hook *h, struct config *c, double interval,
		      const struct unit *u)
{
	struct frame *f = h->private_data;
	double most = DAYS_MAX * 86400.0 * (double)NSEC_PER_SEC / (double)u->ns;

	if (!(interval * (double)u->ns >= 1) || interval > most) {
		config_fail(c, h->cfg, "interval",
			    "%.9g %s is out of range, expected more than 0 and at most %.0f",
			    interval, u->suffixes[2], most);
		return -EINVAL;
	}
	if (f->offset_given > most) {
		config_fail(c, h->cfg, "offset",
			    "%.9g %s is out of range, expected at most %.0f",
			    f->offset_given, u->suffixes[2], most);
		return -EINVAL;
	}
	f->interval = (uint64_t)llround(interval * (double)u->ns);
	f->offset = (uint64_t)llround(f->offset_given * (double)u->ns) %
		    f->interval;
	return 0;
}

static int frame_parse(struct hook *h, struct config *c, json_t *cfg)
{
	struct frame *f = h->private_data;
	const struct unit *u = &units[f->unit_index];
	double interval;

	if (parse_interval(h, c, &interval, &u))
		return -EINVAL;
	if (f->trigger == TIMESTAMP)
		return parse_time(h, c, interval, u);
	if (!json_object_get(h->cfg, "unit"))
		return parse_sequence(h, c, interval);
	config_fail(c, h->cfg, "unit",
		    "is one of time, but the trigger is sequence");
	return -EINVAL;
}

static void frame_restart(struct hook *h)
{
	((struct frame *)h->private_data)->seen = false;
}

static int frame_start(struct hook *h)
{
	frame_restart(h);
	return 0;
}

/* Number of the frame; frames before 1970 have negative ones. */
static int64_t number(const struct frame *f, const struct sample *s)
{
	__int128 at = s->sequence, interval = (__int128)f->interval;

	if (f->trigger == TIMESTAMP)
		at = (__int128)s->origin.tv_sec * SAMPLE_TIME_SECOND + s->origin.tv_nsec;
	at -= (__int128)f->offset;
	return (int64_t)(at / interval - (at % interval < 0));
}

static enum hook_verdict frame_process(struct hook *h, struct sample **smp)
{
	struct frame *f = h->private_data;
	const struct sample *s = *smp;
	bool by_time = f->trigger == TIMESTAMP, begin;
	int64_t frame;

	if (!(s->flags & (by_time ? SAMPLE_HAS_ORIGIN : SAMPLE_HAS_SEQUENCE)))
		return hook_fail(h, by_time ? "a sample without origin timestamp" :
					      "a sample without sequence number");
	frame = number(f, s);
	begin = !f->seen || f->frame != frame;
	f->seen = true;
	f->frame = frame;
	if (begin == !!(s->flags & SAMPLE_NEW_FRAME))
		return HOOK_OK;
	if (!hook_own_sample(smp))
		return HOOK_SKIP;
	(*smp)->flags ^= SAMPLE_NEW_FRAME;
	return HOOK_OK;
}

const struct hook_type hook_frame = {
	.name = "frame",
	.description = "marks the first sample of each frame",
	.places = HOOK_PATH,
	.priority = 10,
	.read_only = true, /* but for the samples that begin a frame */
	.size = sizeof(struct frame),
	.keys = frame_keys,
	.key_count = ARRAY_SIZE(frame_keys),
	.parse = frame_parse,
	.start = frame_start,
	.restart = frame_restart,
	.process = frame_process,
};
