/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kind "odp" of benchmark suites: memory on demand, by the model of an adapter (BUSBAR_PAGING
 * of busbar-adapter(7)) in virtual time. And the experiments (lab.h) that compare it with its source,
 * T. Fukuoka, "ODP performance pitfalls of InfiniBand", University of Tokyo 2021.
 */
#define LOG_ROOM "bench/odp"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/kind/kind.h"
#include "bench/odp/lab.h"
#include "bench/result/files.h"
#include "bench/tune/tree.h"
#include "util/container_of.h"
#include "util/log.h"

#define OPS_OF_QP_MAX 8192
#define BYTES_MAX (1LL << 30)
#define ROWS_MAX 10000000LL
/* A packet takes so long to be simulated; a guess for the time left. */
#define PACKET_SECONDS 3e-6

static const struct bench_parameter parameters[] = {
	{ "operation", 's', "read|write|send", "read", "of the first request of each queue pair" },
	{ "second", 's', "same|read|write|send", "same", "of all other requests" },
	{ "size", 'i', "1..1048576", "100", "bytes of a request" },
	{ "stride", 'i', "0..1048576", "0", "bytes between the places of two requests; 0: size" },
	{ "num_ops", 'i', "1..131072", "2", "requests, at most 8192 for each queue pair" },
	{ "num_qps", 'i', "1..512", "1", "queue pairs, which take turns" },
	{ "interval", 'd', "0..1h", "1ms", "sleep behind each request" },
	{ "jitter", 'd', "0..1h", "0", "a sleep ends up to so much later" },
	{ "paged", 's', "none|server|client|both", "both",
	  "whose memory is on demand; the other's is pinned" },
	{ "pre_touch", 's', "none|later|all", "none",
	  "pages that are there before: none, those of later requests, all" },
	{ "rnr_code", 'i', "0..31", "14", "smallest RNR NAK delay: 1 is 0.01 ms, 14 1.28 ms, 0 655.36 ms" },
	{ "ack_code", 'i', "0..31", "1", "local ACK timeout, 4.096 us * 2^code; 0: none" },
	{ "retry", 'i', "0..7", "7", "retries before a request fails" },
	{ "rnr_retry", 'i', "0..7", "7", "retries behind RNR NAKs; 7: without end" },
	{ "max_rd_atomic", 'i', "1..16", "4", "READs of a queue pair that are not answered" },
	{ "profile", 's', NULL, "connectx4",
	  "adapter: connectx4, connectx5, connectx6, ideal, or a file" },
	{ "fault", 'd', "0..1h", "0", "how long a fault takes; 0: as the profile says" },
	{ "mitigation", 's', "none|dummy|window|gate|reissue", "none",
	  "what the program does against it, see the manual page" },
	{ "patience", 'd', "1us..1h", "5ms", "of dummy and reissue: without progress so long" },
	{ "window", 'i', "1..8192", "4", "of window: requests of a queue pair to new pages" },
	{ "answers", 'b', NULL, "true", "false: nothing reaches the server" },
	{ "trials", 'i', "1..1000", "1", "runs, each with the next seed" },
	{ "seed", 'i', "0..9007199254740992", "1", "of the delays of packets and sleeps" },
	{ "capture", 's', NULL, "", "write the packets of the client's first run into this file (pcapng)" },
	{ .name = NULL },
};

static int check_sizes(const json_t *p)
{
	long long ops = bench_number(p, "num_ops"), qps = bench_number(p, "num_qps");
	long long size = bench_number(p, "size"), stride = bench_number(p, "stride");

	if (ops > qps * OPS_OF_QP_MAX)
		return log_fail(-EINVAL, "num-ops %lld is not usable with %lld queue pairs, expected 1..%lld", ops,
				qps, qps * OPS_OF_QP_MAX);
	if (stride && stride < size)
		return log_fail(-EINVAL, "stride %lld is not usable, expected 0 or %lld..1048576",
				stride, size);
	if (ops * bench_number(p, "trials") > ROWS_MAX)
		return log_fail(-EINVAL,
				"trials %lld is not usable with %lld requests, expected 1..%lld",
				bench_number(p, "trials"), ops, ROWS_MAX / ops);
	if (bench_is(p, "mitigation", "reissue") &&
	    !(bench_is(p, "operation", "read") &&
	      (bench_is(p, "second", "same") || bench_is(p, "second", "read"))))
		return log_fail(-EINVAL, "mitigation reissue is not usable with other requests than READs, which "
				"may be carried out twice");
	if ((stride ? stride : size) * ops > BYTES_MAX)
		return log_fail(-EINVAL,
				"num-ops %lld is not usable with this size, expected 1..%lld", ops,
				BYTES_MAX / (stride ? stride : size));
	return 0;
}

/* A word of a point's line. */
static bool is_one_word(const char *text)
{
	return !text[strcspn(text, " \t\n")];
}

static int check_files(const json_t *p)
{
	const char *profile = bench_text(p, "profile"), *capture = bench_text(p, "capture");

	if (!tune_has_word("connectx4 connectx5 connectx6 ideal", profile, " ") &&
	    access(profile, R_OK))
		return log_fail(-EINVAL,
				"profile '%s' is not usable: %s; expected a file, or connectx4, "
				"connectx5, connectx6 or ideal",
				profile, strerror(errno));
	if (!is_one_word(profile) || !is_one_word(capture))
		return log_fail(-EINVAL, "names of files with spaces are not usable here");
	return 0;
}

static int check(const json_t *p)
{
	int ret = check_sizes(p) ?: check_files(p);

	if (!ret && !bench_number(p, "rnr_code"))
		log_warn("rnr-code 0 is the longest delay, 655.36 ms; the shortest is 1, 0.01 ms");
	return ret;
}

static double seconds(const json_t *p, double scale)
{
	(void)scale;
	return 0.1 + PACKET_SECONDS * (double)(bench_number(p, "num_ops") * bench_number(p, "trials") *
					       bench_number(p, "num_qps"));
}

/* The line of the point, to be freed. */
static char *line_of(const json_t *p)
{
	char *line = NULL;
	size_t size;
	FILE *f = open_memstream(&line, &size);

	for (const struct bench_parameter *i = parameters; f && i->name; i++) {
		const json_t *value = json_object_get(p, i->name);

		if (json_is_string(value) && !*json_string_value(value))
			continue;
		fprintf(f, "%s=", i->name);
		if (json_is_string(value))
			fputs(json_string_value(value), f);
		else if (json_is_boolean(value))
			fputs(json_is_true(value) ? "on" : "off", f);
		else
			fprintf(f, "%lld", (long long)json_integer_value(value));
		fputc(' ', f);
	}
	if (f)
		fputs("list=on\n", f);
	if (f && fclose(f)) {
		free(line);
		line = NULL;
	}
	return line;
}

/* ---- results ---- */

static int add_figures(const json_t *trials, struct result_case *c)
{
	const struct result_figure figures[] = {
		{ "time", "first post to last completion", "ms", odp_trials_median(trials, "time_ns") / 1e6 },
		{ "packets", "packets, both ways", "", odp_trials_median(trials, "packets") },
		{ "requests", "packets of the client", "", odp_trials_median(trials, "requests") },
		{ "repeated", "of these sent before", "", odp_trials_median(trials, "repeated") },
		{ "timeouts", "timeouts", "", odp_trials_median(trials, "timeouts") },
		{ "timeout_share", "runs with a timeout", "%",
		  100 * odp_trials_share(trials, "timeouts", 0) },
		{ "rnr_naks", "RNR NAKs", "", odp_trials_median(trials, "rnr_naks") },
		{ "sequence_naks", "NAKs for a gap", "", odp_trials_median(trials, "sequence_naks") },
		{ "lost", "requests lost by the adapter (damming)", "", odp_trials_median(trials, "lost") },
		{ "failed", "requests that failed", "", odp_trials_median(trials, "failed") },
		{ "timeout_ms", "timeout of this adapter for ack-code", "ms",
		  odp_trials_median(trials, "timeout_ns") / 1e6 },
		{ "rnr_ms", "delay of rnr-code", "ms", odp_trials_median(trials, "rnr_ns") / 1e6 },
	};

	return result_case_figures(c, figures, ARRAY_SIZE(figures));
}

/* One row for each request of each trial. */
static int add_rows(const json_t *trials, size_t ops, struct result_case *c)
{
	static const struct result_latency latency = {
		"t_op", "post to completion", "t_post", "t_done" };
	size_t rows = ops * json_array_size(trials);
	int64_t *v = calloc(4 * rows, sizeof(*v));
	const struct result_column columns[] = {
		{ "run", "", v }, { "id", "", v + rows },
		{ "t_post", "ns", v + 2 * rows }, { "t_done", "ns", v + 3 * rows },
	};
	int ret;

	if (!v)
		return -ENOMEM;
	for (size_t row = 0; row < rows; row++) {
		const json_t *trial = json_array_get(trials, row / ops);

		v[row] = (int64_t)(row / ops);
		v[rows + row] = (int64_t)(row % ops);
		v[2 * rows + row] = json_integer_value(
			json_array_get(json_object_get(trial, "posted_ns"), row % ops));
		v[3 * rows + row] = json_integer_value(
			json_array_get(json_object_get(trial, "done_ns"), row % ops));
	}
	ret = result_case_rows(c, columns, ARRAY_SIZE(columns), rows, &latency, 1);
	free(v);
	return ret;
}

/* packets.json: the recorded trial, for a diagram. */
static int write_recorded(const json_t *trials, struct result_case *c)
{
	size_t i;
	json_t *trial;

	json_array_foreach(trials, i, trial) {
		json_t *recorded = json_object_get(trial, "recorded");

		if (!recorded)
			continue;
		json_object_set_new(recorded, "trial", json_integer((json_int_t)i));
		return files_write_json(result_case_dir(c), "packets.json", recorded);
	}
	return 0;
}

static int look_at_data(const json_t *trials)
{
	size_t i;
	json_t *trial;

	json_array_foreach(trials, i, trial)
		if (bench_number(trial, "wrong"))
			return log_fail(-EIO, "requests have brought wrong bytes");
	return 0;
}

static int run(const json_t *p, const struct bench_context *context)
{
	struct result_case *result = context->result;
	char *line = line_of(p);
	json_t *results = NULL, *trials;
	int ret = line ? odp_simulate(line, result_case_dir(result), context->stop, &results) :
			 -ENOMEM;

	free(line);
	trials = json_array_get(results, 0);
	ret = ret ?: look_at_data(trials) ?:
	      add_rows(trials, (size_t)bench_number(p, "num_ops"), result) ?:
	      add_figures(trials, result) ?: write_recorded(trials, result);
	json_decref(results);
	return ret;
}

const struct bench_kind bench_kind_odp = {
	.name = "odp",
	.summary = "memory on demand, by the model of an adapter, in virtual time",
	.parameters = parameters,
	.check = check,
	.seconds = seconds,
	.run = run,
};
