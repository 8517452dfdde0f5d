/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The process that runs a fabric: an InfiniBand subnet (engine/fabric) that follows the real clock,
 * whose host ports are used by other processes over a socket (plug/plug.h).
 *
 * It is one thread: serve_run() carries out the engine's events when they are due, takes packets
 * and MADs from the clients, checks them, and gives what arrives at a host to the clients that own
 * the queue pair, the group or the management class. Agents (fabric/agent) answer for the nodes.
 * It is no subnet manager: one of the clients is.
 */
#ifndef FABRIC_SERVE_SERVE_H
#define FABRIC_SERVE_SERVE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct serve;
struct serve_settings;
struct topology;

/* Another user whose processes may plug in. */
struct serve_user {
	uid_t uid;
	const char *host; /* at this host; NULL: at all */
};

struct serve_settings {
	const char *name;            /* of the fabric: clients find it by this */
	const struct topology *topology; /* borrowed */
	uint64_t seed;               /* of the engine's random numbers */
	const struct serve_user *users; /* that may plug in, besides our own and root */
	unsigned user_count;
	bool manager;                /* LIDs and tables are set by the process itself */
	void (*ready)(const struct serve_settings *settings); /* clients can connect, and with
				      * `manager` the ports are active; NULL: not called */
	uint64_t switch_latency_ns;
	uint32_t buffer_bytes;       /* of each lane at each receiver */
	uint8_t lanes;               /* data lanes of each port: 1, 2, 4, 8 or 15 */
	bool store_and_forward;
	bool virtual_output_queues;
};

/* A fabric whose socket listens. 0 with *out, or a negative errno, logged: -EADDRINUSE: one of that name
 * runs already; -ENODEV: a user's host is not in the topology. */
int serve_open(const struct serve_settings *settings, struct serve **out);
/* Ends all connections. */
void serve_close(struct serve *s);

/* Until serve_stop(), SIGINT or SIGTERM (which it blocks and reads), or a client's `stop`. 0, or a
 * negative errno, logged. */
int serve_run(struct serve *s);
void serve_stop(struct serve *s);
/* One turn of serve_run(), for tests: what is due, and the messages that have come. */
int serve_turn(struct serve *s, bool may_sleep);

#endif
