/* SPDX-License-Identifier: BSD-2-Clause */
/* What nodes send, and the flows of adapters. */
#include <errno.h>

#include "engine/fabric/forward.h"
#include "engine/fabric/report.h"
#include "engine/fabric/source.h"

#define BYTES_MAX (4096 + FABRIC_OVERHEAD_BYTES + FABRIC_VCRC_BYTES)
#define BYTES_MIN (FABRIC_LRH_BYTES + FABRIC_VCRC_BYTES)

uint32_t fabric_flow_open(struct fabric *f, uint32_t node, uint8_t port, uint8_t sl)
{
	struct fabric_port *o = fabric_port_at(f, node, port);
	struct fabric_flow *flow = f->free_flows;

	if (!o || o->node->kind != FABRIC_HOST || sl >= 16)
		return 0;
	if (flow)
		f->free_flows = flow->next;
	else if (f->flows_used < f->limits.flows)
		flow = &f->flows[f->flows_used];
	else
		return 0;
	if (flow == &f->flows[f->flows_used]) {
		flow->number = f->flows_used++;
		fabric_source_init(&flow->source);
		fabric_due_init(&flow->due, FABRIC_DUE_FLOW);
		flow->source.is_flow = true;
	}
	flow->port = o;
	flow->sl = sl;
	flow->index = 0;
	flow->tick = flow->not_before_ps = 0;
	return flow->number;
}

static struct fabric_flow *flow_at(const struct fabric *f, uint32_t flow)
{
	return flow && flow < f->flows_used && f->flows[flow].port && !f->flows[flow].closed
		       ? &f->flows[flow] : NULL;
}

void fabric_flow_close(struct fabric *f, uint32_t flow)
{
	struct fabric_flow *fl = flow_at(f, flow);

	if (!fl)
		return;
	fl->closed = true;
	fl->source.full = false;
	fabric_source_offer(f, &fl->source);
}

unsigned fabric_flow_room(const struct fabric *f, uint32_t flow)
{
	const struct fabric_flow *fl = flow_at(f, flow);

	return fl ? FABRIC_FLOW_PACKETS - fl->source.count : 0;
}

static int check(const struct fabric *f, const struct fabric_port *o, const struct fabric_packet *p)
{
	if (!o || !p || fabric_item_of((struct fabric_packet *)p)->stage != FABRIC_STAGE_OWNER ||
	    p->bytes < BYTES_MIN || p->bytes > BYTES_MAX || p->sl >= 16)
		return -EINVAL;
	if (!o->number && p->dlid == FABRIC_LID_PERMISSIVE)
		return -EINVAL;
	if (p->flow && (!flow_at(f, p->flow) || f->flows[p->flow].port != o))
		return -EINVAL;
	return 0;
}

/* The packet is the engine's from now on; it has no buffer yet. */
static void enter(struct fabric *f, struct fabric_port *from, struct fabric_item *item)
{
	item->packet.number = ++f->number;
	item->packet.sent_ps = item->tail_ps = f->now_ps;
	item->packet.hops = 0;
	item->in = from;
	item->holder = NULL;
	item->blocks = 0;
	f->inside++;
}

/* `from`: port 0 of a switch, or the port of an adapter. */
static int send_out(struct fabric *f, struct fabric_port *from, struct fabric_port *out,
		    struct fabric_item *item)
{
	struct fabric_packet *p = &item->packet;
	struct fabric_source *s;

	item->out_lane = p->lane == FABRIC_LANE_MANAGEMENT ? FABRIC_LANE_MANAGEMENT :
		fabric_forward_lane(out->node, 0, out->number, p->sl);
	s = p->flow ? &f->flows[p->flow].source : &from->own[item->out_lane];
	if (s->count >= FABRIC_FLOW_PACKETS) {
		s->full = true;
		return -EAGAIN;
	}
	enter(f, from, item);
	fabric_forward_out(f, item, out, s);
	fabric_report(f);
	return 0;
}

int fabric_send(struct fabric *f, uint32_t node, uint8_t port, struct fabric_packet *p)
{
	struct fabric_port *o = fabric_port_at(f, node, port);
	int r = check(f, o, p);
	struct fabric_port *out;
	struct fabric_item *item;

	if (r)
		return r;
	item = fabric_item_of(p);
	if (p->lane != FABRIC_LANE_MANAGEMENT)
		p->lane = 0;
	if (o->number)
		return send_out(f, o->node->kind == FABRIC_HOST ? o : &o->node->port[0], o, item);
	out = p->dlid < FABRIC_LID_MULTICAST ? fabric_forward_lookup(o->node, p->dlid) : NULL;
	if (out && out->number && out->up)
		return send_out(f, o, out, item);
	/* To itself, to a group, or nowhere. */
	enter(f, o, item);
	fabric_forward(f, item);
	fabric_report(f);
	return 0;
}
