/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the files of connecting share, on the instance's thread but for what says otherwise:
 * attempts and events (connect.c), requests of others (connect_accept.c), ends and times
 * (connect_end.c).
 */
#ifndef RIPC_CONNECT_H
#define RIPC_CONNECT_H

#include "ripc/instance/instance.h"

enum { REJECT_CROSSING = 1, REJECT_OTHER_INSTANCE, REJECT_FULL, REJECT_STRANGER };

/* A request of a connected peer is one that crossed, not a new one, for so long. */
#define CROSSING_NS UINT64_C(3000000000)

/* ---- connect.c ---- */

/* Takes the id, also where there is no memory: NULL. */
struct conn *conn_make(struct ripc *r, struct peer *p, struct rdma_cm_id *id, bool active);

/* ---- connect_accept.c ---- */

/* What this side says of itself, with private data in `data`. */
struct rdma_conn_param connect_param(struct conn *c, uint8_t data[PACKET_CONNECT_BYTES]);
/* There is room for a message at the other side. */
bool connect_may_speak(const struct packet_connect *p);
/* What the other side said of itself. */
void connect_take_param(struct conn *c, const struct packet_connect *p);
void connect_requested(struct ripc *r, struct rdma_cm_id *id, const uint8_t *data,
		       size_t length);
/* Requests, of `p` or (NULL) of all, that were granted and not used yet. */
unsigned connect_half_open(const struct ripc *r, const struct peer *p);

/* ---- connect_end.c ---- */

/* Any thread, peer->lock. All that goes with p->conn, which is dead; after that the peer
 * reaches no memory of ours. */
void conn_detach(struct peer *p);
void conn_end(struct conn *c);
/* An attempt of ours, which has come to `err`; 0: another connection is on its way. */
void connect_failed(struct conn *c, int err);
/* Not established, or broken later. */
void conn_failed(struct conn *c, int err);

#endif
