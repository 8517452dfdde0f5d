/* SPDX-License-Identifier: BSD-2-Clause */
/* See shapes.h. The shapes themselves are in shapes_table.c, what they compare in shapes_value.c. */
#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/disturbance.h"
#include "bench/result/number.h"
#include "bench/result/shapes_private.h"
#include "bench/result/show.h"
#include "bench/result/statistics.h"
#include "util/container_of.h"

#define LEVEL 0.99 /* of many verdicts none shall be wrong by chance */
/* What a repetition of the run changes besides, such as another placement of memory: a ratio has
 * to be that far from its bound. */
#define REPEAT 1.05

/* What is said of one shape. */
struct shape_answer {
	struct shape_run *run;
	json_t *comparisons;
	char figures[400];
};

/* Appends to the figures. */
static void say(struct shape_answer *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void say(struct shape_answer *a, const char *fmt, ...)
{
	size_t n = strlen(a->figures);
	va_list args;

	va_start(args, fmt);
	vsnprintf(a->figures + n, sizeof(a->figures) - n, fmt, args);
	va_end(args);
}

/* ---- one comparison ---- */

struct ratio {
	double value, low, high; /* low, high NAN: there is no interval */
};

/* As far as the cache line's time changed in the run, so far two cases that were measured one
 * after the other differ without a reason of their own. */
static double unsteadiness(const struct shape_run *r)
{
	double ratio = number_of(r->disturbance, "floor_ratio");

	return ratio >= DISTURBANCE_FLOOR_RATIO ? ratio : 1;
}

static struct ratio ratio_with_interval(const struct shape_run *r,
					const struct shape_value *low,
					const struct shape_value *high)
{
	struct ratio ratio = { statistics_ratio(low->value, high->value), NAN, NAN };
	double *draws = low->draws && high->draws ? calloc(SHAPE_DRAWS, sizeof(*draws)) : NULL;
	/* Latencies of one case were measured together; a share is no time. */
	double wide = low->of[0] == high->of[0] || !low->counts_time ? 1 : unsteadiness(r);

	if (!draws)
		return ratio;
	for (int i = 0; i < SHAPE_DRAWS; i++)
		draws[i] = statistics_ratio(low->draws[i], high->draws[i]);
	statistics_interval(draws, SHAPE_DRAWS, LEVEL, &ratio.low, &ratio.high);
	ratio.low /= wide;
	ratio.high *= wide;
	free(draws);
	return ratio;
}

/* By the interval alone; NULL: it does not tell. The bound of "no more than" has the source's own
 * allowance in it, so that REPEAT is on its other side only. */
static const char *verdict_of(const struct ratio *r, enum shape_rule rule, double bound)
{
	switch (rule) {
	case SHAPE_ABOVE:
		return r->low > bound * REPEAT ? SHAPE_HOLDS :
		       r->high < bound / REPEAT ? SHAPE_FAILS : NULL;
	case SHAPE_AT_MOST:
		return r->high <= bound ? SHAPE_HOLDS :
		       r->low > bound * REPEAT ? SHAPE_FAILS : NULL;
	default:
		return r->low >= 1 / bound && r->high <= bound ? SHAPE_HOLDS :
		       r->low > bound * REPEAT || r->high < 1 / (bound * REPEAT) ? SHAPE_FAILS :
										   NULL;
	}
}

/* Of a case that was too short to tell, what is known of the whole run. */
static void disturbed_case(const struct shape_run *r, const struct shape_value *v, char *reason,
			   size_t size)
{
	for (size_t i = 0; i < SHAPE_CASES && v->of[i] && !*reason; i++) {
		const json_t *o = json_object_get(v->of[i]->summary, "disturbance");
		bool known = json_is_number(json_object_get(o, "others_percent"));

		disturbance_reason(known ? o : r->disturbance, known ? v->of[i]->id : "the run",
				   reason, size);
	}
}

/* Why the comparison says nothing on this machine; "" if it does. */
static void find_disturbance(const struct shape_run *r, const struct shape_value *low,
			     const struct shape_value *high, char *reason, size_t size)
{
	double missed = number_of(r->disturbance, "missed_percent");

	*reason = '\0';
	disturbed_case(r, low, reason, size);
	disturbed_case(r, high, reason, size);
	if (!*reason && missed >= DISTURBANCE_MISSED_PERCENT)
		snprintf(reason, size, "a loop that does nothing else missed %.3g %% of its steps "
			 "at 100 kHz", missed);
}

static void explain(const struct shape_run *r, const struct ratio *ratio,
		    enum shape_rule rule, double bound, char *reason, size_t size)
{
	static const char *const rules[] = { "more than", "no more than", "within a factor of" };
	size_t n;

	if (isnan(ratio->low)) {
		snprintf(reason, size, "the run keeps no single values, so there is no interval");
		return;
	}
	snprintf(reason, size, "the interval of the ratio, %.3g to %.3g, does not tell whether it "
		 "is %s %.3g", ratio->low, ratio->high, rules[rule], bound);
	n = strlen(reason);
	if (unsteadiness(r) > 1)
		snprintf(reason + n, size - n, "; a cache line took up to %.3g times as long "
			 "as at best", unsteadiness(r));
}

static json_t *side(const struct shape_value *v)
{
	return json_pack("{s:s, s:s, s:o}", "case", v->of[0]->id, "value_of", v->key, "value",
			 number_json(v->value));
}

static void add_comparison(struct shape_answer *a, const char *what, json_t *low, json_t *high,
			   const struct ratio *ratio, const char *verdict, const char *reason)
{
	json_array_append_new(a->comparisons, json_pack(
		"{s:s, s:o*, s:o*, s:o, s:o, s:o, s:s, s:o}", "what", what, "low", low, "high",
		high, "ratio", number_json(ratio->value), "ratio_low", number_json(ratio->low),
		"ratio_high", number_json(ratio->high), "verdict", verdict, "reason",
		*reason ? json_string(reason) : json_null()));
}

static void say_ratio(struct shape_answer *a, const char *what, const struct shape_value *low,
		      const struct shape_value *high, const struct ratio *ratio)
{
	char one[32], other[32];

	say(a, "%s%s%s", *a->figures ? "; " : "", what, *what ? " " : "");
	if (low->is_time && high->is_time)
		say(a, "%s and %s", show_ns(low->value, one), show_ns(high->value, other));
	else
		say(a, "%.3g and %.3g", low->value, high->value);
	if (isfinite(ratio->value))
		say(a, isnan(ratio->low) ? " (%.2f times)" : " (%.2f times, %.2f to %.2f)",
			  ratio->value, ratio->low, ratio->high);
}

static void compare(struct shape_answer *a, const char *what, const struct shape_value *low,
		    const struct shape_value *high, const struct shape_row *row)
{
	const char *verdict;
	char reason[300];
	struct ratio ratio;

	if (!low || !high)
		return;
	ratio = ratio_with_interval(a->run, low, high);
	find_disturbance(a->run, low, high, reason, sizeof(reason));
	verdict = *reason ? NULL : verdict_of(&ratio, row->rule, row->bound);
	if (!verdict && !*reason)
		explain(a->run, &ratio, row->rule, row->bound, reason, sizeof(reason));
	say_ratio(a, what, low, high, &ratio);
	add_comparison(a, what, side(low), side(high), &ratio, verdict ? verdict : SHAPE_OPEN,
		       reason);
}

static void count(struct shape_answer *a, const char *what, double is, const struct shape_row *row)
{
	const struct ratio ratio = { is / row->bound, NAN, NAN };
	bool holds = fabs(is - row->bound) <= row->tolerance * row->bound;

	if (isnan(is))
		return;
	say(a, "%s%s %.2f", *a->figures ? "; " : "", what, is);
	add_comparison(a, what, NULL, NULL, &ratio, holds ? SHAPE_HOLDS : SHAPE_FAILS, "");
}

/* ---- one row ---- */

/* The text with `word` in the place of '*'. */
static const char *with_word(const char *text, const char *word, char out[200])
{
	const char *star = text ? strchr(text, '*') : NULL;

	snprintf(out, 200, "%.*s%s%s", star ? (int)(star - text) : 199, text ? text : "",
		 star ? word : "", star ? star + 1 : "");
	return out;
}

static const struct shape_value *term(struct shape_run *r, const struct shape_term *t,
				      const char *word)
{
	const char *slash = strchr(t->scenario, '/');
	const struct shape_value *v;
	char wanted[200], first[40];

	with_word(t->wanted, word, wanted);
	snprintf(first, sizeof(first), "%.*s", (int)strcspn(t->scenario, "/"), t->scenario);
	v = shape_value(r, first, t->latency, t->key, wanted);
	return slash ? shape_ratio(r, v, shape_value(r, slash + 1, t->latency, t->key, wanted)) : v;
}

static void look_at(struct shape_answer *a, const struct shape_row *row, const char *word)
{
	const struct shape_value *low, *high;
	char what[200], wanted[200];

	with_word(row->what, word, what);
	if (row->rule == SHAPE_COUNT) {
		count(a, what, shape_figure(a->run, row->low.scenario, row->low.key,
					    with_word(row->low.wanted, word, wanted)), row);
		return;
	}
	low = term(a->run, &row->low, word);
	high = term(a->run, &row->high, word);
	if (row->rule != SHAPE_SAID)
		compare(a, what, low, high, row);
	else if (low && high)
		say(a, "%s%s %.1f times infiniband", *a->figures ? "; " : "", word,
		    high->value / low->value);
}

/* Lowest and highest of the values that a sweep has. */
struct range {
	const struct shape_value *low, *high;
	int count;
};

static void widen(struct range *r, const struct shape_value *v)
{
	if (!v)
		return;
	r->low = r->low && r->low->value <= v->value ? r->low : v;
	r->high = r->high && r->high->value >= v->value ? r->high : v;
	r->count++;
}

static void look(struct shape_answer *a, const struct shape_row *row)
{
	struct range range = { .count = 0 };
	char word[40];

	for (const char *at = row->each ? row->each : ""; at; at = strchr(at, '|')) {
		at += *at == '|';
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(at, "|"), at);
		if (row->range)
			widen(&range, term(a->run, &row->low, word));
		else
			look_at(a, row, word);
	}
	if (range.count > 1)
		compare(a, row->what, range.low, range.high, row);
}

/* ---- one shape ---- */

/* The first comparison with that verdict. */
static const json_t *find_verdict(const json_t *comparisons, const char *verdict)
{
	const json_t *one;
	size_t i;

	json_array_foreach(comparisons, i, one)
		if (!strcmp(text_of(one, "verdict"), verdict))
			return one;
	return NULL;
}

/* One that fails is enough for not holding, and one that is open for not deciding. */
static const json_t *deciding(const json_t *comparisons)
{
	static const char *const order[] = { SHAPE_FAILS, SHAPE_OPEN, SHAPE_HOLDS };
	const json_t *one = NULL;

	for (size_t i = 0; !one && i < ARRAY_SIZE(order); i++)
		one = find_verdict(comparisons, order[i]);
	return one;
}

static json_t *interval_of(const json_t *comparison)
{
	if (!json_is_number(json_object_get(comparison, "ratio_low")))
		return json_null();
	return json_pack("{s:O, s:O, s:O, s:O}", "what", json_object_get(comparison, "what"),
			 "ratio", json_object_get(comparison, "ratio"), "low",
			 json_object_get(comparison, "ratio_low"), "high",
			 json_object_get(comparison, "ratio_high"));
}

/* The shape that begins at the row. */
static int evaluate(struct shape_run *r, const struct shape_row *s, json_t *list)
{
	struct shape_answer a = { .run = r, .comparisons = json_array() };
	const char *verdict = SHAPE_LACKS;
	const json_t *decides, *reason;
	json_t *one;

	look(&a, s);
	for (const struct shape_row *more = s + 1; !more->claim && more->rule != SHAPE_END; more++)
		look(&a, more);
	decides = deciding(a.comparisons);
	if (decides)
		verdict = text_of(decides, "verdict");
	reason = json_object_get(decides, "reason");
	one = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:s, s:o}", "number", s->number, "claim",
			s->claim, "verdict", verdict, "holds",
			!strcmp(verdict, SHAPE_HOLDS) ? json_true() :
			!strcmp(verdict, SHAPE_FAILS) ? json_false() : json_null(),
			"reason", decides ? json_deep_copy(reason) :
					    json_string("the run lacks these cases"),
			"interval", interval_of(decides), "figures", a.figures, "comparisons",
			a.comparisons);
	return one && !json_array_append_new(list, one) ? 0 : -ENOMEM;
}

json_t *shapes_evaluate(const char *dir, const json_t *disturbance,
			const struct result_read *cases, size_t count)
{
	struct shape_run r = { .dir = dir, .disturbance = disturbance, .cases = cases,
			       .count = count };
	json_t *list = json_array();
	int ret = 0;

	for (const struct shape_row *s = shapes_table; !ret && s->rule != SHAPE_END; s++)
		if (s->claim)
			ret = evaluate(&r, s, list);
	shape_values_free(&r);
	if (!ret)
		return list;
	json_decref(list);
	return NULL;
}

void shapes_print(FILE *f, const json_t *shapes, bool all)
{
	size_t i, missing = 0;
	const json_t *s;

	json_array_foreach(shapes, i, s) {
		const char *reason = text_of(s, "reason");

		if (!strcmp(text_of(s, "verdict"), SHAPE_LACKS) && !all) {
			missing++;
			continue;
		}
		fprintf(f, "%-18s %-3s %s\n", text_of(s, "verdict"), text_of(s, "number"),
			text_of(s, "claim"));
		if (*text_of(s, "figures"))
			fprintf(f, "%22s %s\n", "", text_of(s, "figures"));
		if (*reason)
			fprintf(f, "%22s because %s\n", "", reason);
	}
	if (missing)
		fprintf(f, "%zu more shapes cannot be checked: the run lacks their cases\n",
			missing);
}
