/* SPDX-License-Identifier: BSD-2-Clause */
#define LOG_ROOM "bench/node"
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/node/gateway.h"
#include "bench/node/medium.h"
#include "bench/node/namespaces.h"
#include "bench/result/files.h"
#include "bench/node/rows.h"
#include "bench/node/settings.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"

/* The processor time is that between these parts of the run, so that neither the start nor
 * the writing of the files counts. */
#define CPU_FROM 0.1
#define CPU_TO 0.9
#define HOLD_AT 0.5
/* What is under way after the generator has ended has so long between two samples. */
#define DRAIN_S 0.1
#define DRAIN_LOOK_S 0.02
#define END_S 60.0
/* Writing and reading of files, bytes a second, for the estimate alone. */
#define FILES_BYTES_S 200e6
#define START_S 0.6

struct run {
	struct bench_node_settings s;
	const struct bench_context *context;
	struct bench_node_gateway gateway[BENCH_NODE_ENDS];
	struct bench_node_namespaces namespaces;
	struct bench_node_facts facts;
	char dir[PATH_MAX];
	uint64_t cpu_ns[BENCH_NODE_ENDS];
	struct process busy[BENCH_NODE_BESIDE_MAX];
};

static int prepare(struct run *r)
{
	struct bench_node_settings *s = &r->s;
	static unsigned number;
	int ret = bench_node_medium_is_there(s) ?: bench_node_place_make(s, r->dir);

	if (ret)
		return ret;
	snprintf(s->tag, sizeof(s->tag), "busbar-shmem-bench-%d-%u", getpid(), number++);
	if (!s->namespaces)
		return 0;
	strcpy(s->host[BENCH_NODE_SOURCE], BENCH_NODE_ADDRESS_SOURCE);
	strcpy(s->host[BENCH_NODE_TARGET], BENCH_NODE_ADDRESS_TARGET);
	return bench_node_namespaces_make(&r->namespaces);
}

static int start(struct run *r, enum bench_node_end end, const char *ready)
{
	struct bench_node_gateway *g = &r->gateway[end];
	/* The threads that write the files all the time are not pinned beside the others. */
	bool pinned = r->s.processes == 2 && strcmp(r->s.recording, "stream");

	*g = (struct bench_node_gateway){
		.name = end == BENCH_NODE_SOURCE ? "source" : "target",
		.dir = r->dir,
		.cpu = pinned ? r->s.cpus[end] : -1,
		.session = end == BENCH_NODE_SOURCE && r->s.nice,
		.namespaces = r->namespaces.holder[end],
	};
	return bench_node_gateway_start(g, bench_node_configuration(&r->s, end)) ?:
	       bench_node_gateway_await(g, ready, r->context->stop);
}

static void take_cpu(struct run *r, bool begin)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	for (int i = 0; i < BENCH_NODE_ENDS; i++) {
		uint64_t ns = bench_node_gateway_cpu_ns(&r->gateway[i]);

		r->facts.cpu_ns[i] = ns && (begin || r->cpu_ns[i]) ?
					     (int64_t)(ns - r->cpu_ns[i]) : -1;
		r->cpu_ns[i] = ns;
	}
	*(begin ? &r->facts.cpu_from_ns : &r->facts.cpu_to_ns) =
		(int64_t)timespec_to_ns(now);
}

static void hold(struct run *r)
{
	pid_t pid = r->gateway[BENCH_NODE_SOURCE].process.pid;

	if (!r->s.hold_ns || !pid)
		return;
	kill(pid, SIGSTOP);
	bench_node_pause((double)r->s.hold_ns / 1e9, r->context->stop);
	kill(pid, SIGCONT);
}

/* Until the generator has taken `part` of its steps, by the clock; tells the progress. */
static int wait_until(struct run *r, uint64_t began_ns, double part)
{
	const struct bench_context *c = r->context;
	double all_s = bench_node_seconds(&r->s), left_s;

	for (;;) {
		double past_s = (double)(clock_monotonic_ns_slow() - began_ns) / 1e9;

		c->progress(c, fmin(past_s / (all_s + START_S), 0.99));
		left_s = part * all_s - past_s;
		if (left_s <= 0)
			return 0;
		/* Whoever looks more often disturbs what is measured. */
		if (bench_node_pause(fmin(left_s, 1), c->stop))
			return -EINTR;
	}
}

/* In one process nothing ends by itself: asks the generator. */
static int await_generator(struct run *r)
{
	struct bench_node_gateway *g = &r->gateway[BENCH_NODE_SOURCE];
	double left_s = END_S;

	for (;;) {
		int64_t made = bench_node_gateway_counter(g, "generator", "received");
		int64_t missed = bench_node_gateway_counter(g, "generator", "missed");

		if (made < 0 || missed < 0)
			return -EIO;
		if ((uint64_t)(made + missed) >= r->s.steps)
			return 0;
		if (left_s <= 0)
			return log_fail(-ETIMEDOUT,
					"the generator has not ended %.0f s after its time", END_S);
		if (bench_node_pause(DRAIN_LOOK_S, r->context->stop))
			return -EINTR;
		left_s -= DRAIN_LOOK_S;
	}
}

/* Until no more samples arrive at the target. */
static int drain(struct run *r, const struct bench_node_gateway *g)
{
	int64_t before = -1, now;
	double still_s = 0;

	while (still_s < DRAIN_S) {
		now = bench_node_gateway_counter(g, "received", "sent");
		if (now < 0)
			return -EIO;
		if (now == (int64_t)r->s.steps)
			break;
		still_s = now == before ? still_s + DRAIN_LOOK_S : 0;
		before = now;
		if (bench_node_pause(DRAIN_LOOK_S, r->context->stop))
			return -EINTR;
	}
	return 0;
}

/* A recording is written when its node stops; the gateway's own end has a limit of time. */
static int write_recording(const struct bench_node_gateway *g, const char *node)
{
	char path[64];
	json_t *answer;

	snprintf(path, sizeof(path), "/node/%s/stop", node);
	answer = bench_node_gateway_ask(g, "POST", path, END_S);
	json_decref(answer);
	return answer ? 0 : -EIO;
}

static int end_gateways(struct run *r)
{
	struct bench_node_gateway *source = &r->gateway[BENCH_NODE_SOURCE];
	struct bench_node_gateway *target = &r->gateway[BENCH_NODE_TARGET];
	struct bench_node_gateway *last = r->s.processes == 2 ? target : source;
	int ret = last == target ? bench_node_gateway_await_end(source, END_S, r->context->stop) :
				   await_generator(r);

	ret = ret ?: drain(r, last) ?: (last == source ? write_recording(source, "sent") : 0) ?:
	      write_recording(last, "received");
	if (ret)
		return ret;
	bench_node_gateway_stop(last);
	return bench_node_gateway_judge(source) ?:
	       (last == target ? bench_node_gateway_judge(target) : 0);
}

static int read_summary(struct run *r)
{
	const struct bench_node_medium *m = r->s.medium;
	const char *node = m->logs ? "logger" : m->both_ends ? "peer" : "source";
	json_t *o = bench_node_gateway_summary(&r->gateway[BENCH_NODE_SOURCE]);
	const json_t *nodes = json_object_get(o, "nodes");

	if (!o)
		return -EIO;
	r->facts.missed = bench_number(json_object_get(nodes, "generator"), "missed");
	r->facts.made_up = bench_number(json_object_get(nodes, "generator"), "made_up");
	r->facts.refused = bench_number(json_object_get(nodes, node), "not_sent");
	json_decref(o);
	return 0;
}

static void spin_for_ever(void *arg)
{
	for (volatile unsigned long i = 0;; i++)
		;
}

static int measure(struct run *r)
{
	const char *ready = r->s.medium->ready ?: "is running";
	uint64_t began_ns;
	int ret = 0;

	for (unsigned i = 0; i < r->s.beside && !ret; i++)
		ret = process_copy(&r->busy[i], spin_for_ever, NULL);
	if (!ret && r->s.processes == 2)
		ret = start(r, BENCH_NODE_TARGET, ready);
	ret = ret ?: start(r, BENCH_NODE_SOURCE, "is running");
	began_ns = clock_monotonic_ns_slow();
	ret = ret ?: wait_until(r, began_ns, CPU_FROM);
	take_cpu(r, true);
	if (!ret && r->s.hold_ns)
		ret = wait_until(r, began_ns, HOLD_AT);
	if (!ret)
		hold(r);
	ret = ret ?: wait_until(r, began_ns, CPU_TO);
	take_cpu(r, false);
	return ret ?: wait_until(r, began_ns, 1) ?: end_gateways(r);
}

static void clean_up(struct run *r)
{
	bench_node_gateway_stop(&r->gateway[BENCH_NODE_SOURCE]);
	bench_node_gateway_stop(&r->gateway[BENCH_NODE_TARGET]);
	for (unsigned i = 0; i < r->s.beside; i++)
		process_kill(&r->busy[i]);
	bench_node_namespaces_end(&r->namespaces);
	if (r->s.medium && r->s.medium->removable && r->s.tag[0]) {
		static const char *const ends[] = { "", "-in", "-out" };

		/* They are there only if a gateway was killed. */
		for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
			char name[64];

			snprintf(name, sizeof(name), "/%s%s", r->s.tag, ends[i]);
			shm_unlink(name);
		}
	}
	files_remove_dir(r->dir);
	bench_node_settings_free(&r->s);
}

static int node_run(const json_t *parameters, const struct bench_context *context)
{
	struct run r = { .context = context, .namespaces.pipe = -1 };
	int ret = bench_node_settings_read(parameters, context->scale, &r.s);

	ret = ret ?: prepare(&r) ?: measure(&r) ?: read_summary(&r) ?:
	      bench_node_rows(r.dir, &r.s, &r.facts, context->result);
	if (ret && atomic_load(context->stop))
		ret = -EINTR;
	clean_up(&r);
	return ret;
}

static int node_check(const json_t *parameters)
{
	struct bench_node_settings s;
	int ret = bench_node_settings_read(parameters, 1, &s);

	bench_node_settings_free(&s);
	return ret ? -EINVAL : 0;
}

static double node_seconds(const json_t *parameters, double scale)
{
	struct bench_node_settings s;
	double seconds = 0;

	if (!bench_node_settings_read(parameters, scale, &s))
		seconds = START_S + bench_node_seconds(&s) +
			  (double)s.steps * 3 *
				  (double)bench_node_record_bytes(&s) / FILES_BYTES_S;
	bench_node_settings_free(&s);
	return seconds;
}

const struct bench_kind bench_kind_node = {
	.name = "node",
	.summary = "samples through a pair of nodes of gateways",
	.parameters = bench_node_parameters,
	.check = node_check,
	.seconds = node_seconds,
	.run = node_run,
};
