/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a port sends next; see output.h. In this order: management packets, flow control packets, data by
 * arbitration (IBA volume 1, 7.6.9). Each packet is sent whole.
 */
#include "engine/fabric/output.h"

#include "engine/fabric/arbiter.h"
#include "engine/fabric/congestion.h"
#include "engine/fabric/credit.h"
#include "engine/fabric/report.h"
#include "engine/fabric/source.h"

#define WAIT_TICK_PS 22000
#define LIFETIME_PS UINT64_C(4096000)
#define LIFETIME_UNLIMITED 20

static struct fabric_source *first_of(const struct fabric_lane *lane)
{
	return list_entry(lane->requests.next, struct fabric_source, request);
}

static uint64_t lifetime_ps(const struct fabric_port *o)
{
	return !o->is_switch || o->setting.hoq_life >= LIFETIME_UNLIMITED
		       ? FABRIC_NEVER : LIFETIME_PS << o->setting.hoq_life;
}

/* When the packet comes to the next stage at the other end, and which stage that is. */
static void put_on_link(struct fabric *f, struct fabric_port *o, struct fabric_item *item,
			uint64_t start_ps, uint64_t packet_ps)
{
	struct fabric_port *peer = o->peer;
	bool cuts = o->peer_cuts;
	uint64_t at;

	item->tail_ps = start_ps + packet_ps + o->delay_ps;
	item->in = peer;
	item->in_lane = item->out_lane;
	item->packet.lane = item->out_lane;
	item->packet.hops++;
	item->out = NULL;
	item->holder = NULL;
	item->blocks = item->in_lane == FABRIC_LANE_MANAGEMENT ? 0 : fabric_blocks(item->packet.bytes);
	if (fabric_credit_is_damaged(f, o, item->packet.bytes))
		item->packet.flags |= FABRIC_CORRUPT;
	item->stage = cuts ? FABRIC_STAGE_HEADER : FABRIC_STAGE_TAIL;
	at = start_ps + o->delay_ps +
	     (cuts ? fabric_bytes_ps(o, FABRIC_LRH_BYTES) : packet_ps);
	fabric_queue_arm(&f->queue, &item->due, at);
}

static void count_sent(struct fabric_port *o, const struct fabric_item *item)
{
	struct fabric_counters *c = &o->counters;

	c->xmit_packets++;
	c->xmit_words += (item->packet.bytes - FABRIC_VCRC_BYTES) / 4;
	if (item->packet.dlid >= FABRIC_LID_MULTICAST && item->packet.dlid != FABRIC_LID_PERMISSIVE)
		c->multicast_xmit++;
	else
		c->unicast_xmit++;
}

/* Sends the first packet of the lane's first source, from `start_ps` on. */
static void transmit(struct fabric *f, struct fabric_lane *lane, uint64_t start_ps)
{
	struct fabric_source *s = first_of(lane);
	struct fabric_item *item = fabric_item_of(s->head);
	struct fabric_port *o = lane->port;
	uint64_t packet_ps = fabric_bytes_ps(o, item->packet.bytes);

	item->packet.lane = lane->number;
	fabric_source_take(f, s);
	if (o->is_switch && lane->number != FABRIC_LANE_MANAGEMENT)
		fabric_congestion_mark(f, lane, item);
	s->sending = true;
	o->busy_ps = start_ps + packet_ps;
	o->sending = s;
	o->sending_in = item->in;
	o->sending_lane = item->in_lane;
	o->sending_blocks = item->blocks;
	o->sending_holder = item->holder;
	lane->starved = false;
	lane->head_ps = f->now_ps;
	if (lane->number != FABRIC_LANE_MANAGEMENT)
		lane->sent_blocks = (lane->sent_blocks + fabric_blocks(item->packet.bytes)) & 0xfff;
	if (s->is_flow) {
		struct fabric_flow *flow = container_of(s, struct fabric_flow, source);

		flow->not_before_ps = o->busy_ps + fabric_congestion_delay_ps(f, flow, packet_ps);
	}
	count_sent(o, item);
	fabric_report_event(f, FABRIC_EVENT_SENT, start_ps, item, o, 0);
	fabric_queue_cancel(&f->queue, &o->due);
	fabric_queue_arm(&f->queue, &o->due, o->busy_ps);
	put_on_link(f, o, item, start_ps, packet_ps);
}

/* Bits of the lanes with data and the credits for it; notes which ones lack credits. */
static uint16_t lanes_that_can(struct fabric *f, struct fabric_port *o)
{
	uint16_t can = 0;

	for (uint16_t rest = o->requested; rest; rest &= (uint16_t)(rest - 1)) {
		struct fabric_lane *lane = fabric_lane_of(o, (uint8_t)__builtin_ctz(rest));

		if (fabric_credit_suffices(lane, fabric_blocks(first_of(lane)->head->bytes))) {
			can |= (uint16_t)(1u << lane->number);
		} else if (!lane->starved) {
			lane->starved = true;
			lane->starved_ps = f->now_ps;
		}
	}
	return can;
}

/* The heads that stay behind have a limited life. */
static void watch_lifetimes(struct fabric *f, struct fabric_port *o)
{
	uint64_t life = lifetime_ps(o);

	if (life == FABRIC_NEVER)
		return;
	for (uint16_t rest = o->requested; rest; rest &= (uint16_t)(rest - 1)) {
		struct fabric_lane *lane = fabric_lane_of(o, (uint8_t)__builtin_ctz(rest));

		uint64_t at = lane->head_ps + life;

		if (!fabric_due_is_armed(&lane->lifetime))
			fabric_queue_arm(&f->queue, &lane->lifetime,
					 at > f->now_ps ? at : f->now_ps);
	}
}

static void end_wait(struct fabric *f, struct fabric_port *o)
{
	if (o->wait_since_ps == FABRIC_NEVER)
		return;
	o->wait_ps += f->now_ps - o->wait_since_ps;
	o->wait_since_ps = FABRIC_NEVER;
}

void fabric_output_try(struct fabric *f, struct fabric_port *o)
{
	struct fabric_lane *lane = NULL;
	uint64_t start = f->now_ps;
	int number;

	if (!o->up || o->sending)
		return;
	if (start < o->busy_ps) {
		if (!fabric_due_is_armed(&o->due))
			fabric_queue_arm(&f->queue, &o->due, o->busy_ps);
		return;
	}
	if (o->requested >> FABRIC_LANE_MANAGEMENT & 1) {
		lane = fabric_lane_of(o, FABRIC_LANE_MANAGEMENT);
	} else {
		if (o->flow_control_due)
			start += fabric_bytes_ps(o, fabric_credit_send(f, o));
		o->busy_ps = start;
		number = o->requested ? fabric_arbiter_pick(o, lanes_that_can(f, o)) : -1;
		if (number >= 0) {
			lane = fabric_lane_of(o, (uint8_t)number);
			fabric_arbiter_sent(o, first_of(lane)->head->bytes);
		}
	}
	if (lane) {
		end_wait(f, o);
		transmit(f, lane, start);
	} else if (!o->requested) {
		end_wait(f, o);
	} else if (o->wait_since_ps == FABRIC_NEVER) {
		o->wait_since_ps = f->now_ps;
	}
	watch_lifetimes(f, o);
}

/* The packet has left: its buffer is free, and its source offers the next one. */
static void finish(struct fabric *f, struct fabric_port *o)
{
	struct fabric_source *s = o->sending;

	if (!s)
		return;
	o->sending = NULL;
	s->sending = false;
	fabric_source_release(f, o->sending_in, o->sending_lane, o->sending_blocks,
			      o->sending_holder);
	fabric_source_offer(f, s);
}

void fabric_output_due(struct fabric *f, struct fabric_due *due)
{
	struct fabric_port *o = container_of(due, struct fabric_port, due);

	finish(f, o);
	fabric_port_wake(f, o);
}

void fabric_output_lifetime(struct fabric *f, struct fabric_due *due)
{
	struct fabric_lane *lane = container_of(due, struct fabric_lane, lifetime);
	uint64_t life = lifetime_ps(lane->port);

	if (list_empty(&lane->requests) || life == FABRIC_NEVER)
		return;
	if (lane->head_ps + life <= f->now_ps) {
		lane->head_ps = f->now_ps;
		fabric_source_drop(f, first_of(lane), FABRIC_DROP_LIFETIME);
	}
	if (!list_empty(&lane->requests))
		fabric_queue_arm(&f->queue, &lane->lifetime, lane->head_ps + life);
	fabric_port_wake(f, lane->port);
}

void fabric_output_stop(struct fabric *f, struct fabric_port *o)
{
	fabric_queue_cancel(&f->queue, &o->due);
	for (unsigned i = 0; i <= o->link_lanes; i++)
		fabric_queue_cancel(&f->queue, &o->lanes[i].lifetime);
	o->busy_ps = f->now_ps;
	end_wait(f, o);
	finish(f, o);
}

uint64_t fabric_output_waited(const struct fabric *f, const struct fabric_port *o)
{
	uint64_t ps = o->wait_ps;

	if (o->wait_since_ps != FABRIC_NEVER)
		ps += f->now_ps - o->wait_since_ps;
	return ps / WAIT_TICK_PS;
}
