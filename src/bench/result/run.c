/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of a run: run.json and machine.json. */
#define LOG_ROOM "bench/result"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "bench/result/files.h"
#include "bench/result/machine.h"
#include "bench/result/number.h"
#include "bench/result/run_private.h"
#include "bench/version.h"
#include "util/log.h"

#define RUN_FILE "run.json"
#define MACHINE_FILE "machine.json"

static json_t *now(void)
{
	time_t t = time(NULL);
	char text[40];
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

/* The array `key`, made where it is missing or something else. */
static json_t *list_of(json_t *object, const char *key)
{
	json_t *list = json_object_get(object, key);

	if (!json_is_array(list)) {
		json_object_set_new(object, key, json_array());
		list = json_object_get(object, key);
	}
	return list;
}

int result_run_write(const struct result_run *run)
{
	return files_write_json(run->dir, RUN_FILE, run->run);
}

static int start_anew(struct result_run *run, const struct result_options *o)
{
	run->run = json_pack("{s:i, s:s, s:s, s:o, s:o, s:n, s:[], s:[], s:[]}",
			     "layout", RESULT_LAYOUT, "suite", o->suite,
			     "version", BENCH_VERSION, "command", machine_command(o->argc, o->argv),
			     "start", now(), "end", "resumed", "cases", "left_out");
	return run->run ? result_run_write(run) : -ENOMEM;
}

/* run.json of an earlier process. */
static int go_on(struct result_run *run, const struct result_options *o)
{
	const char *suite = json_string_value(json_object_get(run->run, "suite"));
	json_int_t layout = json_integer_value(json_object_get(run->run, "layout"));

	if (layout != RESULT_LAYOUT)
		return log_fail(-EBADMSG,
				"%s/" RUN_FILE " has layout %lld, this program writes layout %d; "
				"choose another folder",
				run->dir, (long long)layout, RESULT_LAYOUT);
	if (!suite || strcmp(suite, o->suite))
		return log_fail(-EEXIST,
				"folder %s has a run of the suite '%s', not of '%s'; choose "
				"another folder",
				run->dir, suite ? suite : "?", o->suite);
	json_object_set_new(run->run, "end", json_null());
	json_array_append_new(list_of(run->run, "resumed"), now());
	return result_run_write(run);
}

/* The folder is made, or taken over from a process that has ended. */
static int lock_folder(struct result_run *run)
{
	int ret = files_make_dir(run->dir);

	if (ret)
		return ret;
	run->dir_fd = open(run->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (run->dir_fd < 0 || flock(run->dir_fd, LOCK_EX | LOCK_NB)) {
		ret = errno == EWOULDBLOCK ? -EBUSY : -errno;
		log_error("folder %s: %s", run->dir,
			  ret == -EBUSY ? "another process writes its results there" :
					  strerror(-ret));
	}
	return ret;
}

/* What disturbs the run, in run.json; of earlier processes, too. */
static json_t *disturbance_of(const struct result_run *run)
{
	json_t *o = json_object_get(run->run, "disturbance");

	if (!json_is_object(o)) {
		json_object_set_new(run->run, "disturbance", json_object());
		o = json_object_get(run->run, "disturbance");
	}
	return o;
}

static void add_check(struct result_run *run, json_t *check)
{
	json_array_append_new(list_of(disturbance_of(run), "checks"), check);
}

void result_run_check(struct result_run *run, const char *at)
{
	if (run->checks && !(run->stop && atomic_load(run->stop)))
		add_check(run, disturbance_check(at));
}

/* machine.json: of the first process that had this folder. */
static int describe_machine(struct result_run *run, const struct result_options *o)
{
	json_t *machine, *floor = NULL;
	int ret = files_read_json(run->dir, MACHINE_FILE, &machine);

	if (ret && ret != -ENOENT)
		return ret;
	if (ret)
		machine = machine_describe(o->argc, o->argv);
	if (!machine)
		return -ENOMEM;
	if (!o->no_floor && !json_object_get(machine, "floor")) {
		floor = machine_floor(o->stop);
		if (!floor) {
			json_decref(machine);
			return o->stop && atomic_load(o->stop) ? -EINTR : -ENOMEM;
		}
		json_object_set_new(machine, "floor", floor);
		add_check(run, disturbance_check_of("begin", floor));
	}
	run->checks = !o->no_floor;
	if (run->checks && !floor)
		result_run_check(run, "begin");
	ret = ret || floor ? files_write_json(run->dir, MACHINE_FILE, machine) : 0;
	json_decref(machine);
	return ret;
}

static void free_run(struct result_run *run)
{
	if (run->dir_fd >= 0)
		close(run->dir_fd);
	json_decref(run->run);
	free(run->dir);
	free(run);
}

int result_run_open(const char *dir, const struct result_options *o,
		    struct result_run **out)
{
	struct result_run *run = calloc(1, sizeof(*run));
	char *cases = files_path(dir, "cases");
	int ret = -ENOMEM;

	if (!run || !cases)
		goto err_free;
	run->dir_fd = -1;
	run->no_csv = o->no_csv;
	run->stop = o->stop;
	run->dir = strdup(dir);
	if (run->dir)
		ret = lock_folder(run);
	if (ret)
		goto err_run;
	ret = files_read_json(dir, RUN_FILE, &run->run);
	if (!ret)
		ret = go_on(run, o);
	else if (ret == -ENOENT)
		ret = start_anew(run, o);
	ret = ret ?: files_make_dir(cases) ?: describe_machine(run, o);
	if (ret)
		goto err_run;
	free(cases);
	disturbance_now(&run->begun);
	*out = run;
	return 0;
err_run:
	free_run(run);
	run = NULL;
err_free:
	free(cases);
	free(run);
	return ret;
}

/* A share of this process and of those before it that had the folder, by their times. */
static void add_share(json_t *all, const json_t *mine, const char *key)
{
	double before_s = number_of(all, "processor_seconds");
	double s = number_of(mine, "processor_seconds");
	double before = number_of(all, key), share = number_of(mine, key);

	if (isnan(share))
		share = before;
	else if (!isnan(before) && !isnan(before_s))
		share = (before * before_s + share * s) / (before_s + s);
	json_object_set_new(all, key, number_json(share));
}

static void close_disturbance(struct result_run *run)
{
	json_t *all = disturbance_of(run), *mine;
	struct disturbance_times times;

	disturbance_now(&times);
	mine = disturbance_between(&run->begun, &times);
	add_share(all, mine, "stolen_percent");
	add_share(all, mine, "others_percent");
	json_object_set_new(all, "processor_seconds",
			    number_json(fmax(number_of(all, "processor_seconds"), 0) +
					number_of(mine, "processor_seconds")));
	json_decref(mine);
	json_object_set_new(all, "processors",
			    json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	disturbance_judge(all);
}

/* The unit of multiples is the best of all measurements of this run. */
static int keep_best_floor(const struct result_run *run)
{
	double best = number_of(disturbance_of(run), "floor_ns");
	json_t *machine, *line;
	int ret = files_read_json(run->dir, MACHINE_FILE, &machine);

	if (ret)
		return ret == -ENOENT ? 0 : ret;
	line = json_object_get(json_object_get(machine, "floor"), "cacheline_oneway_ns");
	if (best < number_of(line, "median")) {
		json_object_set_new(line, "median", number_json(best));
		json_object_set_new(line, "best", number_json(
			fmin(best, number_of(line, "best"))));
		ret = files_write_json(run->dir, MACHINE_FILE, machine);
	}
	json_decref(machine);
	return ret;
}

int result_run_close(struct result_run *run)
{
	int ret;

	if (!run)
		return 0;
	result_run_check(run, "end");
	close_disturbance(run);
	json_object_set_new(run->run, "end", now());
	ret = result_run_write(run);
	if (!ret && run->checks)
		ret = keep_best_floor(run);
	free_run(run);
	return ret;
}

void result_run_forget(struct result_run *run, const char *key, const char *id)
{
	json_t *list = list_of(run->run, key);

	for (size_t i = json_array_size(list); i-- > 0;) {
		json_t *e = json_array_get(list, i);
		const char *name = json_string_value(
			json_is_object(e) ? json_object_get(e, "id") : e);

		if (name && !strcmp(name, id))
			json_array_remove(list, i);
	}
}

int result_run_left_out(struct result_run *run, const char *id, const char *scenario,
			const char *reason)
{
	json_t *note = json_pack("{s:s, s:s*, s:s}", "id", id, "scenario", scenario,
				 "reason", reason);

	if (!note)
		return -ENOMEM;
	result_run_forget(run, "left_out", id);
	json_array_append_new(list_of(run->run, "left_out"), note);
	return result_run_write(run);
}
