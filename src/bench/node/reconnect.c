/* SPDX-License-Identifier: BSD-2-Clause */
/*
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
#include "util/clock.h"
#include "util/log.h"

#define BACK_S 30.0
#define LOOK_S 0.001
/* For the time left: start and one interval of a node that looks for its peer. */
#define SECONDS_EACH 0.2
#define AGAIN "ms after the connection was lost"

static const struct bench_parameter parameters[] = {
	{ "service", 's', "RC|UC|UD", "RC", "service type" },
	{ "victim", 's', "source|target", "target",
	  "which end is killed; the target of UD never notices that its source was exchanged" },
	{ "kills", 'i', "1..1000", "5", "times" },
	{ "rate", 'f', "1..100000", "1000", "samples a second" },
	{ "interval", 'd', "1ms..600s", "1s", "reconnect_interval of the source" },
	{ .name = NULL },
};

enum { KILL, LOST, BACK, COLUMNS };

struct apart {
	struct bench_node_settings s;
	const struct bench_context *context;
	const json_t *given;
	struct bench_node_gateway gateway[BENCH_NODE_ENDS];
	enum bench_node_end victim, survivor;
	size_t kills;
	char dir[PATH_MAX];
	int64_t *value[COLUMNS];
};

static json_t *configuration(const struct apart *a, enum bench_node_end end)
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
			 json_number_value(json_object_get(a->given, "rate")), "timer", "timerfd",
			 "ib", ib, "paths", "in", "generator", "out", "ib");
}

static int start(struct apart *a, enum bench_node_end end)
{
	json_t *o = configuration(a, end);
	struct bench_node_gateway *g = &a->gateway[end];
	int ret;

	*g = (struct bench_node_gateway){
		.name = end == BENCH_NODE_SOURCE ? "source" : "target",
		.dir = a->dir, .cpu = -1,
	};
	ret = o ? bench_node_gateway_start(g, o) : -ENOMEM;
	json_decref(o);
	return ret;
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
static int await_again(struct apart *a, size_t kill)
{
	struct bench_node_gateway *g = &a->gateway[a->survivor];
	double left_s = BACK_S;

	for (;;) {
		char *log = bench_node_gateway_log(g);
		double ms = log ? apart_ms(log, kill + 1) : -1;

		free(log);
		if (ms >= 0) {
			a->value[BACK][kill] = (int64_t)clock_monotonic_ns_slow();
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

static int kill_once(struct apart *a, size_t i)
{
	int ret;

	a->value[KILL][i] = (int64_t)clock_monotonic_ns_slow();
	process_kill(&a->gateway[a->victim].process);
	ret = start(a, a->victim);
	if (!ret)
		ret = await_again(a, i);
	/* The new one has to know it too before it is killed. */
	return ret ? ret : bench_node_gateway_await(&a->gateway[a->victim], "connected to",
						    a->context->stop);
}

static int write_rows(struct apart *a)
{
	static const struct result_latency latencies[] = {
		{ "since_kill", "since the kill", "t_kill", "t_back" },
		{ "since_noticed", "since the survivor had noticed", "t_lost", "t_back" },
	};
	const struct result_column columns[COLUMNS] = { { "t_kill", "ns", a->value[KILL] },
							{ "t_lost", "ns", a->value[LOST] },
							{ "t_back", "ns", a->value[BACK] } };

	return result_case_rows(a->context->result, columns, COLUMNS, a->kills, latencies, 2);
}

static int measure(struct apart *a)
{
	const struct bench_context *c = a->context;
	int ret = start(a, BENCH_NODE_TARGET);

	if (!ret)
		ret = bench_node_gateway_await(&a->gateway[BENCH_NODE_TARGET], "listening on",
					       c->stop);
	if (!ret)
		ret = start(a, BENCH_NODE_SOURCE);
	if (!ret)
		ret = bench_node_gateway_await(&a->gateway[BENCH_NODE_SOURCE], "connected to",
					       c->stop);
	for (size_t i = 0; i < a->kills && !ret; i++) {
		ret = kill_once(a, i);
		if (c->progress)
			c->progress(c, (double)(i + 1) / (double)a->kills);
	}
	return ret ? ret : write_rows(a);
}

static size_t kills_of(const json_t *given)
{
	return (size_t)bench_number(given, "kills");
}

static int run(const json_t *given, const struct bench_context *context)
{
	bool target_dies = !strcmp(bench_text(given, "victim"), "target");
	struct apart a = {
		.context = context, .given = given, .kills = kills_of(given),
		.s = { .medium = bench_node_medium_find("infiniband"), .recording = "stream",
		       .node = "infiniband", .polling = "event", .service = bench_text(given, "service") },
		.victim = target_dies ? BENCH_NODE_TARGET : BENCH_NODE_SOURCE,
		.survivor = target_dies ? BENCH_NODE_SOURCE : BENCH_NODE_TARGET,
	};
	int64_t *values = calloc(COLUMNS * a.kills, sizeof(*values));
	int ret = values ? bench_node_medium_is_there(&a.s) : -ENOMEM;

	for (size_t i = 0; values && i < COLUMNS; i++)
		a.value[i] = values + i * a.kills;
	for (int i = 0; i < BENCH_NODE_ENDS; i++)
		strcpy(a.s.host[i], "127.0.0.1");
	if (!ret)
		ret = bench_node_place_make(&a.s, a.dir);
	if (!ret)
		ret = measure(&a);
	if (ret && atomic_load(context->stop))
		ret = -EINTR;
	for (int i = 0; i < BENCH_NODE_ENDS; i++)
		bench_node_gateway_stop(&a.gateway[i]);
	files_remove_dir(a.dir);
	free(values);
	return ret;
}

static int check(const json_t *given)
{
	if (strcmp(bench_text(given, "service"), "UD") || strcmp(bench_text(given, "victim"), "source"))
		return 0;
	return log_fail(-EINVAL, "parameter victim: the target of UD never notices that its source was exchanged");
}

static double seconds(const json_t *given, double scale)
{
	bool looks = !strcmp(bench_text(given, "service"), "UD");
	double interval_s = (double)bench_number(given, "interval") / 1e9;

	return (double)kills_of(given) * (SECONDS_EACH + (looks ? interval_s : 0));
}

const struct bench_kind bench_kind_reconnect = {
	.name = "reconnect",
	.summary = "how long gateways are apart when one of them is killed and started again",
	.parameters = parameters,
	.check = check,
	.seconds = seconds,
	.run = run,
};
