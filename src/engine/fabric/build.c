/* SPDX-License-Identifier: BSD-2-Clause */
/* A fabric and its nodes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine/fabric/ahead.h"
#include "engine/fabric/source.h"

#define NODES 4096
#define LINKS 65536
#define PACKETS (1u << 20)
#define FLOWS (1u << 18)
#define ITEMS_MOST (1u << 26)
#define OWN_LANES 16

static void set_limits(struct fabric_limits *to, const struct fabric_limits *l)
{
	static const struct fabric_limits usual = { NODES, LINKS, PACKETS, FLOWS };

	*to = l ? *l : usual;
	to->nodes = to->nodes ? to->nodes : usual.nodes;
	to->links = to->links ? to->links : usual.links;
	to->packets = to->packets ? to->packets : usual.packets;
	to->flows = (to->flows ? to->flows : usual.flows) + 1; /* number 0 is none */
}

int fabric_open(const struct fabric_limits *limits, const struct fabric_ops *ops, uint64_t seed,
		struct fabric **out)
{
	struct fabric *f = calloc(1, sizeof(*f));

	if (!f)
		return -ENOMEM;
	set_limits(&f->limits, limits);
	if (f->limits.packets <= ITEMS_MOST && f->limits.flows <= ITEMS_MOST) {
		f->nodes = calloc(f->limits.nodes, sizeof(*f->nodes));
		f->items = aligned_alloc(CACHE_LINE, f->limits.packets * sizeof(*f->items));
		f->flows = calloc(f->limits.flows, sizeof(*f->flows));
	}
	fabric_queue_init(&f->queue);
	f->queue.soon = fabric_ahead;
	if (!f->nodes || !f->items || !f->flows ||
	    fabric_queue_reserve(&f->queue, (uint64_t)f->limits.packets + f->limits.flows)) {
		fabric_close(f);
		return -ENOMEM;
	}
	f->flows_used = 1;
	f->ops = *ops;
	f->prng = prng_from(seed);
	f->woken_tail = &f->woken;
	f->writable_tail = &f->writable;
	f->out_tail = &f->out;
	*out = f;
	return 0;
}

static void free_port(struct fabric_port *o)
{
	for (unsigned i = 0; o->lanes && i <= o->link_lanes; i++)
		free(o->lanes[i].by_output);
	free(o->lanes);
	free(o->own);
	free(o->pkeys);
	if (o->throttle)
		free(o->throttle->table);
	free(o->throttle);
}

static void free_node(struct fabric_node *n)
{
	for (unsigned i = 0; n->port && i <= n->ports; i++)
		free_port(&n->port[i]);
	free(n->port);
	free(n->forwarding);
	free(n->multicast);
	free(n->sl_to_lane);
	free(n);
}

/* The owner gets back the packets that the engine has. */
static void give_back(struct fabric *f)
{
	for (uint32_t i = 0; f->ops.drop && i < f->items_used; i++) {
		struct fabric_item *item = &f->items[i];
		const struct fabric_port *o = item->in;

		if (item->stage <= FABRIC_STAGE_OWNER || item->stage == FABRIC_STAGE_HOLDER)
			continue;
		item->stage = FABRIC_STAGE_OWNER;
		f->ops.drop(f->ops.arg, o->node->number, o->number, &item->packet,
			    FABRIC_DROP_LINK_DOWN);
	}
}

void fabric_close(struct fabric *f)
{
	if (!f)
		return;
	give_back(f);
	for (uint32_t i = 0; i < f->node_count; i++)
		free_node(f->nodes[i]);
	free(f->scratch);
	free(f->cycle);
	free(f->nodes);
	free(f->items);
	free(f->flows);
	fabric_queue_free(&f->queue);
	free(f);
}

static int add_own(struct fabric_port *o)
{
	o->own = calloc(OWN_LANES, sizeof(*o->own));
	if (!o->own)
		return -ENOMEM;
	for (unsigned i = 0; i < OWN_LANES; i++)
		fabric_source_init(&o->own[i]);
	return 0;
}

static void init_port(struct fabric_node *n, uint8_t number)
{
	struct fabric_port *o = &n->port[number];

	o->node = n;
	o->number = number;
	o->is_switch = n->kind == FABRIC_SWITCH;
	o->wait_since_ps = FABRIC_NEVER;
	o->setting = (struct fabric_port_setting){
		.state = FABRIC_PORT_DOWN, .lanes = 1, .hoq_life = UINT8_MAX, .mtu = 256,
	};
	fabric_due_init(&o->due, FABRIC_DUE_OUTPUT);
}

int fabric_add_node(struct fabric *f, enum fabric_kind kind, uint8_t ports)
{
	struct fabric_node *n;
	int r = -ENOMEM;

	if (!f || (kind != FABRIC_HOST && kind != FABRIC_SWITCH) || !ports || ports > FABRIC_PORTS_MAX)
		return -EINVAL;
	if (f->node_count == f->limits.nodes)
		return -ENOSPC;
	n = calloc(1, sizeof(*n));
	if (!n)
		return r;
	n->kind = (uint8_t)kind;
	n->ports = ports;
	n->forwarding_top = FABRIC_LID_MULTICAST - 1;
	n->port = fabric_aligned_zero((ports + 1u) * sizeof(*n->port));
	r = n->port ? 0 : -ENOMEM;
	for (unsigned i = 0; !r && i <= ports; i++) {
		init_port(n, (uint8_t)i);
		if ((i > 0) == (kind == FABRIC_HOST))
			r = add_own(&n->port[i]);
	}
	if (r) {
		free_node(n);
		return r;
	}
	n->number = f->node_count;
	f->nodes[f->node_count++] = n;
	return (int)n->number;
}
