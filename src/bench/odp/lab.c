/* SPDX-License-Identifier: BSD-2-Clause */
/* See lab.h. */
#define LOG_ROOM "bench/odp"
#include "bench/odp/lab.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/kind/process.h"
#include "util/beside.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/order.h"

#define PROGRAM "busbar-odp-sim"

/* From the folder of the executable: that of a build, then the installed one. */
static const char *const places[] = { "src/virtual/odp", BENCH_ODP_FROM_BINDIR };

struct files {
	char points[PATH_MAX], output[PATH_MAX], errors[PATH_MAX];
};

static int write_points(const char *path, const char *points)
{
	FILE *f = fopen(path, "we");
	bool written = f && fputs(points, f) >= 0;

	if (f && fclose(f))
		written = false;
	if (written)
		return 0;
	return log_fail(-EIO, "%s is not writable: %s", path, strerror(errno));
}

/* Adds one trial to the array of its point. */
static int add_trial(json_t *results, const char *line)
{
	json_t *trial = json_loads(line, 0, NULL), *point;
	size_t number = (size_t)json_integer_value(json_object_get(trial, "point"));

	if (!trial)
		return -EBADMSG;
	while (json_array_size(results) <= number)
		if (json_array_append_new(results, json_array()))
			break;
	point = json_array_get(results, number);
	return json_array_append_new(point, trial) ? -ENOMEM : 0;
}

static int read_output(const char *path, json_t **results)
{
	FILE *f = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;
	int ret = f ? 0 : -errno;

	*results = json_array();
	while (!ret && getline(&line, &size, f) > 0)
		ret = add_trial(*results, line);
	free(line);
	if (f)
		fclose(f);
	if (!ret)
		return 0;
	log_error("the output of " PROGRAM " in %s is not usable: %s", path, strerror(-ret));
	json_decref(*results);
	*results = NULL;
	return ret;
}

static int run(const char *program, struct files *files, const atomic_bool *stop)
{
	char *const argv[] = { (char *)program, files->points, NULL };
	struct process p = { .argv = argv, .output = files->output, .errors = files->errors,
			     .cpu = -1 };
	int ret = process_run(&p, UINT64_MAX, stop);

	if (ret || !p.status)
		return ret;
	process_show_end("simulation", files->errors);
	return process_failed(&p, "simulation");
}

int odp_simulate(const char *points, const char *dir, const atomic_bool *stop,
		 json_t **results)
{
	struct files files;
	char program[PATH_MAX];
	int ret;

	*results = NULL;
	if (beside_executable(places, ARRAY_SIZE(places), PROGRAM, program, sizeof(program))) {
		log_warn(PROGRAM " is not in this build: it has no adapter");
		return -EOPNOTSUPP;
	}
	snprintf(files.points, PATH_MAX, "%s/points.txt", dir);
	snprintf(files.output, PATH_MAX, "%s/output.txt", dir);
	snprintf(files.errors, PATH_MAX, "%s/errors.txt", dir);
	ret = write_points(files.points, points) ?: run(program, &files, stop) ?:
	      read_output(files.output, results);
	if (ret)
		return ret;
	/* The results have what they say. */
	unlink(files.points);
	unlink(files.output);
	unlink(files.errors);
	return 0;
}

double odp_trials_median(const json_t *trials, const char *name)
{
	size_t count = json_array_size(trials);
	double *v = calloc(count ? count : 1, sizeof(*v)), value;

	if (!v)
		return 0;
	for (size_t i = 0; i < count; i++)
		v[i] = json_number_value(json_object_get(json_array_get(trials, i), name));
	order_doubles(v, count);
	value = count ? (v[(count - 1) / 2] + v[count / 2]) / 2 : 0;
	free(v);
	return value;
}

double odp_trials_share(const json_t *trials, const char *name, double limit)
{
	size_t count = json_array_size(trials), above = 0;

	for (size_t i = 0; i < count; i++)
		above += json_number_value(json_object_get(json_array_get(trials, i), name)) > limit;
	return count ? (double)above / (double)count : 0;
}

/* ---- experiments ---- */

size_t lab_point(struct lab *l, const char *fmt, ...)
{
	va_list ap;

	if (!l->points)
		l->points = open_memstream(&l->text, &l->text_bytes);
	if (!l->points)
		return 0;
	va_start(ap, fmt);
	vfprintf(l->points, fmt, ap);
	va_end(ap);
	fputc('\n', l->points);
	return l->count++;
}

int lab_run(struct lab *l)
{
	bool written = l->points && !fclose(l->points);
	int ret;

	json_decref(l->results);
	l->results = NULL;
	l->points = NULL;
	ret = written ? odp_simulate(l->text, l->dir, l->stop, &l->results) : -ENOMEM;
	if (!ret && json_array_size(l->results) != l->count)
		ret = log_fail(-EIO, "the simulation has run %zu of %zu points",
			       json_array_size(l->results), l->count);
	free(l->text);
	l->text = NULL;
	l->count = 0;
	return ret;
}

double lab_value(const struct lab *l, size_t point, const char *name)
{
	return odp_trials_median(json_array_get(l->results, point), name);
}

double lab_share(const struct lab *l, size_t point, const char *name, double limit)
{
	return odp_trials_share(json_array_get(l->results, point), name, limit);
}

void lab_row(struct lab *l, const char *figure, enum lab_verdict verdict, const char *source,
	     double value, const char *unit, const char *what, const char *fmt, ...)
{
	static const char *const verdicts[] = { "holds", "does not hold", "not in the source" };
	char ours[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(ours, sizeof(ours), fmt, ap);
	va_end(ap);
	json_array_append_new(
		l->rows, json_pack("{s:s, s:s, s:s, s:s, s:f, s:s, s:s, s:s}", "experiment",
				   l->experiment, "figure", figure, "what", what, "model", ours,
				   "value", value, "unit", unit, "source", source, "verdict",
				   verdicts[verdict]));
}
