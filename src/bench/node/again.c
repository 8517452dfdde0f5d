/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Gateways that are started again and again.
 *
 * `busbar bench start`: what a small gateway costs. One with two nodes and their defaults
 * (queues of 1024 samples of 64 values) is started again and again: one that makes a single
 * sample and ends, for the time from the start to the first sample and out again; and one that
 * stays, for the time until it runs and its memory.
 *
 * `busbar bench reconnect`: how long two gateways are apart when one of them is killed
 * (SIGKILL) and started again at once: from the kill until the survivor is connected again,
 * and from when it had noticed the loss, as it logs it. Both hold the start of the new
 * process, which is most of it.
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

#define VALUES_MAX 6

struct again {
	struct bench_node_settings s;
	const struct bench_context *context;
	const json_t *given;
	struct bench_node_gateway gateway[BENCH_NODE_ENDS];
	enum bench_node_end victim, survivor;
	char dir[PATH_MAX];
	size_t rounds;
	int64_t *value[VALUES_MAX];
};

static int64_t now_ns(void)
{
	return (int64_t)clock_monotonic_ns_slow();
}

static int start(struct again *a, enum bench_node_end end, json_t *configuration)
{
	a->gateway[end] = (struct bench_node_gateway){
		.name = end == BENCH_NODE_SOURCE ? "source" : "target", .dir = a->dir, .cpu = -1,
	};
	return bench_node_gateway_start(&a->gateway[end], configuration);
}

static int await(struct again *a, enum bench_node_end end, const char *text)
{
	return bench_node_gateway_await(&a->gateway[end], text, a->context->stop);
}

/* Makes a folder and room for the values, calls `round` for each of them, and then `write`. */
static int run_rounds(struct again *a, const char *number, int (*before)(struct again *a),
		      int (*round)(struct again *a, size_t i), int (*write)(struct again *a))
{
	int64_t *values;
	int ret;

	a->rounds = (size_t)bench_number(a->given, number);
	values = calloc(VALUES_MAX * a->rounds, sizeof(*values));
	for (size_t i = 0; values && i < VALUES_MAX; i++)
		a->value[i] = values + i * a->rounds;
	ret = (values ? bench_node_medium_is_there(&a->s) : -ENOMEM) ?:
	      bench_node_place_make(&a->s, a->dir) ?: before(a);
	for (size_t i = 0; i < a->rounds && !ret; i++) {
		ret = round(a, i);
		a->context->progress(a->context, (double)(i + 1) / (double)a->rounds);
	}
	ret = ret ?: write(a);
	if (ret && atomic_load(a->context->stop))
		ret = -EINTR;
	for (int i = 0; i < BENCH_NODE_ENDS; i++)
		bench_node_gateway_stop(&a->gateway[i]);
	files_remove_dir(a->dir);
	free(values);
	return ret;
}

/* ---- start ---- */

#define END_S 20.0
#define START_SECONDS_EACH 0.15

static const struct bench_parameter start_parameters[] = {
	{ "runs", 'i', "1..1000", "11", "starts of each gateway" },
	{ .name = NULL },
};

enum { START, OUT, BEGIN, RUNNING, TIMES, RSS = TIMES, ANON };

static json_t *small_gateway(bool one)
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

static int start_and_end(struct again *a, size_t i)
{
	struct bench_node_gateway *g = &a->gateway[BENCH_NODE_SOURCE];
	int ret;

	a->value[START][i] = now_ns();
	ret = start(a, BENCH_NODE_SOURCE, small_gateway(true)) ?:
	      bench_node_gateway_await_end(g, END_S, a->context->stop);
	a->value[OUT][i] = now_ns();
	bench_node_gateway_stop(g);
	return ret ?: bench_node_gateway_judge(g);
}

/* KiB of the process' memory: "VmRSS" is what it has, "RssAnon" what is its own. */
static int64_t memory_kib(pid_t pid, const char *name)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	return MAX(tune_tree_amount(&tune_here, path, name), 0LL);
}

static int start_and_run(struct again *a, size_t i)
{
	struct bench_node_gateway *g = &a->gateway[BENCH_NODE_SOURCE];
	int ret;

	a->value[BEGIN][i] = now_ns();
	ret = start(a, BENCH_NODE_SOURCE, small_gateway(false)) ?:
	      await(a, BENCH_NODE_SOURCE, "is running");
	a->value[RUNNING][i] = now_ns();
	if (!ret) {
		a->value[RSS][i] = memory_kib(g->process.pid, "VmRSS");
		a->value[ANON][i] = memory_kib(g->process.pid, "RssAnon");
	}
	bench_node_gateway_stop(g);
	return ret ?: bench_node_gateway_judge(g);
}

static int start_both(struct again *a, size_t i)
{
	return start_and_end(a, i) ?: start_and_run(a, i);
}

static int add_median(struct again *a, const char *name, const char *label, int64_t *values)
{
	return result_case_figure(a->context->result, &(struct result_figure){
		name, label, "KiB", statistics_median(values, a->rounds) });
}

static int write_starts(struct again *a)
{
	static const struct result_latency latencies[] = {
		{ "out", "from the start to the first sample and out", "t_start", "t_out" },
		{ "running", "from the start until it runs", "t_begin", "t_running" },
	};
	const struct result_column columns[TIMES] = {
		{ "t_start", "ns", a->value[START] }, { "t_out", "ns", a->value[OUT] },
		{ "t_begin", "ns", a->value[BEGIN] }, { "t_running", "ns", a->value[RUNNING] },
	};

	return result_case_rows(a->context->result, columns, TIMES, a->rounds, latencies, 2) ?:
	       add_median(a, "rss", "resident while it runs", a->value[RSS]) ?:
	       add_median(a, "anon", "of it the gateway's own", a->value[ANON]);
}

static int nothing_before(struct again *a)
{
	return 0;
}

static int start_run(const json_t *given, const struct bench_context *context)
{
	struct again a = {
		.context = context, .given = given,
		.s = { .medium = bench_node_medium_find("loopback"), .recording = "stream" },
	};

	return run_rounds(&a, "runs", nothing_before, start_both, write_starts);
}

static double start_seconds(const json_t *given, double scale)
{
	return (double)bench_number(given, "runs") * START_SECONDS_EACH;
}

const struct bench_kind bench_kind_start = {
	.name = "start",
	.summary = "how long a small gateway takes to start, and its memory",
	.parameters = start_parameters,
	.seconds = start_seconds,
	.run = start_run,
};

/* ---- reconnect ---- */

#define BACK_S 30.0
#define LOOK_S 0.001
/* For the time left: start and one interval of a node that looks for its peer. */
#define RECONNECT_SECONDS_EACH 0.2
#define AGAIN "ms after the connection was lost"

static const struct bench_parameter reconnect_parameters[] = {
	{ "service", 's', "RC|UC|UD", "RC", "service type" },
	{ "victim", 's', "source|target", "target",
	  "which end is killed; the target of UD never notices that its source was exchanged" },
	{ "kills", 'i', "1..1000", "5", "times" },
	{ "rate", 'f', "1..100000", "1000", "samples a second" },
	{ "interval", 'd', "1ms..600s", "1s", "reconnect_interval of the source" },
	{ .name = NULL },
};

enum { KILL, LOST, BACK, COLUMNS };

static json_t *connected_gateway(const struct again *a, enum bench_node_end end)
{
	bool source = end == BENCH_NODE_SOURCE;
	json_t *ib = bench_node_keys(&a->s, "infiniband", source ?
		"rdma_transport_mode=$service in.address=$source out.address=$target "
		"out.max_inline_data=128 out.max_wrs=4096 out.cq_size=4096" :
		"rdma_transport_mode=$service in.address=$target in.polling=event in.max_wrs=512 "
		"in.cq_size=512 in.buffer_subtraction=64 in.signals.count=8 in.signals.type=float");

	if (!source)
		return json_pack("{s{so} s[{ss}]}", "nodes", "ib", ib, "paths", "in", "ib");
	json_object_set_new(json_object_get(ib, "out"), "reconnect_interval",
			    json_integer(bench_number(a->given, "interval") / 1000000));
	return json_pack("{s{s{ss ss si sf ss} so} s[{ss ss}]}", "nodes", "generator", "type", "signal",
			 "signal", "mixed", "values", 8, "rate",
			 bench_real(a->given, "rate"), "timer", "timerfd",
			 "ib", ib, "paths", "in", "generator", "out", "ib");
}

/* The line of the log's `n`-th reconnection (from 1): "..., 51.2 ms after the connection was
 * lost". Its ms; < 0: not there yet. */
static double apart_ms(const char *log, size_t n)
{
	const char *at = log, *number;
	double ms;

	while (n--) {
		at = strstr(at, AGAIN);
		if (!at)
			return -1;
		at += strlen(AGAIN);
	}
	number = at - strlen(AGAIN) - 1;
	while (number > log && strchr("0123456789.", number[-1]))
		number--;
	return sscanf(number, "%lf", &ms) == 1 && ms >= 0 && ms < 1e9 ? ms : 0;
}

/* Until the survivor has its peer again. */
static int await_again(struct again *a, size_t kill)
{
	struct bench_node_gateway *g = &a->gateway[a->survivor];
	double left_s = BACK_S;

	for (;;) {
		char *log = bench_node_gateway_log(g);
		double ms = log ? apart_ms(log, kill + 1) : -1;

		free(log);
		if (ms >= 0) {
			a->value[BACK][kill] = now_ns();
			a->value[LOST][kill] = a->value[BACK][kill] - (int64_t)(ms * 1e6);
			return 0;
		}
		if (process_has_ended(&g->process) || left_s <= 0)
			break;
		if (bench_node_pause(LOOK_S, a->context->stop))
			return -EINTR;
		left_s -= LOOK_S;
	}
	return log_fail(-ETIMEDOUT,
			"the %s is not connected again %.0f s after its peer was killed", g->name,
			BACK_S);
}

static int kill_once(struct again *a, size_t i)
{
	a->value[KILL][i] = now_ns();
	process_kill(&a->gateway[a->victim].process);
	/* The new one has to know the survivor too before it is killed. */
	return start(a, a->victim, connected_gateway(a, a->victim)) ?: await_again(a, i) ?:
	       await(a, a->victim, "connected to");
}

static int write_kills(struct again *a)
{
	static const struct result_latency latencies[] = {
		{ "since_kill", "since the kill", "t_kill", "t_back" },
		{ "since_noticed", "since the survivor had noticed", "t_lost", "t_back" },
	};
	const struct result_column columns[COLUMNS] = { { "t_kill", "ns", a->value[KILL] },
							{ "t_lost", "ns", a->value[LOST] },
							{ "t_back", "ns", a->value[BACK] } };

	return result_case_rows(a->context->result, columns, COLUMNS, a->rounds, latencies, 2);
}

static int connect_both(struct again *a)
{
	return start(a, BENCH_NODE_TARGET, connected_gateway(a, BENCH_NODE_TARGET)) ?:
	       await(a, BENCH_NODE_TARGET, "listening on") ?:
	       start(a, BENCH_NODE_SOURCE, connected_gateway(a, BENCH_NODE_SOURCE)) ?:
	       await(a, BENCH_NODE_SOURCE, "connected to");
}

static int reconnect_run(const json_t *given, const struct bench_context *context)
{
	bool target_dies = bench_is(given, "victim", "target");
	struct again a = {
		.context = context, .given = given,
		.s = { .medium = bench_node_medium_find("infiniband"), .recording = "stream",
		       .node = "infiniband", .polling = "event",
		       .service = bench_text(given, "service"),
		       .host = { "127.0.0.1", "127.0.0.1" } },
		.victim = target_dies ? BENCH_NODE_TARGET : BENCH_NODE_SOURCE,
		.survivor = target_dies ? BENCH_NODE_SOURCE : BENCH_NODE_TARGET,
	};

	return run_rounds(&a, "kills", connect_both, kill_once, write_kills);
}

static int reconnect_check(const json_t *given)
{
	if (!bench_is(given, "service", "UD") || !bench_is(given, "victim", "source"))
		return 0;
	return log_fail(-EINVAL, "parameter victim: the target of UD never notices that its source was exchanged");
}

static double reconnect_seconds(const json_t *given, double scale)
{
	double interval_s = (double)bench_number(given, "interval") / 1e9;

	return (double)bench_number(given, "kills") *
	       (RECONNECT_SECONDS_EACH + (bench_is(given, "service", "UD") ? interval_s : 0));
}

const struct bench_kind bench_kind_reconnect = {
	.name = "reconnect",
	.summary = "how long gateways are apart when one of them is killed",
	.parameters = reconnect_parameters,
	.check = reconnect_check,
	.seconds = reconnect_seconds,
	.run = reconnect_run,
};
