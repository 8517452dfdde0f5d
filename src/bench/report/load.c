/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes a report's data of folders of runs. Their raw values are read case by case, reduced to what
 * is drawn, and freed. */
#define LOG_ROOM "bench/report"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>

#include "bench/report/data.h"
#include "bench/result/budget.h"
#include "bench/result/compare.h"
#include "bench/result/files.h"
#include "bench/result/number.h"
#include "bench/result/result.h"
#include "bench/result/shapes.h"
#include "util/log.h"

/* Of packets of all cases of a run; one has about 85 bytes. */
#define EVENTS_MAX 3000

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
		int ret = report_figure_add(run, c, name,
			json_string_value(json_object_get(figure, "label")),
			text_of(figure, "unit"), number_of(figure, "value"));

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

/* What the kind "odp" recorded, as long as the page has room for it. `*events`: so far, of all
 * cases. */
static int add_packets(json_t *c, const char *dir, const char *id, size_t *events)
{
	char path[PATH_MAX];
	json_t *packets;
	size_t more;
	int ret;

	snprintf(path, sizeof(path), "%s/cases/%s", dir, id);
	ret = files_read_json(path, "packets.json", &packets);
	if (ret)
		return ret == -ENOENT ? 0 : ret;
	more = json_array_size(json_object_get(packets, "events"));
	if (*events + more > EVENTS_MAX) {
		json_decref(packets);
		return 0;
	}
	*events += more;
	return json_object_set_new(c, "packets", packets) ? -ENOMEM : 0;
}

static int add_case(json_t *run, const struct result_folder *f, struct result_read *in,
		    const struct report_detail *detail, size_t *events)
{
	static const char *const keys[] = { "scenario", "question", "label", "command", "parameters",
					    "reference", "limit_ns" };
	json_t *c = report_case_add(run, in->id, text_of(in->description, "kind")), *latency;
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
	ret = ret ?: add_figures(run, c, in->summary) ?: add_packets(c, f->dir, in->id, events);
	if (!ret && json_object_get(in->summary, "disturbance"))
		json_object_set(c, "disturbance", json_object_get(in->summary, "disturbance"));
	if (!ret)
		add_reference(c);
	result_drop_rows(in);
	return ret;
}

static size_t latencies_of(const struct result_folder *f)
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

static int add_folder(json_t *data, struct result_folder *f, const struct report_detail *detail)
{
	const char *suite = json_string_value(json_object_get(f->run, "suite"));
	json_t *run = report_run_add(data, suite ? suite : "benchmark", f->dir);
	json_t *shapes = shapes_evaluate(f->dir, json_object_get(f->run, "disturbance"), f->cases,
					 f->count);
	int ret = run && shapes ? 0 : -ENOMEM;
	size_t events = 0;

	json_object_set_new(run, "shapes", shapes);
	json_object_set(run, "run", f->run);
	json_object_set(run, "machine", f->machine);
	for (size_t i = 0; !ret && i < f->count; i++)
		ret = add_case(run, f, &f->cases[i], detail, &events);
	if (ret == -ENOMEM)
		log_error("no memory for the results in %s", f->dir);
	return ret;
}

int report_load(json_t *data, const char *dir)
{
	struct result_folder f;
	struct report_detail detail;
	int ret = result_folder_open(dir, &f);

	detail = report_detail_for(latencies_of(&f));
	ret = ret ?: add_folder(data, &f, &detail);
	result_folder_close(&f);
	return ret;
}

static int add_compared(void *list, const char *id, const char *latency,
			const struct compare_latency *c)
{
	json_t *row;

	if (budget_is_part(latency))
		return 0;
	row = json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:s}", "id", report_string(id),
			"latency", latency, "a_ns", number_json(c->median_a), "b_ns",
			number_json(c->median_b), "ratio", number_json(c->ratio), "low",
			number_json(c->low), "high", number_json(c->high), "verdict",
			compare_verdict_name(c->verdict));
	return row && !json_array_append_new(list, row) ? 0 : -ENOMEM;
}

int report_load_two(json_t *data, const char *a, const char *b)
{
	struct result_folder one = { .dir = NULL }, other = { .dir = NULL };
	struct report_detail detail;
	json_t *list = json_array();
	int ret = json_object_set_new(data, "compare", list) ? -ENOMEM : result_folder_open(a, &one);

	ret = ret ?: result_folder_open(b, &other);
	detail = report_detail_for(latencies_of(&one) + latencies_of(&other));
	ret = ret ?: compare_folders(&one, &other, add_compared, list) ?:
	      add_folder(data, &one, &detail) ?: add_folder(data, &other, &detail);
	result_folder_close(&other);
	result_folder_close(&one);
	return ret;
}
