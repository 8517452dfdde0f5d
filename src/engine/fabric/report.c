/* SPDX-License-Identifier: BSD-2-Clause */
/* What the owner hears, and the pool of packets; see report.h. */
#include "engine/fabric/report.h"

#include <string.h>

struct fabric_item *fabric_item_new(struct fabric *f)
{
	struct fabric_packet *free_one = f->free_items;
	struct fabric_item *item;

	if (free_one) {
		f->free_items = free_one->next;
		item = fabric_item_of(free_one);
		memset(&item->packet, 0, sizeof(item->packet));
	} else if (f->items_used < f->limits.packets) {
		item = &f->items[f->items_used++];
		memset(item, 0, sizeof(*item));
		fabric_due_init(&item->due, FABRIC_DUE_PACKET);
	} else {
		return NULL;
	}
	item->stage = FABRIC_STAGE_OWNER;
	item->holder = NULL;
	item->in = item->out = NULL;
	item->blocks = 0;
	item->lost = false;
	return item;
}

void fabric_item_free(struct fabric *f, struct fabric_item *item)
{
	item->stage = FABRIC_STAGE_FREE;
	item->packet.next = f->free_items;
	f->free_items = &item->packet;
}

struct fabric_packet *fabric_packet(struct fabric *f)
{
	struct fabric_item *item = fabric_item_new(f);

	return item ? &item->packet : NULL;
}

void fabric_packet_free(struct fabric *f, struct fabric_packet *p)
{
	if (p && fabric_item_of(p)->stage == FABRIC_STAGE_OWNER)
		fabric_item_free(f, fabric_item_of(p));
}

static void put_out(struct fabric *f, struct fabric_item *item, struct fabric_port *o)
{
	item->in = o;
	item->stage = FABRIC_STAGE_OUT;
	item->packet.next = NULL;
	*f->out_tail = &item->packet;
	f->out_tail = &item->packet.next;
}

void fabric_report_delivery(struct fabric *f, struct fabric_item *item, struct fabric_port *o)
{
	put_out(f, item, o);
}

static void count_drop(struct fabric_port *o, enum fabric_drop why)
{
	switch (why) {
	case FABRIC_DROP_NO_ROUTE:
	case FABRIC_DROP_LANE:
		o->counters.rcv_switch_relay++;
		break;
	case FABRIC_DROP_CORRUPT:
		o->counters.rcv_errors++;
		o->counters.symbol_errors++;
		break;
	case FABRIC_DROP_MANAGEMENT:
		o->counters.management_dropped++;
		break;
	case FABRIC_DROP_PARTITION: /* by whoever knows the direction */
		break;
	case FABRIC_DROP_LINK_DOWN:
	case FABRIC_DROP_TOO_LONG:
	case FABRIC_DROP_LIFETIME:
	case FABRIC_DROP_STATE:
		o->counters.xmit_discards++;
		break;
	}
}

void fabric_report_drop(struct fabric *f, struct fabric_item *item, struct fabric_port *o,
			enum fabric_drop why)
{
	count_drop(o, why);
	fabric_report_refusal(f, item, o, why);
}

void fabric_report_refusal(struct fabric *f, struct fabric_item *item, struct fabric_port *o,
			   enum fabric_drop why)
{
	fabric_report_event(f, FABRIC_EVENT_DROPPED, f->now_ps, item, o, (uint8_t)why);
	item->lost = true;
	item->why = (uint8_t)why;
	put_out(f, item, o);
}

void fabric_report_writable(struct fabric *f, struct fabric_port *o)
{
	if (o->writable || !f->ops.writable)
		return;
	o->writable = true;
	o->next_writable = NULL;
	*f->writable_tail = o;
	f->writable_tail = &o->next_writable;
}

static void report_packets(struct fabric *f)
{
	struct fabric_packet *p;

	while ((p = f->out)) {
		struct fabric_item *item = fabric_item_of(p);
		const struct fabric_port *o = item->in;

		f->out = p->next;
		if (!f->out)
			f->out_tail = &f->out;
		p->next = NULL;
		item->stage = FABRIC_STAGE_OWNER;
		f->inside--;
		if (item->lost && f->ops.drop) {
			item->lost = false;
			f->ops.drop(f->ops.arg, o->node->number, o->number, p,
				    (enum fabric_drop)item->why);
		} else if (!item->lost && f->ops.deliver) {
			f->ops.deliver(f->ops.arg, o->node->number, o->number, p);
		} else {
			fabric_item_free(f, item);
		}
	}
}

void fabric_report_link(struct fabric *f, const struct fabric_port *o, bool up)
{
	bool before = f->reporting;

	if (!f->ops.link)
		return;
	f->reporting = true; /* what happens meanwhile is reported afterwards */
	f->ops.link(f->ops.arg, o->node->number, o->number, up);
	f->ops.link(f->ops.arg, o->peer->node->number, o->peer->number, up);
	f->reporting = before;
}

void fabric_report(struct fabric *f)
{
	if (f->reporting)
		return;
	f->reporting = true;
	while (f->out || f->writable) {
		struct fabric_port *o = f->writable;

		report_packets(f);
		if (!o)
			continue;
		f->writable = o->next_writable;
		if (!f->writable)
			f->writable_tail = &f->writable;
		o->writable = false;
		f->ops.writable(f->ops.arg, o->node->number, o->number);
	}
	f->reporting = false;
}

void fabric_report_traced(struct fabric *f, enum fabric_event_kind kind, uint64_t at_ps,
			  const struct fabric_item *item, const struct fabric_port *o, uint8_t why)
{
	const struct fabric_event e = {
		.at_ps = at_ps, .packet = &item->packet, .node = o->node->number,
		.kind = (uint8_t)kind, .port = o->number, .lane = item->packet.lane, .why = why,
	};

	f->ops.event(f->ops.arg, &e);
}
