/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DFSSSP: shortest paths that avoid what other paths use, in layers (Domke, Hoefler, Nagel, "Deadlock-free
 * oblivious routing for arbitrary topologies", 2011). See routing.h. For one target after the other, each
 * switch takes the port from which on the fewest paths so far pass the cables to the target, all of them
 * counted; then the paths to this target count, too. The original lets a path be longer in
 * no case either: there each cable begins with a weight above all counts, here only nearer switches are looked at.
 * The layers are those of layers.c, and not made by moving the paths of the weakest edge of each circle.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/routing/layers.h"

struct sssp {
	const struct topology *t;
	struct routing *r;
	routing_load *load; /* paths between adapters that leave by a port of a switch */
	uint32_t *hops;     /* of all nodes from the switch where the target is */
	uint32_t *order;    /* switches that reach it, the nearest ones first */
	uint32_t count;
	uint64_t *cost;     /* paths on the cables from a switch to the target */
	uint32_t *behind;   /* adapters whose packets for the target pass the switch */
};

static int prepare(struct sssp *c)
{
	const uint32_t nodes = c->t->node_count + 1U;

	c->r = routing_new(c->t);
	c->load = calloc(nodes, sizeof(*c->load));
	c->hops = malloc(nodes * sizeof(*c->hops));
	c->order = malloc(nodes * sizeof(*c->order));
	c->cost = malloc(nodes * sizeof(*c->cost));
	c->behind = malloc(nodes * sizeof(*c->behind));
	return c->r && c->load && c->hops && c->order && c->cost && c->behind ? 0 : -ENOMEM;
}

static void clean(struct sssp *c)
{
	free(c->load);
	free(c->hops);
	free(c->order);
	free(c->cost);
	free(c->behind);
}

/* The switches by their distance from `at`: breadth first, ports in order. */
static int sort_switches(struct sssp *c, uint32_t at)
{
	int err = topology_hops(c->t, at, c->hops);

	if (err)
		return err;
	/* Who has a place in `order` has a cost. */
	memset(c->cost, 0xff, (c->t->node_count + 1U) * sizeof(*c->cost));
	c->count = 0;
	c->order[c->count++] = at;
	c->cost[at] = 0;
	for (uint32_t i = 0; i < c->count; i++) {
		uint32_t from = c->order[i];

		for (unsigned port = 1; port <= c->t->nodes[from].port_count; port++) {
			struct topology_end peer;

			if (!topology_peer(c->t, from, (uint8_t)port, &peer) || !routing_is_switch(c->t, peer.node) ||
			    c->cost[peer.node] != UINT64_MAX)
				continue;
			c->cost[peer.node] = 0;
			c->order[c->count++] = peer.node;
		}
	}
	return 0;
}

/* The port with the least cost; of several the one that itself has the fewest paths, then the lowest. */
static uint8_t choose(struct sssp *c, uint32_t from)
{
	uint8_t best = ROUTING_DISCARD;

	for (unsigned port = 1; port <= c->t->nodes[from].port_count; port++) {
		struct topology_end peer;
		uint64_t cost;

		if (!topology_peer(c->t, from, (uint8_t)port, &peer) || !routing_is_switch(c->t, peer.node) ||
		    c->hops[peer.node] >= c->hops[from])
			continue;
		cost = c->cost[peer.node] + c->load[from][port];
		if (best != ROUTING_DISCARD && (cost > c->cost[from] ||
		    (cost == c->cost[from] && c->load[from][port] >= c->load[from][best])))
			continue;
		best = (uint8_t)port;
		c->cost[from] = cost;
	}
	return best;
}

static uint32_t count_adapters(const struct routing *r, uint32_t at)
{
	uint32_t count = 0;

	for (uint32_t i = r->there_first[at]; i < r->there_first[at + 1]; i++)
		count += r->targets[r->there[i]].node != at;
	return count;
}

/* Counts the paths to the target, from the switches that are far from it to those that are near. */
static void count_paths(struct sssp *c, uint32_t target)
{
	for (uint32_t i = 0; i < c->count; i++)
		c->behind[c->order[i]] = count_adapters(c->r, c->order[i]);
	for (uint32_t i = c->count; i-- > 1;) {
		uint32_t from = c->order[i];
		uint8_t port = c->r->ports[from][target];
		struct topology_end peer;

		topology_peer(c->t, from, port, &peer);
		c->load[from][port] += c->behind[from];
		c->behind[peer.node] += c->behind[from];
	}
}

static void route(struct sssp *c, uint32_t target)
{
	const struct routing_target *to = &c->r->targets[target];

	c->r->ports[to->at][target] = to->at_port;
	for (uint32_t i = 1; i < c->count; i++)
		c->r->ports[c->order[i]][target] = choose(c, c->order[i]);
	/* Little goes to switches themselves. */
	if (to->node != to->at)
		count_paths(c, target);
}

static int routing_sssp(const struct topology *t, struct routing **r)
{
	struct sssp c = { .t = t };
	int err = prepare(&c);

	for (uint32_t at = 0; at < t->node_count && !err; at++) {
		if (!routing_is_switch(t, at))
			continue;
		err = sort_switches(&c, at);
		for (uint32_t i = c.r->there_first[at]; i < c.r->there_first[at + 1] && !err; i++)
			route(&c, c.r->there[i]);
	}
	clean(&c);
	if (err)
		routing_tables_free(c.r);
	else
		*r = c.r;
	return err;
}

int routing_dfsssp(const struct topology *t, unsigned layers_max, struct routing **r,
		   struct routing_layers **layers, char *why, size_t why_bytes)
{
	return routing_in_layers(t, routing_sssp, layers_max, r, layers, why, why_bytes);
}
