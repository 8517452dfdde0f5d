/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench floor`: the command that runs the measurements. */
#define LOG_ROOM "bench"
#include "bench/floor/floor.h"

#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

static void print_help(FILE *out)
{
	fputs("usage: busbar bench floor [--json] [--cpus A,B] [NAME...]\n"
	      "\n"
	      "Measures what this machine can do at best, in less than four seconds.\n"
	      "\n"
	      "  -j, --json      one JSON object instead of a table\n"
	      "  -c, --cpus A,B  the CPUs of the two processes (the first two allowed)\n"
	      "  -h, --help      this text\n"
	      "\n"
	      "names (all when none is given):\n", out);
	for (size_t i = 0; i < floor_measure_count; i++)
		fprintf(out, "  %-22s %s\n", floor_measures[i].name,
			floor_measures[i].label);
}

static int parse_cpus(const char *text, struct floor_cpus *cpus)
{
	int end = 0;

	if (sscanf(text, "%d,%d%n", &cpus->first, &cpus->second, &end) != 2 ||
	    text[end] || cpus->first < 0 || cpus->second < 0 ||
	    cpus->first >= CPU_SETSIZE || cpus->second >= CPU_SETSIZE ||
	    cpus->first == cpus->second) {
		log_error("--cpus '%s' is not usable, expected two different CPU numbers such as 0,1",
			  text);
		return -EINVAL;
	}
	return 0;
}

/* Marks the measurements that were asked for; false, logged: an unknown name. */
static bool select_measures(char **names, int count, bool wanted[])
{
	for (size_t i = 0; i < floor_measure_count; i++)
		wanted[i] = count == 0;
	for (int n = 0; n < count; n++) {
		size_t i = 0;

		while (i < floor_measure_count &&
		       strcmp(names[n], floor_measures[i].name))
			i++;
		if (i == floor_measure_count) {
			log_error("no measurement '%s', see 'busbar bench floor --help'",
				  names[n]);
			return false;
		}
		wanted[i] = true;
	}
	return true;
}

int bench_floor_main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "cpus", required_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	struct floor_result results[FLOOR_MEASURES_MAX];
	bool wanted[FLOOR_MEASURES_MAX], json = false, failed = false;
	struct floor_cpus cpus;
	int opt, err = floor_default_cpus(&cpus);

	while ((opt = getopt_long(argc, argv, "jc:h", options, NULL)) != -1) {
		if (opt == 'h') {
			print_help(stdout);
			return 0;
		}
		if (opt == '?' || (opt == 'c' && parse_cpus(optarg, &cpus)))
			return 2;
		json |= opt == 'j';
	}
	if (!select_measures(argv + optind, argc - optind, wanted))
		return 2;
	if (err) {
		log_error("the CPUs of this process are unknown: %s",
			  strerror(-err));
		return 1;
	}
	clock_init();
	for (size_t i = 0; i < floor_measure_count; i++) {
		results[i].err = -ECANCELED;
		if (wanted[i])
			floor_measure_run(&floor_measures[i], &cpus, &results[i]);
		failed |= wanted[i] && results[i].err;
	}
	(json ? floor_print_json : floor_print_text)(&cpus, results, stdout);
	return failed;
}
