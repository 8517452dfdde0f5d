/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A TCP port that leads to a service of ripc which answers as a file server does (server.h),
 * so that a browser fetches through it. One thread for all clients; another one sends the
 * requests, because sending waits for the resolver and the connection.
 */
#ifndef WEB_BRIDGE_H
#define WEB_BRIDGE_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ripc;
struct ripc_service;

struct bridge_options {
	struct ripc *r;
	struct ripc_service *service;  /* that asks; nobody else receives for it */
	/* Whom it asks: the number, or 0 and a name, which is found when it is needed. */
	uint32_t server;
	const char *name;
	int listen_fd;                 /* listening, does not block; the bridge closes it */
	unsigned clients_max;          /* others wait to be accepted, until one of these does
					* nothing for two seconds */
	size_t held_bytes_max;         /* of answers that clients have not taken; likewise */
	unsigned timeout_ms;           /* for an answer of the service */
	unsigned idle_ms;              /* for a client: to send a head, to take some bytes,
					* between two requests */
	int stop_fd;                   /* readable: end */
};

struct bridge_counters {
	uint64_t clients, requests, answered, bad_requests, failed, late, cut;
};

/* Carries requests and answers until stop_fd. 0, or a negative errno of setting it up. */
int bridge_run(const struct bridge_options *options, struct bridge_counters *counters);

#endif
