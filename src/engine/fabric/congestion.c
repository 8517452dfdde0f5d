/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control; see congestion.h. A lane of a switch port is congested while more waits for it than
 * (16 - threshold) / 16 of the buffer that one input lane has: not counted are packets that wait behind
 * packets for other lanes, which are congested. It is the root of the congestion if it has the credits
 * to send: only then it marks, unless victim_mask is set. The index of a flow falls
 * with the ticks of its service level's timer, which are counted when the index is needed.
 */
#include "engine/fabric/congestion.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/fabric/report.h"

#define TICK_PS UINT64_C(1024000)
#define THRESHOLD_MAX 15
#define TABLE_ENTRIES 65536u

static bool is_congested(const struct fabric_lane *lane, const struct fabric_congestion_switch *c)
{
	uint64_t buffer = (uint64_t)lane->port->buffer_blocks * FABRIC_BLOCK_BYTES;

	if (!c->threshold || (lane->starved && !c->victim_mask))
		return false;
	return (uint64_t)lane->ready_bytes * (THRESHOLD_MAX + 1) >
	       buffer * (THRESHOLD_MAX + 1u - c->threshold);
}

void fabric_congestion_mark(struct fabric *f, struct fabric_lane *lane, struct fabric_item *item)
{
	struct fabric_port *o = lane->port;
	const struct fabric_congestion_switch *c = &o->marking;

	lane->congested = is_congested(lane, c);
	if (!lane->congested || !(item->packet.flags & FABRIC_MAY_MARK) ||
	    item->packet.bytes < c->packet_bytes)
		return;
	if (lane->unmarked < c->marking_rate) {
		lane->unmarked++;
		return;
	}
	lane->unmarked = 0;
	item->packet.flags |= FABRIC_FECN;
	o->counters.marked++;
	if (f->ops.marked)
		f->ops.marked(f->ops.arg, o->node->number, o->number, &item->packet);
	fabric_report_event(f, FABRIC_EVENT_MARKED, f->now_ps, item, o, 0);
}

int fabric_set_congestion_switch(struct fabric *f, uint32_t node, uint8_t port,
				 const struct fabric_congestion_switch *c)
{
	struct fabric_node *n = fabric_node_at(f, node);

	if (!n || n->kind != FABRIC_SWITCH || port > n->ports || !c || c->threshold > THRESHOLD_MAX)
		return -EINVAL;
	for (unsigned i = 0; i <= n->ports; i++)
		if (!port || i == port)
			n->port[i].marking = *c;
	return 0;
}

static struct fabric_throttle *throttle_of(struct fabric *f, uint32_t node, uint8_t port)
{
	struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o->throttle)
		o->throttle = calloc(1, sizeof(*o->throttle));
	return o->throttle;
}

static bool is_host_port(const struct fabric *f, uint32_t node, uint8_t port)
{
	const struct fabric_port *o = fabric_port_at(f, node, port);

	return o && o->node->kind == FABRIC_HOST;
}

int fabric_set_congestion_host(struct fabric *f, uint32_t node, uint8_t port, uint8_t sl,
			       const struct fabric_congestion_host *c)
{
	struct fabric_throttle *t;

	if (!is_host_port(f, node, port) || sl >= 16 || (c && c->minimum > c->limit))
		return -EINVAL;
	t = throttle_of(f, node, port);
	if (!t)
		return -ENOMEM;
	t->used &= (uint16_t)~(1u << sl);
	if (c) {
		t->setting[sl] = *c;
		t->used |= (uint16_t)(1u << sl);
	}
	return 0;
}

int fabric_set_congestion_table(struct fabric *f, uint32_t node, uint8_t port, uint16_t first,
				const uint16_t *entries, unsigned count)
{
	struct fabric_throttle *t;
	uint16_t *table;

	if (!is_host_port(f, node, port) || !entries || count > TABLE_ENTRIES - first)
		return -EINVAL;
	t = throttle_of(f, node, port);
	if (!t)
		return -ENOMEM;
	if (first + count > t->table_count) {
		table = realloc(t->table, (first + count) * sizeof(*table));
		if (!table)
			return -ENOMEM;
		memset(table + t->table_count, 0,
		       (first + count - t->table_count) * sizeof(*table));
		t->table = table;
		t->table_count = first + count;
	}
	for (unsigned i = 0; i < count; i++)
		t->table[first + i] = entries[i];
	return 0;
}

static const struct fabric_congestion_host *setting_of(const struct fabric_flow *flow)
{
	const struct fabric_throttle *t = flow->port->throttle;

	return t && (t->used >> flow->sl & 1) ? &t->setting[flow->sl] : NULL;
}

/* Lets the index fall by the ticks since it was right. */
static void settle(struct fabric *f, struct fabric_flow *flow, const struct fabric_congestion_host *c)
{
	uint64_t tick = c->timer ? f->now_ps / (c->timer * TICK_PS) : 0;
	uint64_t fall = tick > flow->tick ? tick - flow->tick : 0;

	flow->tick = tick;
	if (flow->index > c->limit)
		flow->index = c->limit;
	flow->index = flow->index > c->minimum + fall ? (uint16_t)(flow->index - fall) : c->minimum;
}

void fabric_becn(struct fabric *f, uint32_t flow)
{
	const struct fabric_congestion_host *c;
	struct fabric_flow *fl;

	if (!flow || flow >= f->flows_used || !f->flows[flow].port)
		return;
	fl = &f->flows[flow];
	c = setting_of(fl);
	if (!c)
		return;
	settle(f, fl, c);
	fl->index = fl->index + c->increase < c->limit ? (uint16_t)(fl->index + c->increase)
						       : c->limit;
}

uint64_t fabric_congestion_delay_ps(struct fabric *f, struct fabric_flow *flow, uint64_t packet_ps)
{
	const struct fabric_congestion_host *c = setting_of(flow);
	const struct fabric_throttle *t = flow->port->throttle;
	uint16_t entry;

	if (!c)
		return 0;
	settle(f, flow, c);
	if (!t->table_count)
		return 0;
	entry = t->table[flow->index < t->table_count ? flow->index : t->table_count - 1];
	return ((uint64_t)(entry & 0x3fff) * packet_ps) >> (entry >> 14);
}
