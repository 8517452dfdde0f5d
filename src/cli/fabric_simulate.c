/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar fabric simulate`: experiments on a subnet in virtual time; fabric/simulate/ carries them out. */
#include "cli/fabric_simulate.h"

#include <dirent.h>
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/fabric.h"
#include "util/log.h"
#include "util/options.h"

#define SUFFIX ".scenario"
#define PROGRESS_S 2 /* of silence before the first line */

static volatile sig_atomic_t stop;

static void on_signal(int number)
{
	(void)number;
	stop = 1;
}

struct settings {
	bool json, all, quiet, check, list, has_seed;
	uint64_t seed;
	const char *trace;
};

enum { SEED }; /* index in the table */

static const struct option_entry table[] = {
	[SEED] = { "-s, --seed N: another one than the scenario's",
		   OPTION_WHOLE(struct settings, seed, 0, INFINITY) },
	{ "-j, --json: the result as JSON, the same for each run of a scenario",
	  OPTION_FLAG(struct settings, json) },
	{ "-a, --all: in tables all flows and links, not the first 20", OPTION_FLAG(struct settings, all) },
	{ "-t, --trace FILE: each event as a line", OPTION_TEXT(struct settings, trace) },
	{ "-q, --quiet: no progress on standard error", OPTION_FLAG(struct settings, quiet) },
	{ "-c, --check: only reads the scenario", OPTION_FLAG(struct settings, check) },
	{ "--list: the scenarios of a folder with their titles", OPTION_FLAG(struct settings, list) },
	{ .text = NULL },
};

static const struct options command_line = {
	.program = "busbar fabric simulate",
	.synopsis = "[OPTIONS] SCENARIO\n--list FOLDER",
	.about = "Carries out an experiment on a subnet in virtual time: traffic without programs.\n",
	.table = table,
	.operands_min = 1,
	.operands_max = 1,
	.end = "Exit status: 0; 1 if something that the scenario expects does not hold, or it cannot\n"
	       "be carried out; 2 if the command line is wrong.\n",
};

/* ---- time of this machine ---- */

static double clock_s(clockid_t which)
{
	struct timespec t;

	clock_gettime(which, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct progress {
	double next_s;
	bool shown;
};

static void show_progress(void *arg, double share, uint64_t now_ps)
{
	struct progress *p = arg;
	double now = clock_s(CLOCK_MONOTONIC);

	if (now < p->next_s)
		return;
	p->next_s = now + 1;
	p->shown = true;
	fprintf(stderr, "%s%3.0f %%, %.3f us simulated%s", isatty(STDERR_FILENO) ? "\r" : "", 100 * share,
		(double)now_ps * 1e-6, isatty(STDERR_FILENO) ? "" : "\n");
}

/* ---- one scenario ---- */

static bool all_hold(const struct simulate_scenario *s, const struct simulate_result *r)
{
	for (uint32_t i = 0; i < s->expect_count; i++)
		if (!r->verdicts[i].holds)
			return false;
	return true;
}

static int show(const struct simulate_scenario *s, const struct simulate_result *r, const struct settings *set,
		double took_s)
{
	if (set->json) {
		fabric_simulate_json(s, r, stdout);
	} else {
		fabric_simulate_print(s, r, set->all);
		printf("\n%.3f s of processor time: %.2f million packet-hops/s, %.2f million events/s\n", took_s,
		       (double)r->hops / took_s * 1e-6, (double)r->events / took_s * 1e-6);
	}
	if (fflush(stdout)) {
		log_error("standard output: %s", strerror(errno));
		return CLI_FAILED;
	}
	return all_hold(s, r) && !r->interrupted ? CLI_OK : CLI_FAILED;
}

static int run(struct simulate_scenario *s, const struct settings *set)
{
	struct progress progress = { .next_s = clock_s(CLOCK_MONOTONIC) + PROGRESS_S };
	struct simulate_options options = {
		.stop = &stop, .progress = set->quiet ? NULL : show_progress, .arg = &progress,
	};
	struct simulate_result *r;
	double began = clock_s(CLOCK_PROCESS_CPUTIME_ID), took;
	int ret;

	if (set->has_seed)
		s->seed = set->seed;
	options.trace = set->trace ? fopen(set->trace, "we") : NULL;
	if (set->trace && !options.trace) {
		log_error("%s: %s", set->trace, strerror(errno));
		return CLI_FAILED;
	}
	ret = simulate_run(s, &options, &r);
	took = clock_s(CLOCK_PROCESS_CPUTIME_ID) - began;
	if (progress.shown && isatty(STDERR_FILENO))
		fputc('\n', stderr);
	if (options.trace && (ferror(options.trace) | fclose(options.trace))) {
		log_error("%s: the trace could not be written completely", set->trace);
		if (!ret)
			simulate_result_free(r);
		return CLI_FAILED;
	}
	if (ret)
		return CLI_FAILED;
	ret = show(s, r, set, took > 0 ? took : 1e-9);
	simulate_result_free(r);
	return ret;
}

/* ---- the list ---- */

static int is_scenario(const struct dirent *d)
{
	size_t length = strlen(d->d_name), suffix = strlen(SUFFIX);

	return length > suffix && !strcmp(d->d_name + length - suffix, SUFFIX);
}

static int list(const char *folder)
{
	struct dirent **entries;
	int count = scandir(folder, &entries, is_scenario, alphasort), status = CLI_OK;

	if (count < 0) {
		log_error("%s: %s", folder, strerror(errno));
		return CLI_FAILED;
	}
	for (int i = 0; i < count; i++) {
		char path[4096], why[512];
		struct simulate_scenario *s;

		snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
		if (simulate_scenario_read_file(path, &s, why, sizeof(why))) {
			log_error("%s", why);
			status = CLI_FAILED;
		} else {
			printf("%-40s %s\n", path, s->title);
			simulate_scenario_free(s);
		}
		free(entries[i]);
	}
	free(entries);
	return status;
}

int cli_fabric_simulate(int argc, char **argv)
{
	const struct sigaction act = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };
	struct simulate_scenario *s;
	struct settings set = { 0 };
	char why[512];
	uint64_t given;
	int status = options_parse(&command_line, argc, argv, &set, &given);

	if (status >= 0)
		return status;
	set.has_seed = given >> SEED & 1;
	if (set.list)
		return list(argv[optind]);
	if (simulate_scenario_read_file(argv[optind], &s, why, sizeof(why))) {
		log_error("%s", why);
		return CLI_FAILED;
	}
	sigaction(SIGINT, &act, NULL);
	sigaction(SIGTERM, &act, NULL);
	status = set.check ? CLI_OK : run(s, &set);
	simulate_scenario_free(s);
	return status;
}
