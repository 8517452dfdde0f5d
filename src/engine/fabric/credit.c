/* SPDX-License-Identifier: BSD-2-Clause */
/* Credits of a link's lanes; see credit.h. */
#include "engine/fabric/credit.h"

#define COUNTER 0xfff /* 12 bits */
#define LIMIT_BLOCKS 2048 /* that one flow control packet can permit */

/* FCCL: the source of our notes has the maximum here, which its own test contradicts. */
static uint16_t limit_of(const struct fabric_lane *lane)
{
	uint32_t room = lane->free_blocks < LIMIT_BLOCKS ? lane->free_blocks : LIMIT_BLOCKS;

	return (uint16_t)((lane->received_blocks + room) & COUNTER);
}

void fabric_credit_begin(struct fabric_lane *lane)
{
	struct fabric_lane *peer = lane->peer;

	lane->sent_blocks = 0;
	peer->received_blocks = 0;
	peer->told = lane->limit_blocks = limit_of(peer);
}

void fabric_credit_end(struct fabric *f, struct fabric_lane *lane)
{
	for (unsigned i = 0; i < FABRIC_FLOW_CONTROL_MAX; i++)
		fabric_queue_cancel(&f->queue, &lane->flow_control[i].due);
	fabric_queue_cancel(&f->queue, &lane->refresh);
	lane->flow_control_used = 0;
	lane->flow_control_due = false;
	lane->port->flow_control_due = 0;
}

static void set_due(struct fabric *f, struct fabric_lane *lane)
{
	if (lane->flow_control_due || !lane->port->up)
		return;
	lane->flow_control_due = true;
	lane->port->flow_control_due |= (uint16_t)(1u << lane->number);
	fabric_port_wake(f, lane->port);
}

static void tell(struct fabric *f, struct fabric_lane *lane)
{
	if (limit_of(lane) != lane->told)
		set_due(f, lane);
}

void fabric_credit_arrived(struct fabric *f, struct fabric_lane *lane, uint16_t blocks)
{
	if (lane->number == FABRIC_LANE_MANAGEMENT)
		return;
	lane->received_blocks = (lane->received_blocks + blocks) & COUNTER;
	lane->free_blocks -= blocks;
	tell(f, lane);
}

void fabric_credit_freed(struct fabric *f, struct fabric_lane *lane, uint16_t blocks)
{
	if (lane->number == FABRIC_LANE_MANAGEMENT)
		return;
	lane->free_blocks += blocks;
	tell(f, lane);
}

/* A flow control packet of `lane` leaves within 65,536 symbol times of the last one. */
static void arm_refresh(struct fabric *f, struct fabric_lane *lane)
{
	uint64_t at = lane->flow_control_ps + lane->port->refresh_ps;

	if (!fabric_due_is_armed(&lane->refresh))
		fabric_queue_arm(&f->queue, &lane->refresh, at > f->now_ps ? at : f->now_ps);
}

void fabric_credit_damaged(struct fabric *f, struct fabric_lane *lane)
{
	if (lane->number != FABRIC_LANE_MANAGEMENT)
		arm_refresh(f, lane->peer);
}

void fabric_credit_refresh(struct fabric *f, struct fabric_due *due)
{
	set_due(f, container_of(due, struct fabric_lane, refresh));
}

uint32_t fabric_credit_send(struct fabric *f, struct fabric_port *o)
{
	uint32_t bytes = 0;

	for (uint16_t rest = o->flow_control_due; rest; rest &= (uint16_t)(rest - 1)) {
		struct fabric_lane *lane = fabric_lane_of(o, (uint8_t)__builtin_ctz(rest));
		unsigned free_one = (unsigned)__builtin_ctz(~(unsigned)lane->flow_control_used);
		struct fabric_flow_control *fc = &lane->flow_control[free_one];

		if (free_one == FABRIC_FLOW_CONTROL_MAX)
			continue; /* when one of them has arrived */
		bytes += FABRIC_FLOW_CONTROL_BYTES;
		fc->fctbs = lane->sent_blocks;
		fc->fccl = lane->told = limit_of(lane);
		if (fabric_credit_is_damaged(f, o, FABRIC_FLOW_CONTROL_BYTES))
			fc->fctbs |= FABRIC_FLOW_CONTROL_LOST;
		lane->flow_control_used |= (uint8_t)(1u << free_one);
		lane->flow_control_due = false;
		lane->flow_control_ps = f->now_ps;
		fabric_queue_cancel(&f->queue, &lane->refresh);
		o->flow_control_due &= (uint16_t)~(1u << lane->number);
		fabric_queue_arm(&f->queue, &fc->due,
				 f->now_ps + fabric_bytes_ps(o, bytes) + o->delay_ps);
	}
	return bytes;
}

void fabric_credit_arrive(struct fabric *f, struct fabric_due *due)
{
	struct fabric_flow_control *fc = container_of(due, struct fabric_flow_control, due);
	struct fabric_lane *lane = container_of(fc - due->index, struct fabric_lane, flow_control[0]);
	struct fabric_lane *peer = lane->peer;

	lane->flow_control_used &= (uint8_t)~(1u << due->index);
	if (lane->flow_control_due)
		fabric_port_wake(f, lane->port);
	if (fc->fctbs & FABRIC_FLOW_CONTROL_LOST) {
		peer->port->counters.symbol_errors++;
		arm_refresh(f, lane);
		return;
	}
	if (peer->received_blocks != fc->fctbs) {
		peer->received_blocks = fc->fctbs;
		tell(f, peer);
	}
	if (peer->limit_blocks == fc->fccl)
		return;
	peer->limit_blocks = fc->fccl;
	if (!list_empty(&peer->requests))
		fabric_port_wake(f, peer->port);
}

bool fabric_credit_is_damaged(struct fabric *f, const struct fabric_port *o, uint32_t bytes)
{
	double good = 1, factor = 1 - o->bit_error_rate;

	if (o->bit_error_rate <= 0)
		return false;
	for (uint32_t bits = 8 * bytes; bits; bits >>= 1, factor *= factor)
		if (bits & 1)
			good *= factor;
	return prng_chance(&f->prng, 1 - good);
}
