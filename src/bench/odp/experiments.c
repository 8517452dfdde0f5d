/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench odp --experiment NAME|all`: the experiments and how they are printed. */
#define LOG_ROOM "bench/odp"
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "bench/kind/command.h"
#include "bench/odp/lab.h"
#include "bench/result/files.h"
#include "bench/result/number.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/nearest.h"
#include "util/options.h"

/* Of the numbers of requests; the source's own take a minute. */
#define SCALE 0.25
#define TRIALS 10

static const struct experiment {
	const char *name, *about;
	int (*run)(struct lab *l);
} experiments[] = {
	{ "timeouts", "how long a destination that never answers takes", lab_timeouts },
	{ "single", "one request whose page is missing", lab_single },
	{ "damming", "intervals in which a request gets lost until the timeout", lab_damming },
	{ "damming-more", "these over the RNR NAK delay and the number of READs",
	  lab_damming_more },
	{ "flood", "READs on many queue pairs that miss pages together", lab_flood },
	{ "stale", "queue pairs that do not learn that a page is there", lab_stale },
	{ "writes", "WRITEs, all of which a fault repeats", lab_writes },
	{ "applications", "READ then SEND, as ArgoDSM does it", lab_applications },
	{ "mitigations", "what a program can do by itself, each alone", lab_mitigations },
};

struct asked {
	const char *experiment;
	double scale;
	unsigned trials;
	bool json;
};

static void print_experiments(void)
{
	puts("\nexperiments:");
	for (size_t i = 0; i < ARRAY_SIZE(experiments); i++)
		printf("  %-14s %s\n", experiments[i].name, experiments[i].about);
}

static const struct option_entry table[] = {
	{ "--experiment NAME: the experiment, or all", OPTION_TEXT(struct asked, experiment) },
	{ "--scale X: X times as many requests as the source in flood, writes and mitigations "
	  "(0.25)",
	  OPTION_REAL(struct asked, scale, 0.01, 1) },
	{ "--trials N: runs of each point of the damming windows (10)",
	  OPTION_WHOLE(struct asked, trials, 1, 100) },
	{ "-j, --json: an array of rows", OPTION_FLAG(struct asked, json) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar bench odp",
	.synopsis = "--experiment NAME|all [OPTIONS]",
	.about = "Repeats an experiment of T. Fukuoka, \"ODP performance pitfalls of InfiniBand\"\n"
		 "(2021), by the model of an adapter in virtual time, and compares the figures.\n",
	.table = table,
	.print_more = print_experiments,
	.any_operands = true,
};

/* ---- running ---- */

static bool is_wanted(const struct experiment *e, const char *name)
{
	return !strcmp(name, "all") || !strcmp(name, e->name);
}

static bool is_known(const char *name)
{
	struct nearest near = NEAREST(name);
	bool known = false;
	char hint[100];

	for (size_t i = 0; i < ARRAY_SIZE(experiments); i++) {
		known |= is_wanted(&experiments[i], name);
		nearest_try(&near, experiments[i].name);
	}
	if (!known)
		log_error("there is no experiment '%s'%s; see busbar bench odp --experiment all "
			  "--help", name, nearest_hint(&near, hint, sizeof(hint)));
	return known;
}

static int run_in(const struct asked *a, const char *dir, json_t *rows)
{
	struct lab l = { .dir = dir, .stop = bench_catch_signals(), .scale = a->scale,
			 .trials = a->trials, .rows = rows };
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(experiments); i++) {
		if (!is_wanted(&experiments[i], a->experiment))
			continue;
		l.experiment = experiments[i].name;
		ret = experiments[i].run(&l);
	}
	json_decref(l.results);
	return ret;
}

static int run(const struct asked *a, json_t *rows)
{
	char *dir;
	int ret = files_make_temporary(&dir);

	if (ret)
		return ret;
	ret = run_in(a, dir, rows);
	files_remove_dir(dir);
	free(dir);
	return ret;
}

/* ---- printing ---- */

/* The longest text of a column. */
static int width_of(const json_t *rows, const char *name)
{
	size_t width = strlen(name), i;
	json_t *row;

	json_array_foreach(rows, i, row) {
		size_t n = strlen(text_of(row, name));

		width = n > width ? n : width;
	}
	return (int)width;
}

static void print_rows(const json_t *rows)
{
	static const char *const columns[] = { "figure", "what", "model", "source", "verdict" };
	const char *experiment = "";
	size_t i;
	json_t *row;

	json_array_foreach(rows, i, row) {
		if (strcmp(experiment, text_of(row, "experiment"))) {
			experiment = text_of(row, "experiment");
			printf("%s%s (a model, in virtual time)\n", i ? "\n" : "", experiment);
		}
		for (size_t k = 0; k < ARRAY_SIZE(columns); k++)
			printf("  %-*s", k + 1 < ARRAY_SIZE(columns) ?
						 width_of(rows, columns[k]) : 0,
			       text_of(row, columns[k]));
		putchar('\n');
	}
}

/* ---- the command ---- */

int bench_odp_experiments_main(int argc, char **argv)
{
	struct asked a = { .scale = SCALE, .trials = TRIALS };
	int ret = options_parse(&options, argc, argv, &a, NULL);
	json_t *rows;

	if (ret != OPTIONS_GO_ON)
		return ret;
	if (optind < argc)
		return log_fail(BENCH_USAGE, "'%s' is not an option here; an experiment has its own parameters",
				argv[optind]);
	if (!a.experiment || !is_known(a.experiment))
		return BENCH_USAGE;
	rows = json_array();
	ret = run(&a, rows);
	if (!ret && a.json) {
		json_dumpf(rows, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (!ret) {
		print_rows(rows);
	}
	json_decref(rows);
	return bench_status(ret);
}
