/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A relay of WebSocket messages: connections that ask for the same path are a session, and
 * each message, text or binary, is copied to the other connections of its session. So
 * gateways and pages reach each other where neither can be connected to.
 *
 * It stands on the HTTP server with its tokens, TLS and limits, and needs no gateway. Its
 * requests are / (JSON) and /metrics. Nothing of a message is looked at, but that a text is
 * UTF-8.
 */
#ifndef GATEWAY_RELAY_RELAY_H
#define GATEWAY_RELAY_RELAY_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "gateway/config/uuid.h"
#include "gateway/super_node/http_settings.h"

/* Connections of those who only ask, to be added to http.max_connections. */
#define RELAY_ASKING_MAX 64

/* Borrowed until relay_stop(). */
struct relay_settings {
	struct http_settings http;
	const char *protocol;       /* of clients that name one: "live" */
	char uuid[UUID_SIZE];       /* that / shows */
	bool loopback;              /* who sends a message gets it, too */
	unsigned sessions_max, connections_max;
	size_t message_bytes_max;
	size_t backlog_bytes_max;   /* of messages that wait for one connection */
	size_t memory_bytes_max;    /* of all that wait or have not come as a whole */
	double ping_s, timeout_s;   /* a silent client is asked after ping_s, and given up
				     * when it says nothing for timeout_s after that */
};

struct relay;

/* One in a process. 0 or a negative errno, logged. */
int relay_start(struct relay **out, const struct relay_settings *s);
/* The TCP port that it listens at. */
int relay_port(const struct relay *r);
/* Reads tokens and certificates again. */
void relay_refresh(struct relay *r);
/* Says goodbye to all and ends. The sums of all counters in *counters: a new reference,
 * NULL only without memory; `counters` may be NULL. */
void relay_stop(struct relay *r, json_t **counters);

#endif
