/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench shapes DIR`. */
#define LOG_ROOM "bench"
#include <getopt.h>
#include <stdio.h>

#include "bench/suite/commands.h"
#include "bench/result/shapes.h"
#include "bench/result/verdicts.h"
#include "util/log.h"

static void print_help(FILE *f)
{
	fputs("usage: busbar bench shapes DIR [--json]\n"
	      "\n"
	      "Says which shapes of the source's results this run shows, too: what is faster\n"
	      "than what, by the interval of the ratio. A shape that does not hold is a result,\n"
	      "not an error. 'not decidable here' says why.\n"
	      "\n"
	      "  -j, --json   an object, as verdicts.json in the folder\n"
	      "  -h, --help   this text\n", f);
}

int bench_shapes_main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool json = false;
	json_t *verdicts;
	int opt;

	while ((opt = getopt_long(argc, argv, "jh", longs, NULL)) != -1) {
		if (opt == 'h') {
			print_help(stdout);
			return BENCH_OK;
		}
		if (opt != 'j')
			return BENCH_USAGE;
		json = true;
	}
	if (optind != argc - 1) {
		log_error("a folder is needed: busbar bench shapes DIR");
		return BENCH_USAGE;
	}
	if (verdicts_read(argv[optind], &verdicts))
		return BENCH_FAILED;
	if (json) {
		json_dumpf(verdicts, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
		putchar('\n');
	} else {
		shapes_print(stdout, json_object_get(verdicts, "shapes"), true);
		verdicts_print_doubts(stdout, verdicts);
	}
	json_decref(verdicts);
	return BENCH_OK;
}
