/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Credits of a link's lanes: flow control packets and their four counters (IBA volume 1, 7.9). A flow
 * control packet leaves as soon as the port is free when the credit limit has changed. One that would
 * only repeat what the peer knows is left out; the specification has it sent after 65,536 symbol
 * times at the latest, so one is sent by then if a packet or the last flow control packet was
 * damaged. The watchdog of flow control (400,000 symbol times) has nothing to find here.
 */
#ifndef ENGINE_FABRIC_CREDIT_H
#define ENGINE_FABRIC_CREDIT_H

#include "engine/fabric/state.h"

/* Both ends of a lane begin anew, as after the flow control packets of a link's initialisation. */
void fabric_credit_begin(struct fabric_lane *lane);
/* The link went down: flow control packets on the cable are lost. */
void fabric_credit_end(struct fabric *f, struct fabric_lane *lane);

/* Blocks that the peer permits besides those that were sent. */
static inline uint16_t fabric_credit_left(const struct fabric_lane *lane)
{
	return (lane->limit_blocks - lane->sent_blocks) & 0xfff;
}

static inline bool fabric_credit_suffices(const struct fabric_lane *lane, uint16_t blocks)
{
	return lane->number == FABRIC_LANE_MANAGEMENT ||
	       ((lane->limit_blocks - (lane->sent_blocks + blocks)) & 0xfff) <= 2048;
}

/* A packet has come into the buffer of the input lane. */
void fabric_credit_arrived(struct fabric *f, struct fabric_lane *lane, uint16_t blocks);
/* A packet has left it. */
void fabric_credit_freed(struct fabric *f, struct fabric_lane *lane, uint16_t blocks);
/* A damaged packet was dropped before it took up room: what its sender has counted is set right by
 * the sender's next flow control packet. */
void fabric_credit_damaged(struct fabric *f, struct fabric_lane *lane);

/* Sends the flow control packets that are due; how many bytes. */
uint32_t fabric_credit_send(struct fabric *f, struct fabric_port *o);
/* A flow control packet, the owner of the event, arrives at the other end. */
void fabric_credit_arrive(struct fabric *f, struct fabric_due *due);
/* The time for a repetition has come. */
void fabric_credit_refresh(struct fabric *f, struct fabric_due *due);

/* Does a packet of so many bytes suffer a bit error on this link? Draws a number if the link has
 * an error rate. */
bool fabric_credit_is_damaged(struct fabric *f, const struct fabric_port *o, uint32_t bytes);

#endif
