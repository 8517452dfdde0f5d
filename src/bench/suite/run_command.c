/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench run SUITE` and `busbar bench list`. */
#define LOG_ROOM "bench"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "bench/suite/commands.h"
#include "bench/suite/suite.h"
#include "bench/suite/live.h"
#include "bench/kind/parameters.h"
#include "bench/suite/runner.h"
#include "bench/result/files.h"
#include "bench/result/number.h"
#include "bench/result/shapes.h"
#include "bench/result/verdicts.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/options.h"

struct run_options {
	struct runner_options runner;
	struct suite_overrides overrides;
	struct place place;

	const char *suite, *out;
	bool resume, list, no_csv, no_floor;
};

/* Kinds without such a parameter get processors and priority from this process (place.h). */
static int set_place(struct run_options *o, const char *key, const char *value)
{
	int ret = suite_overrides_add(&o->overrides, key, value);

	for (size_t i = 0; !ret && i < o->overrides.count; i++)
		o->overrides.list[i].used |= !strcmp(o->overrides.list[i].key, key);
	return ret;
}

/* The value is that of the parameter `data`, or KEY=VALUE. */
static int take_parameter(const struct option_given *g)
{
	const char *key = g->entry->data;
	struct run_options *o = g->to;
	int ret = 0;

	if (!key)
		return suite_overrides_parse(&o->overrides, g->value) ? OPTIONS_WRONG : OPTIONS_GO_ON;
	if (!strcmp(key, "device"))
		return suite_overrides_add(&o->overrides, key, g->value) ? OPTIONS_WRONG : OPTIONS_GO_ON;
	ret = !strcmp(key, "cpus") ? place_parse_cpus(&o->place, g->value) :
				     place_parse_priority(&o->place, g->value);
	o->runner.place = &o->place;
	return ret || set_place(o, key, g->value) ? OPTIONS_WRONG : OPTIONS_GO_ON;
}

#define RUN struct run_options
static const struct option_entry table[] = {
	{ "-o, --out DIR: the folder (busbar-SUITE-DATE-TIME)", OPTION_TEXT(RUN, out) },
	{ "-r, --resume: measure the cases that the folder lacks", OPTION_FLAG(RUN, resume) },
	{ "-s, --scale X: X times as many samples (1)", OPTION_REAL(RUN, runner.scale, 1e-9, 1e6) },
	{ "-c, --ci: as few samples as the suite has for a short run",
	  OPTION_FLAG(RUN, runner.ci) },
	{ "-k, --only PATTERN: cases whose id or scenario is like that ('A?_RC*')",
	  OPTION_TEXT(RUN, runner.only) },
	{ "-d, --device NAME: the adapter of all cases that use one",
	  OPTION_CALL(take_parameter, "device") },
	{ "--set KEY=VALUE...: a parameter of all cases that have it, in the place of the suite's",
	  OPTION_CALL(take_parameter, NULL) },
	{ "--cpus A,B: the processors of all cases", OPTION_CALL(take_parameter, "cpus") },
	{ "--priority N: SCHED_FIFO priority of all cases",
	  OPTION_CALL(take_parameter, "priority") },
	{ "-l, --list: show the cases and do not measure", OPTION_FLAG(RUN, list) },
	{ "--no-csv: no raw.csv beside raw.bin", OPTION_FLAG(RUN, no_csv) },
	{ "--no-floor: do not measure the machine's floor first (4 s)",
	  OPTION_FLAG(RUN, no_floor) },
	{ .text = NULL },
};

static const struct options command_options = {
	.program = "busbar bench run",
	.synopsis = "SUITE|FILE [OPTIONS]",
	.about = "Measures the cases of a suite into a folder, which 'busbar report' draws and\n"
		 "'busbar bench compare' compares. 'busbar bench list' shows the suites.\n",
	.table = table,
	.end = "Exit status: 0 all measured that is possible here, 1 a case failed, 2 the command\n"
	       "line or the suite is wrong, 130 interrupted (--resume goes on).\n",
	.any_operands = true,
};

/* OPTIONS_GO_ON, or the exit status. */
static int parse(int argc, char **argv, struct run_options *o)
{
	int status = options_parse(&command_options, argc, argv, o, NULL);

	if (status != OPTIONS_GO_ON)
		return status;
	if (optind != argc - 1)
		return log_fail(BENCH_USAGE, optind == argc ?
				"which suite? 'busbar bench list' shows all" : "one suite at a time");
	o->suite = argv[optind];
	if (o->resume && !o->out)
		return log_fail(BENCH_USAGE, "--resume needs the folder of the run: --out DIR");
	return OPTIONS_GO_ON;
}

static int list_cases(const struct suite *s, const struct runner_options *o)
{
	double all = 0;
	size_t count = 0;
	char text[32];

	printf("%s: %s\n%s\n\n", s->name, s->title, s->question);
	for (size_t i = 0; i < s->count; i++) {
		const struct suite_case *c = &s->cases[i];
		const char *command = text_of(c->description, "command");
		double seconds = runner_seconds(o, c);

		if (!runner_wants(o, c))
			continue;
		count++;
		all += seconds;
		printf("%-36s %9s  %s\n", c->id, live_duration(seconds, text),
		       c->kind ? command : c->why);
	}
	printf("\n%zu cases, about %s\n", count, live_duration(all, text));
	return BENCH_OK;
}

/* busbar-quick-20260131-235959 */
static char *default_dir(const struct suite *s)
{
	time_t t = time(NULL);
	char stamp[40], *dir;
	struct tm tm;

	localtime_r(&t, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	return asprintf(&dir, "busbar-%s-%s", s->name, stamp) < 0 ? NULL : dir;
}

/* A run is not mixed with an older one by mistake. */
static bool may_use(const char *dir, const struct run_options *o)
{
	char *file = files_path(dir, "run.json");
	bool there = file && !access(file, F_OK);

	free(file);
	if (there && !o->resume)
		log_error("%s has results already; --resume goes on there, or choose another "
			  "--out", dir);
	if (!there && o->resume)
		log_error("%s has no run to go on with: there is no run.json", dir);
	return there == o->resume;
}

static void print_overrides(const struct run_options *o)
{
	for (size_t i = 0; i < o->overrides.count; i++) {
		const struct suite_override *one = &o->overrides.list[i];
		bool place = (o->place.pinned && !strcmp(one->key, "cpus")) ||
			     (o->place.priority && !strcmp(one->key, "priority"));

		if (place)
			printf(" --%s ", one->key);
		else
			printf(" --set %s=", one->key);
		parameters_print_word(stdout, one->value);
	}
}

/* The same command, to measure what is missing. */
static void print_resume(const struct suite *s, const struct run_options *o,
			 const char *dir)
{
	fputs("interrupted; go on with\n  busbar bench run ", stdout);
	parameters_print_word(stdout, strpbrk(o->suite, "/.") ? s->file : s->name);
	fputs(" --out ", stdout);
	parameters_print_word(stdout, dir);
	fputs(" --resume", stdout);
	if (o->runner.ci)
		fputs(" --ci", stdout);
	if (o->runner.scale != 1)
		printf(" --scale %.15g", o->runner.scale);
	if (o->runner.only) {
		fputs(" --only ", stdout);
		parameters_print_word(stdout, o->runner.only);
	}
	print_overrides(o);
	if (o->no_csv)
		fputs(" --no-csv", stdout);
	if (o->no_floor)
		fputs(" --no-floor", stdout);
	putchar('\n');
}

/* Into the folder; and what of the source's results this run shows, nothing where the suite is
 * of other things. */
static void judge(const char *dir)
{
	const json_t *shape, *shapes;
	json_t *verdicts;
	bool any = false;
	size_t i;

	if (verdicts_read(dir, &verdicts))
		return;
	files_write_json(dir, VERDICTS_FILE, verdicts);
	shapes = json_object_get(verdicts, "shapes");
	json_array_foreach(shapes, i, shape)
		any |= strcmp(text_of(shape, "verdict"), SHAPE_LACKS);
	if (any) {
		puts("\nthe source's results, and these:");
		shapes_print(stdout, shapes, false);
	}
	putchar('\n');
	verdicts_print_doubts(stdout, verdicts);
	json_decref(verdicts);
}

static int print_end(const struct runner_counts *n, const struct suite *s,
		     const struct run_options *o, const char *dir, int ret)
{
	judge(dir);
	printf("%zu of %zu cases measured", n->measured + n->there_already, n->wanted);
	if (n->there_already)
		printf(" (%zu of them before)", n->there_already);
	if (n->left_out)
		printf(", %zu left out", n->left_out);
	if (n->failed)
		printf(", %zu failed", n->failed);
	printf("; results in %s\n", dir);
	if (ret == -EINTR)
		print_resume(s, o, dir);
	return ret ? bench_status(ret) : n->failed ? BENCH_FAILED : BENCH_OK;
}

/* In the first line, not behind a hundred cases that were left out. */
static void print_lacks(const struct suite *s, const struct runner_options *o)
{
	char packages[400];
	size_t count = runner_lacks(s, o, packages, sizeof(packages)), all = 0;

	for (size_t i = 0; i < s->count; i++)
		all += runner_wants(o, &s->cases[i]);
	if (count)
		printf("%zu of %zu cases are left out for want of packages; to have them: apt-get "
		       "install %s%s\n", count, all, packages,
		       strstr(packages, "-dev") ? ", and build again" : "");
}

static int measure(const struct suite *s, struct run_options *o, const char *dir, int argc,
		   char **argv)
{
	char **command = bench_command(argc, argv);
	const struct result_options options = {
		.suite = s->name, .argc = command ? argc + 2 : 0, .argv = command,
		.no_csv = o->no_csv, .no_floor = o->no_floor, .stop = o->runner.stop,
	};
	struct runner_counts counts = { .wanted = 0 };
	struct result_run *run;
	int ret, end;

	print_lacks(s, &o->runner);
	printf("%s: %s\nresults in %s\n", s->name, s->title, dir);
	fflush(stdout);
	ret = result_run_open(dir, &options, &run);
	free(command);
	/* The folder is begun before the floor is measured. */
	if (ret == -EINTR)
		print_resume(s, o, dir);
	if (ret)
		return bench_status(ret);
	ret = runner_run(s, run, &o->runner, &counts);
	end = result_run_close(run);
	return print_end(&counts, s, o, dir, ret ? ret : end);
}

static int run_suite(struct run_options *o, int argc, char **argv)
{
	int ret = BENCH_USAGE;
	struct suite *s;
	char *dir;

	if (suite_load(o->suite, o->runner.ci, &o->overrides, &s))
		return ret;
	if (o->list) {
		ret = list_cases(s, &o->runner);
		goto out;
	}
	dir = o->out ? strdup(o->out) : default_dir(s);
	if (dir && may_use(dir, o)) {
		o->runner.stop = bench_catch_signals();
		ret = place_is_allowed(&o->place) ? measure(s, o, dir, argc, argv) :
						    BENCH_FAILED;
	}
	free(dir);
out:
	suite_free(s);
	return ret;
}

int bench_run_main(int argc, char **argv)
{
	struct run_options o = { .runner = { .scale = 1 } };
	int ret = parse(argc, argv, &o);

	if (ret == OPTIONS_GO_ON) {
		clock_init();
		ret = run_suite(&o, argc, argv);
	}
	suite_overrides_free(&o.overrides);
	return ret;
}

static void show_suite(const char *name, const char *title, const char *path)
{
	printf("  %-16s %s\n", name, title);
}

int bench_list_main(int argc, char **argv)
{
	if (argc > 1) {
		bool help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");

		fputs("usage: busbar bench list\n\nThe suites and the kinds of benchmarks.\n",
		      help ? stdout : stderr);
		return help ? BENCH_OK : BENCH_USAGE;
	}
	puts("suites, for 'busbar bench run':");
	suite_list(show_suite);
	puts("\nkinds, for 'busbar bench KIND' and for suites:");
	for (size_t i = 0; bench_kind_at(i); i++)
		printf("  %-16s %s\n", bench_kind_at(i)->name, bench_kind_at(i)->summary);
	return BENCH_OK;
}
