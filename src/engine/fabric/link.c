/* SPDX-License-Identifier: BSD-2-Clause */
/* Links between ports: made, cut and joined again; the queues behind them. */
#include <errno.h>
#include <stdlib.h>

#include "engine/fabric/arbiter.h"
#include "engine/fabric/credit.h"
#include "engine/fabric/output.h"
#include "engine/fabric/report.h"
#include "engine/fabric/source.h"

#define BYTE_PS UINT64_C(8000000000000) /* of a byte at 1 bit/s */
/* A symbol is a byte of one of four lanes, as on a link of width 4x. */
#define REFRESH_SYMBOLS 65536
#define SYMBOL_BYTES 4

static void init_lane(struct fabric_lane *lane, struct fabric_port *o, uint8_t number)
{
	lane->port = o;
	lane->number = number;
	list_init(&lane->requests);
	lane->free_blocks = o->buffer_blocks;
	fabric_due_init(&lane->lifetime, FABRIC_DUE_LIFETIME);
	fabric_due_init(&lane->refresh, FABRIC_DUE_REFRESH);
	fabric_source_init(&lane->in);
	for (uint8_t i = 0; i < FABRIC_FLOW_CONTROL_MAX; i++) {
		fabric_due_init(&lane->flow_control[i].due, FABRIC_DUE_CREDIT);
		lane->flow_control[i].due.index = i;
	}
}

static struct fabric_source *new_by_output(const struct fabric_node *n)
{
	struct fabric_source *s = calloc(n->ports + 1u, sizeof(*s));

	for (unsigned i = 0; s && i <= n->ports; i++)
		fabric_source_init(&s[i]);
	return s;
}

/* One queue for each output, or none. */
static int set_queues(struct fabric_port *o, bool by_output)
{
	for (unsigned i = 0; o->lanes && i < o->link_lanes; i++) {
		struct fabric_lane *lane = &o->lanes[i];

		if (!by_output) {
			free(lane->by_output);
			lane->by_output = NULL;
			lane->has_outputs = false;
		} else if (!lane->by_output) {
			lane->by_output = new_by_output(o->node);
			if (!lane->by_output)
				return -ENOMEM;
			lane->has_outputs = true;
		}
	}
	return 0;
}

static bool is_rate(uint64_t bps)
{
	return bps >= 1000000 && bps <= BYTE_PS;
}

static void set_rate(struct fabric_port *o, uint64_t bps)
{
	o->bps = bps;
	o->byte_ps = BYTE_PS % bps ? 0 : BYTE_PS / bps;
	o->refresh_ps = fabric_bytes_ps(o, REFRESH_SYMBOLS * SYMBOL_BYTES);
}

static int init_link(struct fabric_port *o, const struct fabric_link *link)
{
	o->link_lanes = link->lanes;
	set_rate(o, link->bps);
	o->delay_ps = link->delay_ps;
	o->bit_error_rate = link->bit_error_rate;
	o->mtu = link->mtu;
	o->buffer_blocks = link->buffer_bytes / FABRIC_BLOCK_BYTES;
	o->lanes = fabric_aligned_zero((link->lanes + 1u) * sizeof(*o->lanes));
	if (!o->lanes)
		return -ENOMEM;
	for (uint8_t i = 0; i <= link->lanes; i++)
		init_lane(&o->lanes[i], o, i == link->lanes ? FABRIC_LANE_MANAGEMENT : i);
	o->setting.lanes = link->lanes;
	o->setting.mtu = link->mtu;
	fabric_arbiter_init(o);
	return set_queues(o, o->node->sw.virtual_output_queues);
}

static bool is_lanes(unsigned lanes)
{
	return lanes == 1 || lanes == 2 || lanes == 4 || lanes == 8 || lanes == 15;
}

static bool is_mtu(unsigned mtu)
{
	return mtu >= 256 && mtu <= 4096 && !(mtu & (mtu - 1));
}

static bool is_link(const struct fabric_link *l)
{
	return l && is_rate(l->bps) &&
	       l->delay_ps <= FABRIC_DELAY_PS_MAX && is_lanes(l->lanes) && is_mtu(l->mtu) &&
	       l->bit_error_rate >= 0 && l->bit_error_rate < 1 &&
	       l->buffer_bytes >= (uint32_t)l->mtu + FABRIC_OVERHEAD_BYTES + FABRIC_VCRC_BYTES;
}

static void undo_link(struct fabric_port *o)
{
	for (unsigned i = 0; o->lanes && i <= o->link_lanes; i++)
		free(o->lanes[i].by_output);
	free(o->lanes);
	o->lanes = NULL;
	o->link_lanes = 0;
}

/* Room for the search for deadlocks. */
static int grow_scratch(struct fabric *f, uint32_t lanes)
{
	struct fabric_lane **scratch = realloc(f->scratch, (f->lane_count + lanes) * sizeof(*scratch));
	struct fabric_lane_at *cycle;

	if (!scratch)
		return -ENOMEM;
	f->scratch = scratch;
	cycle = realloc(f->cycle, (f->lane_count + lanes) * sizeof(*cycle));
	if (!cycle)
		return -ENOMEM;
	f->cycle = cycle;
	f->lane_count += lanes;
	return 0;
}

/* That may be armed at the same time at one end: of the port and of its lanes. */
static unsigned link_events(const struct fabric_link *link)
{
	return 1 + (link->lanes + 1u) * (2 + FABRIC_FLOW_CONTROL_MAX);
}

static void join_lanes(struct fabric_port *a, struct fabric_port *b)
{
	for (unsigned i = 0; i <= a->link_lanes; i++) {
		a->lanes[i].peer = &b->lanes[i];
		b->lanes[i].peer = &a->lanes[i];
	}
}

static void come_up(struct fabric *f, struct fabric_port *o)
{
	for (unsigned i = 0; i <= o->link_lanes; i++)
		fabric_credit_begin(&o->lanes[i]);
	o->up = true;
	o->setting.state = FABRIC_PORT_INIT;
	o->busy_ps = f->now_ps;
}

int fabric_add_link(struct fabric *f, uint32_t node_a, uint8_t port_a, uint32_t node_b,
		    uint8_t port_b, const struct fabric_link *link)
{
	struct fabric_port *a = fabric_port_at(f, node_a, port_a);
	struct fabric_port *b = fabric_port_at(f, node_b, port_b);
	int r;

	if (!a || !b || a == b || !port_a || !port_b || !is_link(link))
		return -EINVAL;
	if (a->peer || b->peer)
		return -EEXIST;
	if (f->link_count == f->limits.links)
		return -ENOSPC;
	r = init_link(a, link);
	if (!r)
		r = init_link(b, link);
	if (!r)
		r = fabric_queue_reserve(&f->queue, 2u * link_events(link));
	if (!r)
		r = grow_scratch(f, 2u * link->lanes);
	if (r) {
		undo_link(a);
		undo_link(b);
		return r;
	}
	a->peer = b;
	b->peer = a;
	join_lanes(a, b);
	a->peer_cuts = b->is_switch && !b->node->sw.store_and_forward;
	b->peer_cuts = a->is_switch && !a->node->sw.store_and_forward;
	f->link_count++;
	come_up(f, a);
	come_up(f, b);
	return 0;
}

static void go_down(struct fabric *f, struct fabric_port *o)
{
	o->up = false;
	o->setting.state = FABRIC_PORT_DOWN;
	o->counters.link_downed++;
	fabric_output_stop(f, o);
	for (unsigned i = 0; i <= o->link_lanes; i++) {
		fabric_credit_end(f, &o->lanes[i]);
		o->lanes[i].starved = o->lanes[i].congested = false;
	}
}

/* Drops the packets that are on the cable to `o`. */
static void clear_cable(struct fabric *f, struct fabric_port *o)
{
	for (uint32_t i = 0; i < f->items_used; i++) {
		struct fabric_item *item = &f->items[i];

		if (item->in != o || (item->stage != FABRIC_STAGE_HEADER &&
				      item->stage != FABRIC_STAGE_TAIL))
			continue;
		fabric_queue_cancel(&f->queue, &item->due);
		fabric_report_refusal(f, item, o, FABRIC_DROP_LINK_DOWN);
	}
}

int fabric_set_link(struct fabric *f, uint32_t node, uint8_t port, bool up)
{
	struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o)
		return -EINVAL;
	if (!o->peer)
		return -ENOLINK;
	if (o->up == up)
		return 0;
	if (up) {
		come_up(f, o);
		come_up(f, o->peer);
	} else {
		go_down(f, o);
		go_down(f, o->peer);
		clear_cable(f, o);
		clear_cable(f, o->peer);
		fabric_source_review(f, o);
		fabric_source_review(f, o->peer);
	}
	fabric_report_link(f, o, up);
	fabric_report(f);
	return 0;
}

int fabric_set_rate(struct fabric *f, uint32_t node, uint8_t port, uint64_t bps)
{
	struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o || !is_rate(bps))
		return -EINVAL;
	if (!o->peer)
		return -ENOLINK;
	if (o->up)
		return -EBUSY;
	set_rate(o, bps);
	set_rate(o->peer, bps);
	return 0;
}

int fabric_set_bit_error_rate(struct fabric *f, uint32_t node, uint8_t port, double rate)
{
	struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o || !(rate >= 0 && rate < 1))
		return -EINVAL;
	if (!o->peer)
		return -ENOLINK;
	o->bit_error_rate = o->peer->bit_error_rate = rate;
	return 0;
}

int fabric_peer(const struct fabric *f, uint32_t node, uint8_t port, uint32_t *peer,
		uint8_t *peer_port)
{
	const struct fabric_port *o = fabric_port_at(f, node, port);

	if (!o)
		return -EINVAL;
	if (!o->peer)
		return -ENOLINK;
	*peer = o->peer->node->number;
	*peer_port = o->peer->number;
	return 0;
}

bool fabric_link_is_up(const struct fabric *f, uint32_t node, uint8_t port)
{
	const struct fabric_port *o = fabric_port_at(f, node, port);

	return o && o->up;
}

static bool has_packets(const struct fabric_node *n)
{
	for (unsigned i = 1; i <= n->ports; i++)
		for (unsigned k = 0; n->port[i].lanes && k < n->port[i].link_lanes; k++)
			if (n->port[i].lanes[k].free_blocks != n->port[i].buffer_blocks)
				return true;
	return false;
}

int fabric_set_switch(struct fabric *f, uint32_t node, const struct fabric_switch *s)
{
	struct fabric_node *n = fabric_node_at(f, node);

	if (!n || n->kind != FABRIC_SWITCH || !s || s->latency_ps > FABRIC_DELAY_PS_MAX)
		return -EINVAL;
	if (s->virtual_output_queues != n->sw.virtual_output_queues) {
		if (has_packets(n))
			return -EBUSY;
		for (unsigned i = 1; i <= n->ports; i++)
			if (set_queues(&n->port[i], s->virtual_output_queues))
				return -ENOMEM;
	}
	n->sw = *s;
	for (unsigned i = 1; i <= n->ports; i++)
		if (n->port[i].peer)
			n->port[i].peer->peer_cuts = !s->store_and_forward;
	return 0;
}
