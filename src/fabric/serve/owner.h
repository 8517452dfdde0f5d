/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which client of a host has opened a queue pair number, joined a multicast group, and which flow of
 * the engine carries the packets of one of its queue pairs.
 */
#ifndef FABRIC_SERVE_OWNER_H
#define FABRIC_SERVE_OWNER_H

#include "fabric/serve/state.h"

void serve_owner_init(struct serve *s);

/* 0; -EINVAL: no number of a queue pair (2 to 0xffffff); -EADDRINUSE: another client of the host has
 * it; -ENOSPC: the client has too many; -ENOMEM. The client's own number again: 0. */
int serve_owner_open_qp(struct serve_client *c, uint32_t qpn);
int serve_owner_close_qp(struct serve_client *c, uint32_t qpn); /* -ENOENT */
/* NULL: nobody has it. */
struct serve_client *serve_owner_of_qp(struct serve *s, const struct serve_host *h, uint32_t qpn);

/* 0; -EINVAL: no multicast LID or GID; -ENOSPC; -ENOMEM. */
int serve_owner_join(struct serve_client *c, const struct plug_group *g);
int serve_owner_leave(struct serve_client *c, const struct plug_group *g); /* -ENOENT */
/* Calls `f` for each client of the host that has joined; how many. */
unsigned serve_owner_members(struct serve *s, const struct serve_host *h, uint16_t mlid,
			     const uint8_t mgid[16],
			     void (*f)(struct serve_client *c, struct serve_buffer *b),
			     struct serve_buffer *b);

/* The flow of the client for packets with this key, which is opened if it is new; never NULL. */
struct serve_flow *serve_owner_flow(struct serve_client *c, uint64_t key, uint8_t sl);
/* All flows, queue pairs and groups of the client end. Packets that wait are freed. */
void serve_owner_end(struct serve_client *c);

#endif
