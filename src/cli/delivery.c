/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar delivery`: finds the samples of one file (sent) in another one (received).
 * Matches them by sequence number and reports losses, order, equality bit by bit and
 * the one-way latency. This file is the command line and the table; bench/delivery reads the
 * samples and matches them.
 */
#include "cli/cli.h"

#include <getopt.h>
#include <jansson.h>
#include <math.h>

#include "bench/delivery/match.h"
#include "util/log.h"
#include "util/options.h"

struct settings {
	const char *format, *types;
	struct delivery_options match;
	bool json, expect_lossless;
};

static const struct option_entry table[] = {
	{ "-f, --format FMT: format of both files: villas.human, csv, tsv or {\"type\": \"csv\", ...}; "
			      "default by the file's name", OPTION_TEXT(struct settings, format) },
	{ "-t, --types TYPES: types of the values, such as 12f3i; default floats",
	  OPTION_TEXT(struct settings, types) },
	{ "-e, --epsilon EPS: values may differ by EPS; default: not by a bit",
	  OPTION_REAL(struct settings, match.epsilon, 0, INFINITY) },
	{ "-v, --ignore-values: do not compare values", OPTION_FLAG(struct settings, match.ignore_values) },
	{ "-T, --ignore-times: do not compare origin timestamps",
	  OPTION_FLAG(struct settings, match.ignore_times) },
	{ "-s, --ignore-sequence: match by position instead of sequence number",
	  OPTION_FLAG(struct settings, match.ignore_sequence) },
	{ "-l, --expect-lossless: losses, duplicates and disorder are differences",
	  OPTION_FLAG(struct settings, expect_lossless) },
	{ "-j, --json: print a JSON object", OPTION_FLAG(struct settings, json) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar delivery",
	.synopsis = "[OPTIONS] SENT RECEIVED",
	.about = "Compares the samples of two files, matched by sequence number.\n",
	.table = table,
	.operands_min = 2,
	.operands_max = 2,
	.end = "Exit status: 0 equal, 1 different, 2 wrong usage or unreadable.\n",
};

static int load(const struct settings *s, const char *path,
		struct delivery_samples *out)
{
	return delivery_load(&(struct delivery_file){
				     .path = path,
				     .format = s->format ?: delivery_format_by_name(path),
				     .types = s->types },
			     out);
}

static const char *equality(uint64_t differing)
{
	return differing ? "DIFFERENT" : "equal";
}

static void print_latency(const char *name, const int64_t ns[5], const char *from)
{
	printf("%s min %.3f p50 %.3f p99 %.3f p99.9 %.3f max %.3f, %s\n", name,
	       (double)ns[0] / 1e3, (double)ns[1] / 1e3, (double)ns[2] / 1e3,
	       (double)ns[3] / 1e3, (double)ns[4] / 1e3, from);
}

static void print_table(const struct delivery_result *r, const struct settings *s)
{
	printf("sent               %12ju\n", (uintmax_t)r->sent);
	printf("received           %12ju\n", (uintmax_t)r->received);
	printf("before connection  %12ju\n", (uintmax_t)r->before);
	printf("lost               %12ju  %.4f %%\n", (uintmax_t)r->lost,
	       r->sent > r->before ? 100.0 * (double)r->lost /
					     (double)(r->sent - r->before) :
				     0.0);
	printf("out of order       %12ju\n", (uintmax_t)r->out_of_order);
	printf("duplicates         %12ju\n", (uintmax_t)r->duplicates);
	printf("never sent         %12ju\n", (uintmax_t)r->unknown);
	if (!s->match.ignore_values)
		printf("values             %12s  %s%ju of %ju samples differ\n",
		       equality(r->values_differ),
		       s->match.epsilon > 0 ? "within epsilon, " :
					      "bit by bit, ",
		       (uintmax_t)r->values_differ, (uintmax_t)r->matched);
	if (!s->match.ignore_times)
		printf("origin timestamps  %12s  %ju of %ju samples differ\n",
		       equality(r->times_differ), (uintmax_t)r->times_differ,
		       (uintmax_t)r->matched);
	if (!r->latency_count) {
		puts("one-way latency    no receive timestamps");
		return;
	}
	print_latency("one-way latency us", r->latency_ns, "from the origin");
	if (r->service_count)
		print_latency("service latency us", r->service_ns,
			      "from the receive time in SENT");
}

static json_t *latency_json(uint64_t count, const int64_t ns[5])
{
	if (!count)
		return json_null();
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "count",
			 (json_int_t)count, "min", (json_int_t)ns[0], "p50",
			 (json_int_t)ns[1], "p99", (json_int_t)ns[2], "p99.9",
			 (json_int_t)ns[3], "max", (json_int_t)ns[4]);
}

static void print_json(const struct delivery_result *r, bool equal)
{
	json_t *j = json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:b, s:o, s:o}",
			      "sent", (json_int_t)r->sent,
			      "received", (json_int_t)r->received,
			      "matched", (json_int_t)r->matched,
			      "before_connection", (json_int_t)r->before,
			      "lost", (json_int_t)r->lost,
			      "out_of_order", (json_int_t)r->out_of_order,
			      "duplicates", (json_int_t)r->duplicates,
			      "never_sent", (json_int_t)r->unknown,
			      "values_differ", (json_int_t)r->values_differ,
			      "origins_differ", (json_int_t)r->times_differ,
			      "equal", equal, "latency_ns",
			      latency_json(r->latency_count, r->latency_ns),
			      "service_latency_ns",
			      latency_json(r->service_count, r->service_ns));

	json_dumpf(j, stdout, JSON_INDENT(2));
	putchar('\n');
	json_decref(j);
}

static bool is_equal(const struct delivery_result *r, const struct settings *s)
{
	if (r->values_differ || r->times_differ || r->unknown)
		return false;
	return !s->expect_lossless || (!r->lost && !r->out_of_order &&
				       !r->duplicates && r->received > 0);
}

int cli_delivery(int argc, char **argv)
{
	struct settings s = { 0 };
	struct delivery_samples sent = { 0 }, received = { 0 };
	struct delivery_result r;
	int status = options_parse(&options, argc, argv, &s, NULL);
	bool equal;

	if (status >= 0)
		return status;
	s.match.differences = s.json ? NULL : stdout;
	status = CLI_USAGE;
	if (load(&s, argv[optind], &sent) ||
	    load(&s, argv[optind + 1], &received))
		goto out;
	if (delivery_match(&sent, &received, &s.match, &r)) {
		log_error("no memory to compare");
		goto out;
	}
	equal = is_equal(&r, &s);
	if (s.json)
		print_json(&r, equal);
	else
		print_table(&r, &s);
	status = equal ? CLI_OK : CLI_FAILED;
out:
	delivery_samples_free(&sent);
	delivery_samples_free(&received);
	return status;
}
