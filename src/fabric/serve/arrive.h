/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets that have come to a node: those of an adapter go to the client that has the queue pair or has
 * joined the group, after the check of the partition (IBA volume 1, 10.9.3); MADs go to the node's
 * agents. A packet that a congested port has marked is answered with a notification.
 */
#ifndef FABRIC_SERVE_ARRIVE_H
#define FABRIC_SERVE_ARRIVE_H

#include "fabric/serve/state.h"

/* fabric_ops.deliver and fabric_ops.drop. The packet is theirs. */
void serve_arrive(struct serve *s, uint32_t node, uint8_t port, struct fabric_packet *p);
void serve_arrive_not(struct serve *s, uint32_t node, uint8_t port, struct fabric_packet *p,
		      enum fabric_drop why);
/* The packets that stayed in their adapter. */
void serve_arrive_looped(struct serve *s);

#endif
