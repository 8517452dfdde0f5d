/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a report of a run's folder. Its raw values are read case by case, reduced to what is
 * drawn, and freed. */
#define LOG_ROOM "bench/report"
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/model.h"
#include "bench/result/result.h"
#include "bench/result/shapes.h"
#include "util/log.h"

static char *copy_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text && *text ? strdup(text) : NULL;
}

static double number_of(const json_t *object, const char *key)
{
	const json_t *v = json_object_get(object, key);

	return json_is_number(v) ? json_number_value(v) : NAN;
}

static int64_t integer_of(const json_t *object, const char *key)
{
	double v = number_of(object, key);

	return fabs(v) < 9e18 ? (int64_t)v : 0;
}

/* A case without raw.bin: what its summary says. */
static int add_from_summary(struct report_case *c, const char *name, const char *label,
			    const json_t *latency)
{
	static const double percents[] = STATISTICS_PERCENTS;
	int64_t one = integer_of(latency, "p50");
	struct statistics *s;
	int ret;

	if (integer_of(latency, "count") <= 0)
		return 0;
	ret = report_series_add(c, name, label, &one, 1);
	if (ret)
		return ret;
	s = &c->series[c->series_count - 1].statistics;
	c->series[c->series_count - 1].band_count = 0;
	c->series[c->series_count - 1].tail_count = 0;
	s->count = (size_t)integer_of(latency, "count");
	s->min = integer_of(latency, "min");
	s->max = integer_of(latency, "max");
	s->mean = number_of(latency, "mean");
	s->middle = number_of(latency, "middle");
	s->deviation = number_of(latency, "deviation");
	s->skewness = number_of(latency, "skewness");
	s->share_above = number_of(latency, "share_above");
	for (size_t i = 0; i < STATISTICS_PERCENT_COUNT; i++) {
		char key[24];

		snprintf(key, sizeof(key), "p%g", percents[i]);
		s->percentile[i] = integer_of(latency, key);
	}
	return 0;
}

static int add_latencies(struct report_case *c, const struct result_read *in)
{
	const char *name;
	json_t *latency;
	int ret = 0;

	json_object_foreach(json_object_get(in->summary, "latencies"), name, latency) {
		const char *label = json_string_value(json_object_get(latency, "label"));
		int64_t *values;
		size_t count;

		if (!in->columns) {
			ret = add_from_summary(c, name, label, latency);
		} else {
			ret = result_read_latency(in, name, &values, &count);
			if (ret)
				return ret;
			ret = report_series_add(c, name, label, values, count);
			free(values);
		}
		if (ret)
			return ret;
	}
	return 0;
}

static int add_figures(struct report_case *c, const json_t *summary)
{
	const char *name;
	json_t *figure;

	json_object_foreach(json_object_get(summary, "figures"), name, figure) {
		int ret = report_value_add(c, name,
			json_string_value(json_object_get(figure, "label")),
			json_string_value(json_object_get(figure, "unit")),
			number_of(figure, "value"));

		if (ret)
			return ret;
	}
	return 0;
}

static double reference_value(const json_t *v)
{
	if (json_is_object(v))
		v = json_object_get(v, "value");
	return json_is_number(v) ? json_number_value(v) : NAN;
}

/* The source's medians, by the names that its figures have: "t_lat_median_ns" of a latency,
 * "median_ns" of the first one. */
static void add_reference(struct report_case *c, const json_t *description)
{
	json_t *reference = json_object_get(description, "reference");
	json_t *figures = json_object_get(reference, "figures");

	if (!json_is_object(figures))
		return;
	c->reference = json_incref(reference);
	for (size_t i = 0; i < c->series_count; i++) {
		struct report_series *s = &c->series[i];
		char key[200];

		snprintf(key, sizeof(key), "%s_median_ns", s->name);
		s->reference_ns = reference_value(json_object_get(figures, key));
		if (isnan(s->reference_ns) && !i)
			s->reference_ns = reference_value(json_object_get(figures,
									  "median_ns"));
	}
}

static int add_case(struct report *r, const char *dir, struct result_read *in)
{
	const json_t *d = in->description;
	const char *kind = json_string_value(json_object_get(d, "kind"));
	struct report_case *c = report_case_add(r, in->id, kind ? kind : "");
	int64_t limit = integer_of(d, "limit_ns");
	int ret;

	if (!c)
		return -ENOMEM;
	if (limit > 0)
		c->limit_ns = limit;
	c->scenario = copy_of(d, "scenario");
	c->question = copy_of(d, "question");
	c->label = copy_of(d, "label");
	c->command = copy_of(d, "command");
	if (json_is_object(json_object_get(d, "parameters"))) {
		json_decref(c->parameters);
		c->parameters = json_incref(json_object_get(d, "parameters"));
	}
	ret = result_read_rows(dir, in);
	if (!ret)
		ret = add_latencies(c, in);
	if (!ret)
		ret = add_figures(c, in->summary);
	add_reference(c, d);
	result_drop_rows(in);
	return ret;
}

int report_load(struct report *r, const char *dir)
{
	struct result_read *cases = NULL;
	size_t count = 0;
	int ret = result_read_run(dir, &r->run, &r->machine, &cases, &count);

	if (ret)
		return ret;
	r->title = copy_of(r->run, "suite");
	r->floor_ns = number_of(json_object_get(json_object_get(r->machine, "floor"),
						"cacheline_oneway_ns"), "median");
	r->shapes = shapes_evaluate(dir, json_object_get(r->run, "disturbance"), cases, count);
	for (size_t i = 0; !ret && i < count; i++)
		ret = add_case(r, dir, &cases[i]);
	if (!ret)
		ret = report_group_cases(r);
	if (ret == -ENOMEM)
		log_error("no memory for the results in %s", dir);
	result_read_free(cases, count);
	return ret;
}
