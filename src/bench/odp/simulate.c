/* SPDX-License-Identifier: BSD-2-Clause */
/* See simulate.h. */
#define LOG_ROOM "bench/odp"
#include "bench/odp/simulate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/kind/process.h"
#include "bench/result/files.h"
#include "util/beside.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/order.h"

#define PROGRAM "busbar-odp-sim"

/* From the folder of the executable: that of a build, then the installed one. */
static const char *const places[] = { "src/virtual/odp", BENCH_ODP_FROM_BINDIR };

struct files {
	char *points, *output, *errors;
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

static int run(const char *program, const struct files *files, const atomic_bool *stop)
{
	char *const argv[] = { (char *)program, files->points, NULL };
	struct process p = { .argv = argv, .output = files->output, .errors = files->errors,
			     .cpu = -1 };
	int ret = process_start(&p);

	if (!ret)
		ret = process_await(&p, UINT64_MAX, stop);
	process_kill(&p);
	if (ret || !p.status)
		return ret;
	process_show_end("simulation", files->errors);
	return process_failed(&p, "simulation");
}

int odp_simulate(const char *points, const char *dir, const atomic_bool *stop,
		 json_t **results)
{
	struct files files = { files_path(dir, "points.txt"), files_path(dir, "output.txt"),
			       files_path(dir, "errors.txt") };
	char program[PATH_MAX];
	int ret = -ENOMEM;

	*results = NULL;
	if (beside_executable(places, ARRAY_SIZE(places), PROGRAM, program, sizeof(program))) {
		log_warn(PROGRAM " is not in this build: it has no adapter");
		ret = -EOPNOTSUPP;
	} else if (files.points && files.output && files.errors) {
		ret = write_points(files.points, points);
		if (!ret)
			ret = run(program, &files, stop);
		if (!ret)
			ret = read_output(files.output, results);
	}
	/* The results have what they say. */
	if (!ret) {
		unlink(files.points);
		unlink(files.output);
		unlink(files.errors);
	}
	free(files.points);
	free(files.output);
	free(files.errors);
	return ret;
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
