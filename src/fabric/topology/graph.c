/* SPDX-License-Identifier: BSD-2-Clause */
/* A description as a graph: neighbours, distances, whether it is in one part. See topology.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/topology/say.h"
#include "fabric/topology/topology.h"

bool topology_peer(const struct topology *t, uint32_t node, uint8_t port, struct topology_end *peer)
{
	const struct topology_link *l;

	if (node >= t->node_count || port > t->nodes[node].port_count ||
	    t->nodes[node].ports[port].link == TOPOLOGY_NONE)
		return false;
	l = &t->links[t->nodes[node].ports[port].link];
	/* Both ends of a link may be at one node. */
	*peer = l->end[l->end[0].node == node && l->end[0].port == port];
	return true;
}

/* Breadth first; `queue` has room for all nodes. */
static void measure(const struct topology *t, uint32_t from, uint32_t *hops, uint32_t *queue)
{
	uint32_t head = 0, tail = 0;

	for (uint32_t i = 0; i < t->node_count; i++)
		hops[i] = UINT32_MAX;
	hops[from] = 0;
	queue[tail++] = from;
	while (head < tail) {
		uint32_t at = queue[head++];
		const struct topology_node *n = &t->nodes[at];
		struct topology_end peer;

		if (n->kind != TOPOLOGY_SWITCH && at != from)
			continue;
		for (unsigned port = 1; port <= n->port_count; port++)
			if (topology_peer(t, at, (uint8_t)port, &peer) && hops[peer.node] == UINT32_MAX) {
				hops[peer.node] = hops[at] + 1;
				queue[tail++] = peer.node;
			}
	}
}

int topology_hops(const struct topology *t, uint32_t from, uint32_t *hops)
{
	uint32_t *queue = malloc(t->node_count * sizeof(*queue));

	if (!queue)
		return -ENOMEM;
	measure(t, from, hops, queue);
	free(queue);
	return 0;
}

static int check_reached(const struct topology *t, uint32_t from, const uint32_t *hops, char *why,
			 size_t why_bytes)
{
	for (uint32_t i = 0; i < t->node_count; i++)
		if (hops[i] == UINT32_MAX)
			return topology_say(why, why_bytes, -ENETUNREACH,
					    "the subnet has two parts or more: no path leads from '%s' to '%s'",
					    t->nodes[from].id, t->nodes[i].id);
	return 0;
}

int topology_check_connected(const struct topology *t, char *why, size_t why_bytes)
{
	uint32_t *work, from = 0, last;
	int err = 0;

	if (!t->node_count)
		return 0;
	work = malloc(2 * (size_t)t->node_count * sizeof(*work));
	if (!work)
		return topology_say(why, why_bytes, -ENOMEM, "no memory to look for paths");
	while (from < t->node_count && t->nodes[from].kind != TOPOLOGY_SWITCH)
		from++;
	/* What a switch reaches also reaches each other through it; of adapters alone that is not so. */
	last = from;
	if (from == t->node_count) {
		from = 0;
		last = t->node_count - 1;
	}
	for (; from <= last && !err; from++) {
		measure(t, from, work, work + t->node_count);
		err = check_reached(t, from, work, why, why_bytes);
	}
	free(work);
	return err;
}

/* ---- equality ---- */

static bool node_equal(const struct topology_node *a, const struct topology_node *b)
{
	if (a->kind != b->kind || a->port_count != b->port_count || a->guid != b->guid ||
	    a->system_guid != b->system_guid || a->vendor_id != b->vendor_id ||
	    a->device_id != b->device_id || a->enhanced_port_0 != b->enhanced_port_0 ||
	    strcmp(a->name, b->name))
		return false;
	for (unsigned i = 0; i <= a->port_count; i++)
		if (a->ports[i].guid != b->ports[i].guid)
			return false;
	return true;
}

static bool link_equal(const struct topology *a, const struct topology_link *la, const struct topology *b)
{
	uint32_t n0 = topology_find_id(b, a->nodes[la->end[0].node].id);
	uint32_t n1 = topology_find_id(b, a->nodes[la->end[1].node].id);
	const struct topology_link *lb;
	struct topology_end peer;

	if (!topology_peer(b, n0, la->end[0].port, &peer) || peer.node != n1 || peer.port != la->end[1].port)
		return false;
	lb = &b->links[b->nodes[n0].ports[la->end[0].port].link];
	return la->width == lb->width && la->speed == lb->speed && la->delay_ns == lb->delay_ns &&
	       la->bit_error_rate == lb->bit_error_rate;
}

bool topology_equal(const struct topology *a, const struct topology *b)
{
	if (a->node_count != b->node_count || a->link_count != b->link_count)
		return false;
	for (uint32_t i = 0; i < a->node_count; i++) {
		uint32_t other = topology_find_id(b, a->nodes[i].id);

		if (other == TOPOLOGY_NONE || !node_equal(&a->nodes[i], &b->nodes[other]))
			return false;
	}
	for (uint32_t i = 0; i < a->link_count; i++)
		if (!link_equal(a, &a->links[i], b))
			return false;
	return true;
}
