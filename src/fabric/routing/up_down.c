/* SPDX-License-Identifier: BSD-2-Clause */
/* Paths that go up to roots and down again, and the choice of roots. See routing.h. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/routing/tables.h"

struct up_down {
	const struct topology *t;
	uint32_t *rank;   /* of nodes: links to the nearest root */
	uint32_t *order;  /* all switches from the top down */
	uint32_t *down;   /* links from a switch down to the target's, without going up; UINT32_MAX: no way */
	uint32_t *length; /* links on the path that is taken; UINT32_MAX: none */
	uint32_t *queue;
	uint32_t switch_count;
};

/* Whether `a` is above its neighbour `b`. */
static bool is_above(const struct up_down *u, uint32_t a, uint32_t b)
{
	return u->rank[a] != u->rank[b] ? u->rank[a] < u->rank[b] : a < b;
}

/* The switch at the other end of a cable, TOPOLOGY_NONE: there is none. */
static uint32_t neighbour(const struct topology *t, uint32_t node, unsigned port)
{
	struct topology_end peer;

	if (!topology_peer(t, node, (uint8_t)port, &peer) || peer.node == node || !routing_is_switch(t, peer.node))
		return TOPOLOGY_NONE;
	return peer.node;
}

/* ---- ranks ---- */

/* Ranks what the switches in queue[head .. tail) reach, and appends it to the queue. */
static uint32_t rank_from(struct up_down *u, uint32_t head, uint32_t tail)
{
	for (; head < tail; head++) {
		uint32_t at = u->queue[head];

		for (unsigned port = 1; port <= u->t->nodes[at].port_count; port++) {
			uint32_t other = neighbour(u->t, at, port);

			if (other == TOPOLOGY_NONE || u->rank[other] != UINT32_MAX)
				continue;
			u->rank[other] = u->rank[at] + 1;
			u->queue[tail++] = other;
		}
	}
	return tail;
}

/* Switches from the top down: by rank, and of equal rank by index. */
static void set_order(struct up_down *u, uint32_t deepest)
{
	u->switch_count = 0;
	for (uint32_t rank = 0; rank <= deepest; rank++)
		for (uint32_t i = 0; i < u->t->node_count; i++)
			if (routing_is_switch(u->t, i) && u->rank[i] == rank)
				u->order[u->switch_count++] = i;
}

static int rank_switches(struct up_down *u, const uint32_t *roots, uint32_t root_count)
{
	uint32_t tail = 0, deepest = 0;

	for (uint32_t i = 0; i < u->t->node_count; i++)
		u->rank[i] = UINT32_MAX;
	for (uint32_t i = 0; i < root_count; i++) {
		if (roots[i] >= u->t->node_count || !routing_is_switch(u->t, roots[i]))
			return -EINVAL;
		if (u->rank[roots[i]] == 0)
			continue;
		u->rank[roots[i]] = 0;
		u->queue[tail++] = roots[i];
	}
	tail = rank_from(u, 0, tail);
	/* Other parts of the subnet, if there are any, have a root each. */
	for (uint32_t i = 0; i < u->t->node_count; i++)
		if (routing_is_switch(u->t, i) && u->rank[i] == UINT32_MAX) {
			u->rank[i] = 0;
			u->queue[tail] = i;
			tail = rank_from(u, tail, tail + 1);
		}
	for (uint32_t i = 0; i < tail; i++)
		deepest = u->rank[u->queue[i]] > deepest ? u->rank[u->queue[i]] : deepest;
	set_order(u, deepest);
	return 0;
}

/* ---- paths ---- */

/* Ways down to `at`, found upwards from there. */
static void measure_down(struct up_down *u, uint32_t at)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t i = 0; i < u->t->node_count; i++)
		u->down[i] = UINT32_MAX;
	u->down[at] = 0;
	u->queue[tail++] = at;
	for (; head < tail; head++) {
		uint32_t here = u->queue[head];

		for (unsigned port = 1; port <= u->t->nodes[here].port_count; port++) {
			uint32_t other = neighbour(u->t, here, port);

			if (other == TOPOLOGY_NONE || u->down[other] != UINT32_MAX || !is_above(u, other, here))
				continue;
			u->down[other] = u->down[here] + 1;
			u->queue[tail++] = other;
		}
	}
}

/* Of switches without a way down, the way up to one that has it; those above are measured already. */
static void measure_up(struct up_down *u)
{
	for (uint32_t i = 0; i < u->switch_count; i++) {
		uint32_t here = u->order[i], best = UINT32_MAX;

		u->length[here] = u->down[here];
		if (u->down[here] != UINT32_MAX)
			continue;
		for (unsigned port = 1; port <= u->t->nodes[here].port_count; port++) {
			uint32_t other = neighbour(u->t, here, port);

			if (other != TOPOLOGY_NONE && is_above(u, other, here) && u->length[other] < best)
				best = u->length[other];
		}
		if (best != UINT32_MAX)
			u->length[here] = best + 1;
	}
}

static bool may_go(const void *context, uint32_t from, uint32_t to)
{
	const struct up_down *u = context;

	if (u->down[from] != UINT32_MAX)
		return is_above(u, from, to) && u->down[to] < u->down[from];
	return is_above(u, to, from) && u->length[to] < u->length[from];
}

static int make_paths(struct up_down *u, struct routing *r)
{
	routing_load *load = calloc(u->t->node_count + 1U, sizeof(*load));

	if (!load)
		return -ENOMEM;
	for (uint32_t at = 0; at < u->t->node_count; at++) {
		if (!routing_is_switch(u->t, at))
			continue;
		measure_down(u, at);
		measure_up(u);
		routing_fill(u->t, r, at, load, may_go, u);
	}
	free(load);
	return 0;
}

/* ---- roots ---- */

/* The sum of the hops from a switch to all adapters; UINT64_MAX: it does not reach all that others do. */
static int sum_hops(const struct topology *t, uint32_t from, uint32_t *hops, uint64_t *sum)
{
	int err = topology_hops(t, from, hops);

	*sum = 0;
	for (uint32_t i = 0; i < t->node_count && !err; i++)
		if (!routing_is_switch(t, i))
			*sum += hops[i] == UINT32_MAX ? TOPOLOGY_NODES_MAX : hops[i];
	return err;
}

/* Whether no adapter hangs at a switch, and none of its neighbours is a root. */
static bool stands_apart(const struct topology *t, uint32_t node, const uint32_t *roots, uint32_t root_count)
{
	for (unsigned port = 1; port <= t->nodes[node].port_count; port++) {
		struct topology_end peer;

		if (!topology_peer(t, node, (uint8_t)port, &peer))
			continue;
		if (!routing_is_switch(t, peer.node))
			return false;
		for (uint32_t i = 0; i < root_count; i++)
			if (roots[i] == peer.node)
				return false;
	}
	return true;
}

int routing_find_roots(const struct topology *t, uint32_t *roots, uint32_t *root_count)
{
	uint32_t *hops = malloc((t->node_count + 1U) * sizeof(*hops)), count = 0;
	uint64_t best = UINT64_MAX, sum;
	int err = hops ? 0 : -ENOMEM;

	for (uint32_t i = 0; i < t->node_count && !err; i++) {
		if (!routing_is_switch(t, i))
			continue;
		err = sum_hops(t, i, hops, &sum);
		if (err)
			break;
		if (sum < best)
			count = 0;
		if (sum <= best)
			roots[count++] = i;
		best = sum < best ? sum : best;
	}
	free(hops);
	for (uint32_t i = 0; i < count; i++)
		if (!stands_apart(t, roots[i], roots, count))
			count = 1;
	*root_count = err ? 0 : count;
	return err;
}

/* ---- the engine ---- */

static int route(const struct topology *t, const uint32_t *roots, uint32_t root_count, struct routing **r)
{
	uint32_t n = t->node_count + 1U;
	uint32_t *memory = calloc(n, 5 * sizeof(*memory));
	struct routing *made = routing_new(t);
	struct up_down u = { .t = t };
	int err = memory && made ? 0 : -ENOMEM;

	if (!err) {
		u.rank = memory;
		u.order = u.rank + n;
		u.down = u.order + n;
		u.length = u.down + n;
		u.queue = u.length + n;
		err = rank_switches(&u, roots, root_count);
	}
	if (!err)
		err = make_paths(&u, made);
	free(memory);
	if (err)
		routing_tables_free(made);
	else
		*r = made;
	return err;
}

static int route_from_found_roots(const struct topology *t, struct routing **r)
{
	uint32_t *roots = calloc(t->node_count + 1U, sizeof(*roots)), count;
	struct routing *made = NULL;
	int err = roots ? routing_find_roots(t, roots, &count) : -ENOMEM;

	if (!err)
		err = route(t, roots, count, &made);
	/* Several roots may leave adapters without a path, one does not. */
	if (!err && count > 1 && routing_check_paths(t, made, NULL, 0)) {
		routing_tables_free(made);
		err = route(t, roots, 1, &made);
	}
	free(roots);
	if (!err)
		*r = made;
	return err;
}

int routing_up_down(const struct topology *t, const uint32_t *roots, uint32_t root_count, struct routing **r)
{
	return root_count ? route(t, roots, root_count, r) : route_from_found_roots(t, r);
}
