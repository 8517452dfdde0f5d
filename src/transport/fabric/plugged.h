/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A carrier over the connection to a running fabric (plug/plug.h). Units are packets, or trains of
 * packets, from the BTH to the ICRC; LRH and GRH are written from their addresses (link.h).
 *
 * Nothing is lost on the way to the fabric: when the socket is full, emit() says -EAGAIN until the
 * fabric has read, and what is left of a train waits here. When the connection has ended packets get lost, as with an unplugged cable.
 */
#ifndef TRANSPORT_FABRIC_PLUGGED_H
#define TRANSPORT_FABRIC_PLUGGED_H

#include <stdbool.h>
#include <stddef.h>

#include "plug/plug.h"
#include "transport/carrier/carrier.h"

#define PLUGGED_TRAIN_PACKETS 16 /* the longest train */

struct plugged_params {
	int fd; /* of plug_connect(); becomes the carrier's */
	/* A message that is no packet; from within poll(). `body` has head->bytes. */
	void (*message)(const struct plug_head *head, const void *body);
	/* A packet for queue pair 1; from within poll(). It is not delivered. */
	void (*management)(const struct carrier_unit *unit);
	/* The connection has ended; once, from within poll(). */
	void (*ended)(void);
};

struct plugged_counters {
	uint64_t malformed; /* messages and packets that the fabric should not have sent */
};

/* 0 or -ENOMEM; then `fd` is the caller's still. */
int plugged_open(const struct plugged_params *params, struct carrier **out);
/* Sends a message that is no packet. Waits for room, up to a second. 0 or a negative errno. */
int plugged_send(struct carrier *c, enum plug_type type, uint32_t a, uint32_t b, const void *body,
		 size_t bytes);
void plugged_count(struct carrier *c, struct plugged_counters *out);

#endif
