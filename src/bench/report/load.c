/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a report's data of folders of runs. Their raw values are read case by case, reduced to what
 * is drawn, and freed. */
#define LOG_ROOM "bench/report"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/report/data.h"
#include "bench/result/budget.h"
#include "bench/result/compare.h"
#include "bench/result/files.h"
#include "bench/result/result.h"
#include "bench/result/shapes.h"
#include "util/log.h"

/* Of packets of all cases of a run; one has about 85 bytes. */
#define EVENTS_MAX 3000

/* A folder that is open, with what the page gets of it. */
struct folder {
	const char *dir;
	json_t *run, *machine;
	struct result_read *cases;
	size_t count;
	size_t events; /* of add_packets(), so far */
};

/* Without values in their order a latency says what its summary says. */
static int add_from_summary(json_t *c, const char *name, const json_t *latency)
{
	json_t *l = json_is_integer(json_object_get(latency, "p50")) ? json_copy((json_t *)latency) :
								       NULL;

	if (!l)
		return 0;
	json_object_del(l, "from");
	json_object_del(l, "to");
	json_object_set_new(l, "name", json_string(name));
	return json_array_append_new(json_object_get(c, "latencies"), l) ? -ENOMEM : 0;
}

static int add_latency(json_t *c, const struct result_read *in, const char *name,
		       const json_t *latency, const struct report_detail *detail)
{
	const char *label = json_string_value(json_object_get(latency, "label"));
	int64_t *values;
	size_t count;
	int ret;

	if (!in->columns)
		return add_from_summary(c, name, latency);
	ret = result_read_latency(in, name, &values, &count);
	if (ret)
		return ret;
	ret = report_latency_add(c, name, label, values, count,
				 budget_is_part(name) ? NULL : detail);
	free(values);
	return ret;
}

static int add_figures(json_t *run, json_t *c, const json_t *summary)
{
	const char *name;
	json_t *figure;

	json_object_foreach(json_object_get(summary, "figures"), name, figure) {
		const json_t *value = json_object_get(figure, "value");
		int ret = report_figure_add(run, c, name,
			json_string_value(json_object_get(figure, "label")),
			json_string_value(json_object_get(figure, "unit")),
			json_is_number(value) ? json_number_value(value) : NAN);

		if (ret)
			return ret;
	}
	return 0;
}

static const json_t *reference_value(const json_t *figures, const char *key)
{
	const json_t *v = json_object_get(figures, key);

	if (json_is_object(v))
		v = json_object_get(v, "value");
	return json_is_number(v) ? v : NULL;
}

/* The source's medians, by the names that its figures have: "t_lat_median_ns" of a latency,
 * "median_ns" of the first one. */
static void add_reference(json_t *c)
{
	json_t *figures = json_object_get(json_object_get(c, "reference"), "figures"), *l;
	size_t i;

	json_array_foreach(json_object_get(c, "latencies"), i, l) {
		const json_t *v;
		char key[200];

		snprintf(key, sizeof(key), "%.180s_median_ns",
			 json_string_value(json_object_get(l, "name")));
		v = reference_value(figures, key);
		if (!v && !i)
			v = reference_value(figures, "median_ns");
		if (v)
			json_object_set(l, "reference_ns", (json_t *)v);
	}
}

/* What the kind "odp" recorded, as long as the page has room for it. */
static int add_packets(json_t *c, struct folder *f, const struct result_read *in)
{
	char path[PATH_MAX];
	json_t *packets;
	size_t events;
	int ret;

	snprintf(path, sizeof(path), "%s/cases/%s", f->dir, in->id);
	ret = files_read_json(path, "packets.json", &packets);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	events = json_array_size(json_object_get(packets, "events"));
	if (f->events + events > EVENTS_MAX) {
		json_decref(packets);
		return 0;
	}
	f->events += events;
	return json_object_set_new(c, "packets", packets) ? -ENOMEM : 0;
}

static int add_case(json_t *run, struct folder *f, struct result_read *in,
		    const struct report_detail *detail)
{
	static const char *const keys[] = { "scenario", "question", "label", "command", "parameters",
					    "reference", "limit_ns" };
	const char *kind = json_string_value(json_object_get(in->description, "kind"));
	json_t *c = report_case_add(run, in->id, kind ? kind : ""), *latency;
	const char *name;
	int ret = c ? result_read_rows(f->dir, in) : -ENOMEM;

	for (size_t i = 0; !ret && i < sizeof(keys) / sizeof(keys[0]); i++) {
		json_t *v = json_object_get(in->description, keys[i]);

		if (v && !json_is_null(v) && json_object_set(c, keys[i], v))
			ret = -ENOMEM;
	}
	json_object_foreach(json_object_get(in->summary, "latencies"), name, latency)
		if (!ret)
			ret = add_latency(c, in, name, latency, detail);
	if (!ret)
		ret = add_figures(run, c, in->summary);
	if (!ret && json_object_get(in->summary, "disturbance"))
		json_object_set(c, "disturbance", json_object_get(in->summary, "disturbance"));
	if (!ret)
		add_reference(c);
	if (!ret)
		ret = add_packets(c, f, in);
	result_drop_rows(in);
	return ret;
}

static size_t latencies_of(const struct folder *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->count; i++) {
		const char *name;
		json_t *latency;

		json_object_foreach(json_object_get(f->cases[i].summary, "latencies"), name, latency)
			n += !budget_is_part(name);
	}
	return n;
}

static int add_folder(json_t *data, struct folder *f, const struct report_detail *detail)
{
	const char *suite = json_string_value(json_object_get(f->run, "suite"));
	json_t *run = report_run_add(data, suite ? suite : "benchmark", f->dir);
	json_t *shapes = shapes_evaluate(f->dir, json_object_get(f->run, "disturbance"), f->cases,
					 f->count);
	int ret = run && shapes ? 0 : -ENOMEM;

	json_object_set_new(run, "shapes", shapes);
	json_object_set(run, "run", f->run);
	json_object_set(run, "machine", f->machine);
	for (size_t i = 0; !ret && i < f->count; i++)
		ret = add_case(run, f, &f->cases[i], detail);
	if (ret == -ENOMEM)
		log_error("no memory for the results in %s", f->dir);
	return ret;
}

static int open_folder(struct folder *f, const char *dir)
{
	*f = (struct folder){ .dir = dir };
	return result_read_run(dir, &f->run, &f->machine, &f->cases, &f->count);
}

static void close_folder(struct folder *f)
{
	json_decref(f->run);
	json_decref(f->machine);
	result_read_free(f->cases, f->count);
}

int report_load(json_t *data, const char *dir)
{
	struct folder f;
	int ret = open_folder(&f, dir);

	if (!ret) {
		struct report_detail detail = report_detail_for(latencies_of(&f));

		ret = add_folder(data, &f, &detail);
		close_folder(&f);
	}
	return ret;
}

static json_t *json_finite(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

static int compare_latency(json_t *list, struct folder *a, struct result_read *in_a,
			   struct folder *b, struct result_read *in_b, const char *name)
{
	struct compare_latency c;
	int ret = compare_case(a->dir, in_a, b->dir, in_b, name, &c);
	json_t *row;

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	row = json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "id", report_string(in_a->id),
			"latency", name, "a_ns", json_finite(c.median_a), "b_ns", json_finite(c.median_b),
			"ratio", json_finite(c.ratio), "low", json_finite(c.low), "high", json_finite(c.high),
			"verdict", compare_verdict_name(c.verdict));
	return row && !json_array_append_new(list, row) ? 0 : -ENOMEM;
}

static int compare_folders(json_t *data, struct folder *a, struct folder *b)
{
	json_t *list = json_array(), *latency;
	const char *name;
	int ret = json_object_set_new(data, "compare", list) ? -ENOMEM : 0;

	for (size_t i = 0; !ret && i < a->count; i++) {
		size_t j = 0;

		while (j < b->count && strcmp(a->cases[i].id, b->cases[j].id))
			j++;
		if (j == b->count)
			continue;
		json_object_foreach(json_object_get(a->cases[i].summary, "latencies"), name, latency)
			if (!ret && !budget_is_part(name))
				ret = compare_latency(list, a, &a->cases[i], b, &b->cases[j], name);
		result_drop_rows(&a->cases[i]);
		result_drop_rows(&b->cases[j]);
	}
	return ret;
}

int report_load_two(json_t *data, const char *a, const char *b)
{
	struct folder one, other;
	int ret = open_folder(&one, a);

	if (ret)
		return ret;
	ret = open_folder(&other, b);
	if (!ret) {
		struct report_detail detail = report_detail_for(latencies_of(&one) +
								latencies_of(&other));

		ret = compare_folders(data, &one, &other);
		if (!ret)
			ret = add_folder(data, &one, &detail);
		if (!ret)
			ret = add_folder(data, &other, &detail);
		close_folder(&other);
	}
	close_folder(&one);
	return ret;
}
