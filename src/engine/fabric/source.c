/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues of packets that compete for output lanes; see source.h. */
#include "engine/fabric/source.h"

#include "engine/fabric/credit.h"
#include "engine/fabric/report.h"

void fabric_source_init(struct fabric_source *s)
{
	list_init(&s->request);
	s->head = NULL;
	s->tail = &s->head;
	s->count = 0;
}

/* Counts the packet to those at the head that go to one lane, if it goes there; false: it does not. */
static bool extend(struct fabric_source *s, const struct fabric_item *item)
{
	struct fabric_lane *lane = fabric_lane_of(item->out, item->out_lane);

	if (s->ready_count && s->lane != lane)
		return false;
	s->lane = lane;
	s->ready_count++;
	lane->ready_bytes += item->packet.bytes;
	return true;
}

void fabric_source_push(struct fabric *f, struct fabric_source *s, struct fabric_item *item)
{
	item->stage = FABRIC_STAGE_WAITS;
	item->packet.next = NULL;
	*s->tail = &item->packet;
	s->tail = &item->packet.next;
	s->count++;
	fabric_lane_of(item->out, item->out_lane)->queued_bytes += item->packet.bytes;
	if (s->ready_count == s->count - 1)
		extend(s, item);
	if (s->head == &item->packet)
		fabric_source_offer(f, s);
}

static void request(struct fabric *f, struct fabric_source *s, const struct fabric_item *item)
{
	struct fabric_port *o = item->out;
	struct fabric_lane *lane = fabric_lane_of(o, item->out_lane);

	if (list_empty(&lane->requests))
		lane->head_ps = f->now_ps;
	list_push(&lane->requests, &s->request);
	o->requested |= (uint16_t)(1u << item->out_lane);
	fabric_port_wake(f, o);
}

/* Has the flow to wait? Its event is armed then. */
static bool is_early(struct fabric *f, struct fabric_source *s)
{
	struct fabric_flow *flow = container_of(s, struct fabric_flow, source);

	if (!s->is_flow || flow->not_before_ps <= f->now_ps)
		return false;
	if (!fabric_due_is_armed(&flow->due))
		fabric_queue_arm(&f->queue, &flow->due, flow->not_before_ps);
	return true;
}

/* Takes out the first packet, which is not in transmission, and drops it. */
static void drop_first(struct fabric *f, struct fabric_source *s, enum fabric_drop why)
{
	struct fabric_item *item = fabric_source_take(f, s);

	fabric_source_release(f, item->in, item->in_lane, item->blocks, item->holder);
	fabric_report_drop(f, item, item->out, why);
}

/* A flow that was closed while it had packets ends with its last one. */
static void end_flow(struct fabric *f, struct fabric_flow *flow)
{
	if (!flow->closed)
		return;
	flow->closed = false;
	flow->port = NULL;
	flow->next = f->free_flows;
	f->free_flows = flow;
}

void fabric_source_offer(struct fabric *f, struct fabric_source *s)
{
	while (s->head && !s->sending && list_empty(&s->request)) {
		struct fabric_item *item = fabric_item_of(s->head);

		if (!item->out->up) {
			drop_first(f, s, FABRIC_DROP_LINK_DOWN);
		} else if (!fabric_port_sends(item->out, item->out_lane)) {
			drop_first(f, s, FABRIC_DROP_STATE);
		} else if (is_early(f, s)) {
			return;
		} else {
			request(f, s, item);
		}
	}
	if (s->is_flow && !s->head && !s->sending)
		end_flow(f, container_of(s, struct fabric_flow, source));
}

struct fabric_item *fabric_source_take(struct fabric *f, struct fabric_source *s)
{
	struct fabric_item *item = fabric_item_of(s->head);
	struct fabric_lane *lane = fabric_lane_of(item->out, item->out_lane);

	s->head = item->packet.next;
	if (!s->head)
		s->tail = &s->head;
	s->count--;
	s->ready_count--;
	lane->ready_bytes -= item->packet.bytes;
	if (!s->ready_count) /* each packet is counted once */
		for (struct fabric_packet *p = s->head; p && extend(s, fabric_item_of(p)); p = p->next)
			;
	if (s->full && s->count <= FABRIC_FLOW_PACKETS / 2) {
		s->full = false;
		fabric_report_writable(f, item->in);
	}
	lane->queued_bytes -= item->packet.bytes;
	if (!list_empty(&s->request)) {
		list_remove(&s->request);
		if (list_empty(&lane->requests))
			lane->port->requested &= (uint16_t)~(1u << lane->number);
	}
	return item;
}

void fabric_source_drop(struct fabric *f, struct fabric_source *s, enum fabric_drop why)
{
	drop_first(f, s, why);
	fabric_source_offer(f, s);
}

void fabric_source_review(struct fabric *f, struct fabric_port *o)
{
	struct list again;

	for (unsigned i = 0; o->lanes && i <= o->link_lanes; i++) {
		struct fabric_lane *lane = &o->lanes[i];
		struct list *item;

		list_init(&again);
		list_splice(&again, &lane->requests);
		o->requested &= (uint16_t)~(1u << lane->number);
		while ((item = list_pop(&again)))
			fabric_source_offer(f, list_entry(item, struct fabric_source, request));
	}
}

void fabric_source_release(struct fabric *f, struct fabric_port *in, uint8_t lane, uint16_t blocks,
			   struct fabric_item *holder)
{
	if (holder) {
		if (--holder->refs)
			return;
		blocks = holder->blocks;
		fabric_item_free(f, holder);
	}
	if (blocks && in->up)
		fabric_credit_freed(f, fabric_lane_of(in, lane), blocks);
	else if (blocks)
		fabric_lane_of(in, lane)->free_blocks += blocks;
}

void fabric_source_flow_due(struct fabric *f, struct fabric_due *due)
{
	fabric_source_offer(f, &container_of(due, struct fabric_flow, due)->source);
}
