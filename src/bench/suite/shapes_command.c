/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench shapes DIR`. */
#define LOG_ROOM "bench"
#include <getopt.h>
#include <stdio.h>

#include "bench/suite/commands.h"
#include "bench/result/shapes.h"
#include "util/log.h"

static void print_help(FILE *f)
{
	fputs("usage: busbar bench shapes DIR [--json]\n"
	      "\n"
	      "Says which shapes of the source's results this run shows, too: what is faster\n"
	      "than what. A shape that does not hold is a result, not an error.\n"
	      "\n"
	      "  -j, --json   an array\n"
	      "  -h, --help   this text\n", f);
}

int bench_shapes_main(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	json_t *run, *machine, *shapes;
	struct result_read *cases;
	bool json = false;
	size_t count;
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
	if (result_read_run(argv[optind], &run, &machine, &cases, &count))
		return BENCH_FAILED;
	shapes = shapes_evaluate(cases, count);
	if (shapes && json) {
		json_dumpf(shapes, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (shapes) {
		shapes_print(stdout, shapes, true);
	}
	json_decref(shapes);
	json_decref(run);
	json_decref(machine);
	result_read_free(cases, count);
	return shapes ? BENCH_OK : BENCH_FAILED;
}
