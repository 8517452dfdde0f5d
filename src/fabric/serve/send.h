/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets into the engine. A packet of a client for which its flow has no room waits in the flow;
 * a client with too many of them is not read. MADs and notifications are lost instead, and counted.
 */
#ifndef FABRIC_SERVE_SEND_H
#define FABRIC_SERVE_SEND_H

#include "fabric/serve/datagram.h"
#include "fabric/serve/state.h"

/* A packet of a client out of its host's port. The buffer is this function's. */
void serve_send_flow(struct serve_flow *w, struct serve_buffer *b, const struct ib_native *n);
/* A packet of a node out of `port`, as fabric_send(). The buffer is this function's; false: lost. */
bool serve_send_node(struct serve *s, uint32_t node, uint8_t port, struct serve_buffer *b,
		     const struct ib_native *n);
/* The packet stays in the adapter of the host: serve_arrive_looped() finds it. */
void serve_send_loop(struct serve *s, uint32_t host, struct serve_buffer *b);
/* The packet has left the engine: its host may send another one. */
void serve_send_done(struct serve *s, struct serve_buffer *b);
/* What waits at hosts that have room again. */
void serve_send_waiting(struct serve *s);

#endif
