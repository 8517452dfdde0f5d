/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queues of packets that compete for output lanes. A source is read one packet at a time: its next
 * packet competes when the last byte of the one before has left, so that the first packet of an input
 * lane blocks those behind it (unless the switch has virtual output queues).
 */
#ifndef ENGINE_FABRIC_SOURCE_H
#define ENGINE_FABRIC_SOURCE_H

#include "engine/fabric/state.h"

void fabric_source_init(struct fabric_source *s);
/* Appends a packet whose `out` and `out_lane` are known. */
void fabric_source_push(struct fabric *f, struct fabric_source *s, struct fabric_item *item);
/* Its first packet requests its output lane, if there is one and it may: what cannot be sent is
 * dropped. */
void fabric_source_offer(struct fabric *f, struct fabric_source *s);
/* Takes out the first packet, and the source out of the requests. */
struct fabric_item *fabric_source_take(struct fabric *f, struct fabric_source *s);
/* Takes out the first packet, drops it and offers the next. */
void fabric_source_drop(struct fabric *f, struct fabric_source *s, enum fabric_drop why);
/* The port's state or link has changed: packets at the head of its output lanes are dropped if they
 * may not leave any more. */
void fabric_source_review(struct fabric *f, struct fabric_port *o);
/* A buffer of `in` is free: of the packet, or of the copies of a multicast packet. */
void fabric_source_release(struct fabric *f, struct fabric_port *in, uint8_t lane, uint16_t blocks,
			   struct fabric_item *holder);
/* The time of a flow has come. */
void fabric_source_flow_due(struct fabric *f, struct fabric_due *due);

#endif
