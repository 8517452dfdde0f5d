/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows packets through forwarding tables. See routing.h. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/routing/routing.h"
#include "fabric/topology/say.h"

/* Where a packet leaves a node on its way to the target; ROUTING_DISCARD: it does not. */
static uint8_t port_out(const struct routing *r, uint32_t source, uint32_t node, uint32_t target)
{
	/* An adapter sends its own packets alone, through the port that they come from. */
	return r->ports[node] ? r->ports[node][target] : r->targets[source].port;
}

int routing_path(const struct topology *t, const struct routing *r, uint32_t source, uint32_t target,
		 uint32_t *links, uint32_t most)
{
	const struct routing_target *to = &r->targets[target];
	struct topology_end at = { r->targets[source].node, r->targets[source].port };
	uint32_t count = 0;

	/* A switch has one target, and an adapter's port is reached through this port. */
	while (at.node != to->node || at.port != (r->ports[to->node] ? at.port : to->port)) {
		uint8_t port = port_out(r, source, at.node, target);
		struct topology_end peer;

		if ((!r->ports[at.node] && count) || port == ROUTING_DISCARD ||
		    !topology_peer(t, at.node, port, &peer))
			return -ENETUNREACH;
		if (count > t->node_count)
			return -ELOOP;
		if (links) {
			if (count >= most)
				return -ENOSPC;
			links[count] = t->nodes[at.node].ports[port].link;
		}
		count++;
		at = peer;
	}
	return (int)count;
}

/* ---- all paths ---- */

struct reach {
	const struct topology *t;
	const struct routing *r;
	uint32_t *known; /* of a switch: the target + 1 that it is known to reach */
};

/* Follows a packet from a switch to where it is known that the target is reached. */
static int follow(const struct reach *c, uint32_t from, uint32_t target)
{
	const struct routing_target *to = &c->r->targets[target];
	uint32_t at = from, steps;

	for (steps = 0; at != to->at && c->known[at] != target + 1; steps++) {
		uint8_t port = c->r->ports[at][target];
		struct topology_end peer;

		if (steps > c->t->node_count)
			return -ELOOP;
		if (port == ROUTING_DISCARD || !topology_peer(c->t, at, port, &peer) || !c->r->ports[peer.node])
			return -ENETUNREACH;
		at = peer.node;
	}
	if (at == to->at && c->r->ports[at][target] != to->at_port)
		return -ENETUNREACH;
	for (at = from; steps; steps--) {
		struct topology_end peer;

		c->known[at] = target + 1;
		topology_peer(c->t, at, c->r->ports[at][target], &peer);
		at = peer.node;
	}
	return 0;
}

static bool is_adapter(const struct routing_target *target)
{
	return target->port && target->at != TOPOLOGY_NONE;
}

static int check_target(const struct reach *c, uint32_t target, char *why, size_t why_bytes)
{
	const struct routing_target *to = &c->r->targets[target];

	for (uint32_t i = 0; i < c->r->target_count; i++) {
		const struct routing_target *from = &c->r->targets[i];
		int err = is_adapter(from) ? follow(c, from->at, target) : 0;

		if (err)
			return topology_say(why, why_bytes, err, "%s from port %u of '%s' to port %u of '%s'",
					    err == -ELOOP ? "packets go in circles" : "no path leads", from->port,
					    c->t->nodes[from->node].id, to->port, c->t->nodes[to->node].id);
	}
	return 0;
}

int routing_check_paths(const struct topology *t, const struct routing *r, char *why, size_t why_bytes)
{
	struct reach c = { t, r, calloc(t->node_count + 1U, sizeof(uint32_t)) };
	int err = 0;

	if (!c.known)
		return topology_say(why, why_bytes, -ENOMEM, "no memory to follow paths");
	for (uint32_t i = 0; i < r->target_count && !err; i++)
		if (is_adapter(&r->targets[i]))
			err = check_target(&c, i, why, why_bytes);
	free(c.known);
	return err;
}
