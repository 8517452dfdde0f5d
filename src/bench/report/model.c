/* SPDX-License-Identifier: BSD-2-Clause */
/* Cases, latencies and groups of a report; see model.h. */
#include "bench/report/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/budget.h"

#define LIMIT_NS_DEFAULT 10000

/* Makes room for one more of `size` bytes, zeroed. NULL without memory. */
static void *append(void **array, size_t *count, size_t size)
{
	char *grown = reallocarray(*array, *count + 1, size);

	if (!grown)
		return NULL;
	*array = grown;
	memset(grown + *count * size, 0, size);
	return grown + (*count)++ * size;
}

struct report_case *report_case_add(struct report *r, const char *id, const char *kind)
{
	void *cases = r->cases;
	struct report_case *c = append(&cases, &r->case_count, sizeof(*c));

	r->cases = cases;
	if (!c)
		return NULL;
	c->id = strdup(id);
	c->kind = strdup(kind);
	c->limit_ns = LIMIT_NS_DEFAULT;
	c->parameters = json_object();
	return c->id && c->kind && c->parameters ? c : NULL;
}

/* The limit, unless half of all values are above it: an empty histogram shows nothing. */
static int64_t histogram_range(const struct statistics *s, int64_t limit_ns)
{
	if (s->percentile[2] < limit_ns)
		return limit_ns;
	return (int64_t)report_bins_round_up(1.2 * (double)s->percentile[3] + 1);
}

int report_series_add(struct report_case *c, const char *name, const char *label,
		      int64_t *values, size_t count)
{
	void *all = c->series;
	struct report_series *s;

	if (!count)
		return 0;
	s = append(&all, &c->series_count, sizeof(*s));
	c->series = all;
	if (!s)
		return -ENOMEM;
	s->name = strdup(name);
	s->label = strdup(label ? label : name);
	s->reference_ns = NAN;
	s->band_count = report_bins_bands(values, count, s->bands, REPORT_BANDS_MAX);
	statistics_of(values, count, c->limit_ns, &s->statistics);
	s->range_ns = histogram_range(&s->statistics, c->limit_ns);
	report_bins_histogram(values, count, s->range_ns, s->histogram,
			      REPORT_HISTOGRAM_BINS);
	s->tail_count = report_bins_tail(values, count, s->tail, REPORT_TAIL_MAX);
	return s->name && s->label ? 0 : -ENOMEM;
}

int report_value_add(struct report_case *c, const char *name, const char *label,
		     const char *unit, double value)
{
	void *all = c->values;
	struct report_value *v = append(&all, &c->value_count, sizeof(*v));

	c->values = all;
	if (!v)
		return -ENOMEM;
	v->name = strdup(name);
	v->label = strdup(label ? label : name);
	v->unit = strdup(unit ? unit : "");
	v->value = value;
	return v->name && v->label && v->unit ? 0 : -ENOMEM;
}

double report_value_of(const struct report_case *c, const char *name)
{
	for (size_t i = 0; i < c->value_count; i++)
		if (!strcmp(c->values[i].name, name))
			return c->values[i].value;
	return NAN;
}

/* In percent; counts of the same name do not compare. */
static double percent_of(const struct report_case *c, const char *name)
{
	for (size_t i = 0; i < c->value_count; i++)
		if (!strcmp(c->values[i].name, name) && !strcmp(c->values[i].unit, "%"))
			return c->values[i].value;
	return NAN;
}

/* What was lost is a share of those steps that were not missed. */
double report_missed(const struct report_case *c)
{
	static const char *const names[] = { "missed_share", "missed", "lost_share", "lost" };
	double sum = NAN;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		double value = percent_of(c, names[i]);

		if (isfinite(value))
			sum = isnan(sum) ? value : sum + value * (1 - sum / 100);
	}
	return sum;
}

const struct report_series *report_series_of(const struct report_case *c, const char *name)
{
	for (size_t i = 0; i < c->series_count; i++)
		if (!strcmp(c->series[i].name, name))
			return &c->series[i];
	return NULL;
}

bool report_series_is_budgeted(const struct report_case *c, const struct report_series *s)
{
	if (budget_is_part(s->name))
		return true;
	for (size_t i = 0; i < c->series_count; i++)
		if (budget_is_part_of(c->series[i].name, s->name))
			return true;
	return false;
}

static struct report_group *group_of(struct report *r, const struct report_case *c)
{
	const char *scenario = c->scenario ? c->scenario : "";
	struct report_group *g;
	void *all = r->groups;

	for (size_t i = 0; i < r->group_count; i++)
		if (!strcmp(r->groups[i].kind, c->kind) &&
		    !strcmp(r->groups[i].scenario, scenario))
			return &r->groups[i];
	g = append(&all, &r->group_count, sizeof(*g));
	r->groups = all;
	if (!g)
		return NULL;
	g->kind = c->kind;
	g->scenario = scenario;
	return g;
}

int report_group_cases(struct report *r)
{
	for (size_t i = 0; i < r->case_count; i++) {
		struct report_case *c = &r->cases[i];
		struct report_group *g = group_of(r, c);
		void *all = g ? g->cases : NULL;
		struct report_case **slot = g ? append(&all, &g->count, sizeof(*slot)) : NULL;

		if (g)
			g->cases = all;
		if (!slot)
			return -ENOMEM;
		*slot = c;
		if (!g->question)
			g->question = c->question;
	}
	return 0;
}

static void free_curve(struct report_curve *v)
{
	free(v->label);
	free(v->unit);
	free(v->seconds);
	free(v->low);
	free(v->high);
}

static void free_case(struct report_case *c)
{
	for (size_t i = 0; i < c->series_count; i++) {
		free(c->series[i].name);
		free(c->series[i].label);
	}
	for (size_t i = 0; i < c->value_count; i++) {
		free(c->values[i].name);
		free(c->values[i].label);
		free(c->values[i].unit);
	}
	for (size_t i = 0; i < c->curve_count; i++)
		free_curve(&c->curves[i]);
	free(c->series);
	free(c->values);
	free(c->curves);
	free(c->id);
	free(c->kind);
	free(c->scenario);
	free(c->question);
	free(c->label);
	free(c->command);
	json_decref(c->parameters);
	json_decref(c->reference);
}

void report_free(struct report *r)
{
	for (size_t i = 0; i < r->case_count; i++)
		free_case(&r->cases[i]);
	for (size_t i = 0; i < r->group_count; i++)
		free(r->groups[i].cases);
	free(r->cases);
	free(r->groups);
	free(r->title);
	json_decref(r->run);
	json_decref(r->machine);
	json_decref(r->shapes);
	memset(r, 0, sizeof(*r));
}
