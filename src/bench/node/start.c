/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar bench start`: what a small gateway costs. One with two nodes and their defaults
 * (queues of 1024 samples of 64 values) is started again and again: one that makes a single
 * sample and ends, for the time from the start to the first sample and out again; and one that
 * stays, for the time until it runs and its memory.
 */
#define LOG_ROOM "bench/node"
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/node/gateway.h"
#include "bench/node/medium.h"
#include "bench/result/files.h"
#include "bench/result/statistics.h"
#include "bench/tune/tree.h"
#include "util/clock.h"
#include "util/log.h"

#define END_S 20.0
#define SECONDS_EACH 0.15

static const struct bench_parameter parameters[] = {
	{ "runs", 'i', "1..1000", "11", "starts of each gateway" },
	{ .name = NULL },
};

enum { START, OUT, BEGIN, RUNNING, TIMES, RSS = TIMES, ANON, VALUES };

struct start_run {
	const struct bench_context *context;
	char dir[PATH_MAX];
	size_t runs;
	int64_t *value[VALUES];
};

static json_t *configuration(bool one)
{
	json_t *o = json_pack("{sb s{s{ss ss sf si} s{ss}} s[{ss ss} {ss}]}", "idle_stop", 1,
			      "nodes", "sig", "type", "signal", "signal", "sine", "rate", 1000.0,
			      "values", 64, "loop", "type", "loopback", "paths", "in", "sig",
			      "out", "loop", "in", "loop");

	if (o && one)
		json_object_set_new(json_object_get(json_object_get(o, "nodes"), "sig"),
				    "limit", json_integer(1));
	return o;
}

static int start(struct start_run *r, struct bench_node_gateway *g, bool one)
{
	json_t *o = configuration(one);
	int ret;

	*g = (struct bench_node_gateway){ .name = "source", .dir = r->dir, .cpu = -1 };
	ret = o ? bench_node_gateway_start(g, o) : -ENOMEM;
	json_decref(o);
	return ret;
}

static int64_t now_ns(void)
{
	return (int64_t)clock_monotonic_ns_slow();
}

static int start_and_end(struct start_run *r, size_t i)
{
	struct bench_node_gateway g;
	int ret;

	r->value[START][i] = now_ns();
	ret = start(r, &g, true);
	if (!ret)
		ret = bench_node_gateway_await_end(&g, END_S, r->context->stop);
	r->value[OUT][i] = now_ns();
	bench_node_gateway_stop(&g);
	return ret ? ret : bench_node_gateway_judge(&g);
}

/* KiB of the process' memory: "VmRSS" is what it has, "RssAnon" what is its own. */
static int64_t memory_kib(pid_t pid, const char *name)
{
	const struct tune_tree host = { .root = "" };
	char path[40], kib[32];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	tune_tree_value(&host, path, name, kib, sizeof(kib));
	return strtoll(kib, NULL, 10);
}

static int start_and_run(struct start_run *r, size_t i)
{
	struct bench_node_gateway g;
	int ret;

	r->value[BEGIN][i] = now_ns();
	ret = start(r, &g, false);
	if (!ret)
		ret = bench_node_gateway_await(&g, "is running", r->context->stop);
	r->value[RUNNING][i] = now_ns();
	if (!ret) {
		r->value[RSS][i] = memory_kib(g.process.pid, "VmRSS");
		r->value[ANON][i] = memory_kib(g.process.pid, "RssAnon");
	}
	bench_node_gateway_stop(&g);
	return ret ? ret : bench_node_gateway_judge(&g);
}

static int add_median(struct start_run *r, const char *name, const char *label, int64_t *values)
{
	struct statistics s;

	statistics_of(values, r->runs, 0, &s);
	return result_case_figure(r->context->result, &(struct result_figure){
		name, label, "KiB", (double)s.percentile[2] });
}

static int write_result(struct start_run *r)
{
	static const struct result_latency latencies[] = {
		{ "out", "from the start to the first sample and out", "t_start", "t_out" },
		{ "running", "from the start until it runs", "t_begin", "t_running" },
	};
	const struct result_column columns[TIMES] = {
		{ "t_start", "ns", r->value[START] }, { "t_out", "ns", r->value[OUT] },
		{ "t_begin", "ns", r->value[BEGIN] }, { "t_running", "ns", r->value[RUNNING] },
	};
	int ret = result_case_rows(r->context->result, columns, TIMES, r->runs, latencies, 2);

	if (!ret)
		ret = add_median(r, "rss", "resident while it runs", r->value[RSS]);
	return ret ? ret : add_median(r, "anon", "of it the gateway's own", r->value[ANON]);
}

static int measure(struct start_run *r)
{
	const struct bench_context *c = r->context;
	int ret = 0;

	for (size_t i = 0; i < r->runs && !ret; i++) {
		ret = start_and_end(r, i);
		if (!ret)
			ret = start_and_run(r, i);
		if (c->progress)
			c->progress(c, (double)(i + 1) / (double)r->runs);
	}
	return ret ? ret : write_result(r);
}

static size_t runs_of(const json_t *given)
{
	return (size_t)bench_number(given, "runs");
}

static int run(const json_t *given, const struct bench_context *context)
{
	struct bench_node_settings s = { .medium = bench_node_medium_find("loopback"),
					 .recording = "stream" };
	struct start_run r = { .context = context, .runs = runs_of(given) };
	int64_t *values = calloc(VALUES * r.runs, sizeof(*values));
	int ret = values ? bench_node_place_make(&s, r.dir) : -ENOMEM;

	for (size_t i = 0; values && i < VALUES; i++)
		r.value[i] = values + i * r.runs;
	if (!ret)
		ret = measure(&r);
	if (ret && atomic_load(context->stop))
		ret = -EINTR;
	files_remove_dir(r.dir);
	free(values);
	return ret;
}

static double seconds(const json_t *given, double scale)
{
	return (double)runs_of(given) * SECONDS_EACH;
}

const struct bench_kind bench_kind_start = {
	.name = "start",
	.summary = "how long a small gateway takes to start, and its memory",
	.parameters = parameters,
	.seconds = seconds,
	.run = run,
};
