/* SPDX-License-Identifier: BSD-2-Clause */
/* Up/down routes; see route.h. */
#include "fabric/serve/route.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "engine/fabric/fabric.h"

#define FAR UINT32_MAX
#define NO_PORT 255

struct serve_route {
	const struct topology *t;
	const struct fabric *engine;
	uint32_t *level;   /* of a switch: links to the nearest host */
	uint32_t *depth;   /* links to the root */
	uint32_t *down;    /* links to the destination, downwards only */
	uint32_t *any;     /* links to the destination, first upwards, then downwards */
	uint32_t *queue;
	uint8_t *parent;   /* of the tree: the port towards the root */
};

/* The other end of a link that is up. */
static bool neighbour(const struct serve_route *r, uint32_t node, unsigned port, struct topology_end *peer)
{
	return topology_peer(r->t, node, (uint8_t)port, peer) &&
	       fabric_link_is_up(r->engine, node, (uint8_t)port);
}

static bool is_switch(const struct serve_route *r, uint32_t node)
{
	return r->t->nodes[node].kind == TOPOLOGY_SWITCH;
}

/* Is `b` above `a`? */
static bool is_up(const struct serve_route *r, uint32_t a, uint32_t b)
{
	if (r->level[a] != r->level[b])
		return r->level[b] > r->level[a];
	if (r->depth[a] != r->depth[b])
		return r->depth[b] < r->depth[a];
	return b < a;
}

/* Spreads `distance` over switches from those in the queue; `down_only`: from a switch only to those
 * above it. `parent` may be NULL. */
static void spread(struct serve_route *r, uint32_t *distance, uint32_t count, bool down_only,
		   uint8_t *parent)
{
	for (uint32_t head = 0; head < count; head++) {
		uint32_t node = r->queue[head];
		struct topology_end peer;

		for (unsigned p = 1; p <= r->t->nodes[node].port_count; p++) {
			if (!neighbour(r, node, p, &peer) || !is_switch(r, peer.node) ||
			    distance[peer.node] != FAR ||
			    (down_only && !is_up(r, node, peer.node)))
				continue;
			distance[peer.node] = distance[node] + 1;
			if (parent)
				parent[peer.node] = peer.port;
			r->queue[count++] = peer.node;
		}
	}
}

static void clear(struct serve_route *r, uint32_t *distance)
{
	for (uint32_t i = 0; i < r->t->node_count; i++)
		distance[i] = FAR;
}

static void find_levels(struct serve_route *r)
{
	uint32_t count = 0;

	clear(r, r->level);
	for (uint32_t i = 0; i < r->t->node_count; i++) {
		struct topology_end peer;
		bool leaf = false;

		for (unsigned p = 1; is_switch(r, i) && p <= r->t->nodes[i].port_count; p++)
			leaf |= neighbour(r, i, p, &peer) && !is_switch(r, peer.node);
		if (leaf) {
			r->level[i] = 0;
			r->queue[count++] = i;
		}
	}
	spread(r, r->level, count, false, NULL);
}

/* Each part of a subnet that has fallen apart gets a root of its own. */
static void find_tree(struct serve_route *r)
{
	clear(r, r->depth);
	memset(r->parent, NO_PORT, r->t->node_count);
	for (;;) {
		uint32_t root = FAR;

		for (uint32_t i = 0; i < r->t->node_count; i++)
			if (is_switch(r, i) && r->depth[i] == FAR &&
			    (root == FAR || (r->level[i] != FAR && r->level[i] > r->level[root])))
				root = i;
		if (root == FAR)
			return;
		r->depth[root] = 0;
		r->queue[0] = root;
		spread(r, r->depth, 1, false, r->parent);
	}
}

struct serve_route *serve_route_new(const struct topology *t, const struct fabric *engine)
{
	struct serve_route *r = calloc(1, sizeof(*r));
	const size_t n = t->node_count + 1;

	if (!r)
		return NULL;
	*r = (struct serve_route){
		.t = t, .engine = engine, .level = malloc(n * sizeof(uint32_t)),
		.depth = malloc(n * sizeof(uint32_t)), .down = malloc(n * sizeof(uint32_t)),
		.any = malloc(n * sizeof(uint32_t)), .queue = malloc(n * sizeof(uint32_t)),
		.parent = malloc(n),
	};
	if (!r->level || !r->depth || !r->down || !r->any || !r->queue || !r->parent) {
		serve_route_free(r);
		return NULL;
	}
	find_levels(r);
	find_tree(r);
	return r;
}

void serve_route_free(struct serve_route *r)
{
	if (!r)
		return;
	free(r->level);
	free(r->depth);
	free(r->down);
	free(r->any);
	free(r->queue);
	free(r->parent);
	free(r);
}

static int by_order(const void *a, const void *b, void *arg)
{
	const uint32_t *x = a, *y = b;

	/* From the top: those above come first. */
	return is_up(arg, *x, *y) ? 1 : is_up(arg, *y, *x) ? -1 : 0;
}

/* What is reached upwards: from the top to the bottom, each switch knows those above it. */
static void climb(struct serve_route *r)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < r->t->node_count; i++)
		if (is_switch(r, i))
			r->queue[count++] = i;
	qsort_r(r->queue, count, sizeof(*r->queue), by_order, r);
	for (uint32_t i = 0; i < count; i++) {
		uint32_t node = r->queue[i];
		struct topology_end peer;

		r->any[node] = r->down[node];
		if (r->any[node] != FAR)
			continue;
		for (unsigned p = 1; p <= r->t->nodes[node].port_count; p++)
			if (neighbour(r, node, p, &peer) && is_switch(r, peer.node) &&
			    is_up(r, node, peer.node) && r->any[peer.node] != FAR &&
			    r->any[peer.node] + 1 < r->any[node])
				r->any[node] = r->any[peer.node] + 1;
	}
}

/* One of the ports that lead one link nearer; equal ones share the LIDs. */
static uint8_t choose(const struct serve_route *r, uint32_t node, uint16_t lid)
{
	const bool goes_down = r->down[node] != FAR;
	uint8_t ports[TOPOLOGY_PORTS_MAX];
	struct topology_end peer;
	unsigned count = 0;

	for (unsigned p = 1; p <= r->t->nodes[node].port_count; p++) {
		if (!neighbour(r, node, p, &peer) || !is_switch(r, peer.node))
			continue;
		if (goes_down ? is_up(r, peer.node, node) && r->down[peer.node] + 1 == r->down[node] :
				is_up(r, node, peer.node) && r->any[peer.node] + 1 == r->any[node])
			ports[count++] = (uint8_t)p;
	}
	return count ? ports[lid % count] : NO_PORT;
}

void serve_route_to(struct serve_route *r, uint32_t to, uint8_t to_port, uint16_t lid, uint8_t *ports)
{
	struct topology_end last = { .node = to };

	memset(ports, NO_PORT, r->t->node_count);
	if (!is_switch(r, to) && (!neighbour(r, to, to_port, &last) || !is_switch(r, last.node)))
		return;
	clear(r, r->down);
	r->down[last.node] = 0;
	r->queue[0] = last.node;
	spread(r, r->down, 1, true, NULL);
	climb(r);
	for (uint32_t i = 0; i < r->t->node_count; i++)
		if (is_switch(r, i) && r->any[i] != FAR && i != last.node)
			ports[i] = choose(r, i, lid);
	ports[last.node] = is_switch(r, to) ? 0 : last.port;
}

int serve_route_in_tree(const struct serve_route *r, uint32_t node, uint8_t port)
{
	struct topology_end peer;

	if (!neighbour(r, node, port, &peer))
		return 0;
	return !is_switch(r, peer.node) || r->parent[node] == port || r->parent[peer.node] == peer.port;
}
