/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar bench compare A B` and `busbar bench shapes DIR`: what two runs say, and what one does. */
#define LOG_ROOM "bench"
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>

#include "bench/result/compare.h"
#include "bench/result/number.h"
#include "bench/result/shapes.h"
#include "bench/result/show.h"
#include "bench/result/verdicts.h"
#include "bench/suite/commands.h"
#include "util/log.h"
#include "util/options.h"

#define FLOOR_KEY "cacheline_oneway_ns"

static double floor_of(const struct result_folder *s)
{
	const json_t *floor = json_object_get(s->machine, "floor");

	return number_of(json_object_get(floor, FLOOR_KEY), "median");
}

/* Names of cases that only `a` has. */
static json_t *only_in(const struct result_folder *a, const struct result_folder *b)
{
	json_t *list = json_array();

	for (size_t i = 0; i < a->count; i++)
		if (!result_folder_find(b, a->cases[i].id))
			json_array_append_new(list, json_string(a->cases[i].id));
	return list;
}

static int add_latency(void *list, const char *id, const char *latency,
		       const struct compare_latency *c)
{
	return json_array_append_new(list, json_pack(
		"{s:s, s:s, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:s}", "id", id,
		"latency", latency, "count_a", (json_int_t)c->count_a, "count_b",
		(json_int_t)c->count_b, "median_a_ns", number_json(c->median_a),
		"median_b_ns", number_json(c->median_b), "ratio", number_json(c->ratio),
		"low", number_json(c->low), "high", number_json(c->high), "verdict",
		compare_verdict_name(c->verdict))) ? -ENOMEM : 0;
}

/* All that is printed, as one object. */
static int compare(struct result_folder *a, struct result_folder *b, json_t **out)
{
	json_t *list = json_array();
	int ret = compare_folders(a, b, add_latency, list);

	*out = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "a", a->dir, "b", b->dir,
			 "floor_a_ns", number_json(floor_of(a)), "floor_b_ns", number_json(floor_of(b)),
			 "cases", list, "only_a", only_in(a, b), "only_b", only_in(b, a));
	return ret;
}

static const char *known(const json_t *o, const char *key)
{
	const char *text = text_of(o, key);

	return *text ? text : "?";
}

static void print_side(const char *name, const struct result_folder *s)
{
	char buf[32];
	double floor = floor_of(s);

	printf("%s  %s: %s, %s, %s", name, s->dir, known(s->run, "suite"),
	       known(s->run, "start"),
	       known(json_object_get(s->machine, "cpu"), "model"));
	if (isfinite(floor))
		printf(", cache line %s", show_ns(floor, buf));
	putchar('\n');
}

static void print_ns(const json_t *o, const char *key)
{
	double v = number_of(o, key);
	char buf[32];

	printf(" %10s", isnan(v) ? "-" : show_ns(v, buf));
}

static void print_list(const char *what, const json_t *list)
{
	const json_t *id;
	size_t i;

	if (!json_array_size(list))
		return;
	printf("\nonly in %s:", what);
	json_array_foreach(list, i, id)
		printf(" %s", json_string_value(id));
	putchar('\n');
}

static void print_machines(const struct result_folder *a, const struct result_folder *b)
{
	double ratio = floor_of(b) / floor_of(a);

	if (isfinite(ratio) && (ratio > 1.1 || ratio < 0.9))
		printf("note: the machine itself was %s when B was measured: a cache line took "
		       "%.2f times as long\n", ratio > 1 ? "slower" : "faster", ratio);
}

static void print_text(const struct result_folder *a, const struct result_folder *b, const json_t *all)
{
	const json_t *list = json_object_get(all, "cases"), *c;
	size_t i;

	print_side("A", a);
	print_side("B", b);
	print_machines(a, b);
	printf("\n%-32s %-12s %10s %10s %8s %17s  B is\n", "case", "latency", "median A",
	       "median B", "B / A", "95 % interval");
	json_array_foreach(list, i, c) {
		double ratio = number_of(c, "ratio");
		double low = number_of(c, "low"), high = number_of(c, "high");
		char interval[40] = "-";

		printf("%-32s %-12s", known(c, "id"), known(c, "latency"));
		print_ns(c, "median_a_ns");
		print_ns(c, "median_b_ns");
		if (!isnan(low) && !isnan(high))
			snprintf(interval, sizeof(interval), "%.3f to %.3f", low, high);
		if (isnan(ratio))
			printf(" %8s", "-");
		else
			printf(" %8.3f", ratio);
		printf(" %17s  %s\n", interval, known(c, "verdict"));
	}
	if (!json_array_size(list))
		puts("(the runs have no latency of a case in common)");
	print_list("A", json_object_get(all, "only_a"));
	print_list("B", json_object_get(all, "only_b"));
}

static int compare_dirs(const char *dir_a, const char *dir_b, bool json)
{
	struct result_folder a, b = { .dir = NULL };
	json_t *all = NULL;
	int ret = result_folder_open(dir_a, &a) ?: result_folder_open(dir_b, &b) ?:
		  compare(&a, &b, &all);

	if (!ret && json) {
		json_dumpf(all, stdout, JSON_INDENT(2));
		putchar('\n');
	} else if (!ret) {
		print_text(&a, &b, all);
	}
	json_decref(all);
	result_folder_close(&a);
	result_folder_close(&b);
	return ret ? BENCH_FAILED : BENCH_OK;
}

/* ---- the command lines ---- */

struct asked {
	bool json;
};

static const struct option_entry compare_option_table[] = {
	{ "-j, --json: one JSON object", OPTION_FLAG(struct asked, json) },
	{ .text = NULL },
};

static const struct options compare_options = {
	.program = "busbar bench compare",
	.synopsis = "A B [--json]",
	.about = "Compares the medians of the cases that two runs have both. The interval holds\n"
		 "95 % of the ratios of medians of 1000 bootstrap samples, of blocks of values that\n"
		 "were measured one after the other; where it does not contain 1, B is faster or\n"
		 "slower. It cannot know what changes from run to run: compare several.\n",
	.table = compare_option_table,
	.any_operands = true,
};

int bench_compare_main(int argc, char **argv)
{
	struct asked a = { .json = false };
	int status = options_parse(&compare_options, argc, argv, &a, NULL);

	if (status != OPTIONS_GO_ON)
		return status;
	if (optind != argc - 2)
		return log_fail(BENCH_USAGE, "two folders are needed: busbar bench compare A B");
	return compare_dirs(argv[optind], argv[optind + 1], a.json);
}

static const struct option_entry shapes_option_table[] = {
	{ "-j, --json: an object, as verdicts.json in the folder",
	  OPTION_FLAG(struct asked, json) },
	{ .text = NULL },
};

static const struct options shapes_options = {
	.program = "busbar bench shapes",
	.synopsis = "DIR [--json]",
	.about = "Says which shapes of the source's results this run shows, too: what is faster\n"
		 "than what, by the interval of the ratio. A shape that does not hold is a result,\n"
		 "not an error. 'not decidable here' says why.\n",
	.table = shapes_option_table,
	.any_operands = true,
};

int bench_shapes_main(int argc, char **argv)
{
	struct asked a = { .json = false };
	int status = options_parse(&shapes_options, argc, argv, &a, NULL);
	json_t *verdicts;

	if (status != OPTIONS_GO_ON)
		return status;
	if (optind != argc - 1)
		return log_fail(BENCH_USAGE, "a folder is needed: busbar bench shapes DIR");
	if (verdicts_read(argv[optind], &verdicts))
		return BENCH_FAILED;
	if (a.json) {
		json_dumpf(verdicts, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
		putchar('\n');
	} else {
		shapes_print(stdout, json_object_get(verdicts, "shapes"), true);
		verdicts_print_doubts(stdout, verdicts);
	}
	json_decref(verdicts);
	return BENCH_OK;
}
