/* SPDX-License-Identifier: BSD-2-Clause */
/* A case while it is written: cases/ID.part, renamed at its end. */
#define LOG_ROOM "bench/result"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/result/disturbance.h"
#include "bench/result/files.h"
#include "bench/result/number.h"
#include "bench/result/run_private.h"
#include "bench/result/statistics.h"
#include "util/log.h"

#define ID_MAX 120
#define LIMIT_NS 10000

struct result_case {
	struct result_run *run;
	char *id, *part, *whole; /* the folder before and after the end */
	json_t *summary;
	int64_t limit_ns;
	bool has_rows;
	struct disturbance_times begun;
};

static bool id_is_valid(const char *id)
{
	size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			      "0123456789-_.+=");

	/* No leading '.': neither hidden nor a folder above. ".part" marks cases in work. */
	return n && n <= ID_MAX && !id[n] && *id != '.' &&
	       (n < 5 || strcmp(id + n - 5, ".part"));
}

bool result_case_done(const struct result_run *run, const char *id)
{
	char *path = NULL;
	bool done = id_is_valid(id) && asprintf(&path, "%s/cases/%s", run->dir, id) >= 0 &&
		    files_is_dir(path);

	free(path);
	return done;
}

const char *result_case_dir(const struct result_case *c)
{
	return c->part;
}

static void free_case(struct result_case *c)
{
	json_decref(c->summary);
	free(c->whole);
	free(c->part);
	free(c->id);
	free(c);
}

static int new_case(struct result_run *run, const char *id, struct result_case **out)
{
	struct result_case *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->run = run;
	c->id = strdup(id);
	if (asprintf(&c->whole, "%s/cases/%s", run->dir, id) < 0)
		c->whole = NULL;
	if (asprintf(&c->part, "%s/cases/%s.part", run->dir, id) < 0)
		c->part = NULL;
	c->summary = json_pack("{s:i, s:{}, s:{}}", "rows", 0, "latencies", "figures");
	if (c->id && c->whole && c->part && c->summary) {
		*out = c;
		return 0;
	}
	free_case(c);
	return -ENOMEM;
}

static int check_begin(const struct result_run *run, const char *id,
		       const json_t *description)
{
	if (!id_is_valid(id))
		return log_fail(-EINVAL, "'%s' is no id of a case: expected 1 to %d letters, digits and -_.+=", id,
				ID_MAX);
	if (!json_is_string(json_object_get(description, "kind")) ||
	    !json_is_object(json_object_get(description, "parameters")))
		return log_fail(-EINVAL, "case %s: its description lacks 'kind' or 'parameters'",
				id);
	if (result_case_done(run, id))
		return log_fail(-EEXIST, "case %s is there already, in %s/cases", id, run->dir);
	return 0;
}

int result_case_begin(struct result_run *run, const char *id, json_t *description,
		      struct result_case **out)
{
	const json_t *limit = json_object_get(description, "limit_ns");
	int ret = check_begin(run, id, description);
	struct result_case *c;

	if (ret)
		return ret;
	ret = new_case(run, id, &c);
	if (ret)
		return ret;
	c->limit_ns = json_is_number(limit) ? (int64_t)json_number_value(limit) : LIMIT_NS;
	/* What a process left that was killed. */
	ret = files_remove_dir(c->part) ?: files_make_dir(c->part) ?:
	      files_write_json(c->part, "case.json", description);
	if (ret) {
		result_case_abandon(c);
		return ret;
	}
	disturbance_now(&c->begun);
	*out = c;
	return 0;
}

static const int64_t *column(const struct result_column *columns, size_t count,
			     const struct result_latency *latency, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(columns[i].name, name))
			return columns[i].values;
	return log_fail(NULL, "latency '%s': there is no column '%s'", latency->name, name);
}

size_t latency_values(const int64_t *from, const int64_t *to, size_t rows,
		      int64_t *values)
{
	size_t count = 0;
	int64_t d;

	for (size_t i = 0; i < rows; i++)
		if (from[i] != RESULT_ABSENT && to[i] != RESULT_ABSENT &&
		    !__builtin_sub_overflow(to[i], from[i], &d))
			values[count++] = d;
	return count;
}

static void add_values(json_t *o, const struct statistics *s)
{
	statistics_add_order(o, s);
	json_object_set_new(o, "mean", number_json(s->mean));
	json_object_set_new(o, "middle", number_json(s->middle));
	json_object_set_new(o, "deviation", number_json(s->deviation));
	json_object_set_new(o, "skewness", number_json(s->skewness));
	json_object_set_new(o, "share_above", number_json(s->share_above));
}

/* The object of summary.json of one latency. -EINVAL: a column that is not there. */
static int summarize(const struct result_latency *latency,
		    const struct result_column *columns, size_t columns_count,
		    size_t rows, int64_t limit_ns, json_t **out)
{
	const int64_t *from = column(columns, columns_count, latency, latency->from);
	const int64_t *to = from ? column(columns, columns_count, latency, latency->to) : NULL;
	struct statistics s;
	int64_t *values;

	if (!to)
		return -EINVAL;
	values = malloc((rows ? rows : 1) * sizeof(*values));
	if (!values)
		return -ENOMEM;
	statistics_of(values, latency_values(from, to, rows, values), limit_ns, &s);
	free(values);
	*out = json_pack("{s:s, s:s, s:s, s:I, s:I}", "label", latency->label, "from",
			 latency->from, "to", latency->to, "count", (json_int_t)s.count,
			 "limit_ns", (json_int_t)limit_ns);
	if (!*out)
		return -ENOMEM;
	if (s.count)
		add_values(*out, &s);
	return 0;
}

static int check_columns(const struct result_case *c, const struct result_column *columns,
			 size_t count)
{
	if (c->has_rows)
		return log_fail(-EINVAL, "case %s: rows are written twice", c->id);
	for (size_t i = 0; i < count; i++) {
		if (!*columns[i].name || strlen(columns[i].name) >= RESULT_NAME_MAX ||
		    strlen(columns[i].unit) >= sizeof((struct result_column_header){ 0 }.unit)) {
			return log_fail(-EINVAL, "case %s: column '%s' [%s]: the name is too long",
					c->id, columns[i].name, columns[i].unit);
		}
	}
	return 0;
}

int result_case_rows(struct result_case *c, const struct result_column *columns,
		     size_t columns_count, size_t rows,
		     const struct result_latency *latencies, size_t latencies_count)
{
	json_t *list = json_object_get(c->summary, "latencies");
	int ret = check_columns(c, columns, columns_count);

	for (size_t i = 0; !ret && i < latencies_count; i++) {
		json_t *one = NULL;

		ret = summarize(&latencies[i], columns, columns_count, rows,
				      c->limit_ns, &one);
		if (!ret)
			json_object_set_new(list, latencies[i].name, one);
	}
	if (!ret)
		ret = raw_write_binary(c->part, columns, columns_count, rows);
	if (!ret && !c->run->no_csv)
		ret = raw_write_csv(c->part, columns, columns_count, rows);
	if (ret)
		return ret;
	c->has_rows = true;
	json_object_set_new(c->summary, "rows", json_integer((json_int_t)rows));
	return 0;
}

int result_case_figure(struct result_case *c, const struct result_figure *f)
{
	json_t *one = json_pack("{s:s, s:s, s:o}", "label", f->label, "unit", f->unit, "value",
				number_json(f->value));

	return one && !json_object_set_new(json_object_get(c->summary, "figures"), f->name,
					   one) ? 0 : -ENOMEM;
}

int result_case_figures(struct result_case *c, const struct result_figure *figures, size_t count)
{
	int ret = 0;

	for (size_t i = 0; !ret && i < count; i++)
		if (figures[i].name)
			ret = result_case_figure(c, &figures[i]);
	return ret;
}

const json_t *result_case_summary(const struct result_case *c)
{
	return c->summary;
}

int result_case_end(struct result_case *c)
{
	struct disturbance_times now;
	int ret;

	disturbance_now(&now);
	json_object_set_new(c->summary, "disturbance", disturbance_between(&c->begun, &now));
	ret = files_write_json(c->part, "summary.json", c->summary);

	if (!ret && rename(c->part, c->whole)) {
		ret = -errno;
		log_error("folder %s cannot become %s: %s", c->part, c->whole,
			  strerror(-ret));
	}
	if (ret) {
		result_case_abandon(c);
		return ret;
	}
	result_run_forget(c->run, "cases", c->id);
	result_run_forget(c->run, "left_out", c->id);
	json_array_append_new(json_object_get(c->run->run, "cases"), json_string(c->id));
	ret = result_run_write(c->run);
	free_case(c);
	return ret;
}

void result_case_abandon(struct result_case *c)
{
	if (!c)
		return;
	files_remove_dir(c->part);
	free_case(c);
}
