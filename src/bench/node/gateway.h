/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gateway as a child process: `busbar run` of this executable with a configuration, its log
 * and its summary in files, and a control socket.
 */
#ifndef BENCH_NODE_GATEWAY_H
#define BENCH_NODE_GATEWAY_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "bench/kind/process.h"

struct bench_node_gateway {
	const char *name;   /* "source": of its files NAME.conf, .log, .json, .sock */
	const char *dir;    /* absolute; its working folder */
	int cpu;            /* of all its threads; -1: any */
	bool session;       /* leads a session, which a nice value needs */
	/* Of another process, whose namespaces it joins; 0: none. */
	pid_t namespaces;

	struct process process;
};

/* Starts it; takes over the configuration, NULL: there was no memory for one. 0 or a negative
 * errno, logged. */
int bench_node_gateway_start(struct bench_node_gateway *g, json_t *configuration);

/* Waits until its log says `text`. 0; -EINTR: `stop` is set; -ETIMEDOUT; -EIO: it has ended;
 * logged but for EINTR. */
int bench_node_gateway_await(struct bench_node_gateway *g, const char *text,
			     const atomic_bool *stop);

/* What it has logged since its start, malloc()ed; NULL: nothing can be read. */
char *bench_node_gateway_log(const struct bench_node_gateway *g);

/* Waits for its end. 0; -EINTR; -ETIMEDOUT (logged). */
int bench_node_gateway_await_end(struct bench_node_gateway *g, double seconds,
				 const atomic_bool *stop);

/* Asks it to end, after three seconds with SIGKILL. Does nothing when it does not run. */
void bench_node_gateway_stop(struct bench_node_gateway *g);

/* Did it end as it should have? Lost samples are a result here, no failure. Else shows the end
 * of its log and returns -EIO. */
int bench_node_gateway_judge(const struct bench_node_gateway *g);

/* Processor time so far in ns, 0 when unknown. */
uint64_t bench_node_gateway_cpu_ns(const struct bench_node_gateway *g);

/* A request to its control socket, as in busbar-ctl(1), PROTOCOL. The body of the answer, a new
 * reference; NULL after logging why. */
json_t *bench_node_gateway_ask(const struct bench_node_gateway *g, const char *method,
			       const char *path, double seconds);

/* A counter of one of its nodes ("sent"); -1 after logging why. */
int64_t bench_node_gateway_counter(const struct bench_node_gateway *g, const char *node,
				   const char *counter);

/* Its summary after the end; NULL after logging why. */
json_t *bench_node_gateway_summary(const struct bench_node_gateway *g);

/* Sleeps; true: `stop` was set. */
bool bench_node_pause(double seconds, const atomic_bool *stop);

#endif
