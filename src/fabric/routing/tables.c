/* SPDX-License-Identifier: BSD-2-Clause */
/* Forwarding tables: their targets, their memory, and the choice among ports. See routing.h, tables.h. */
#include "fabric/routing/tables.h"

#include <stdlib.h>
#include <string.h>

bool routing_is_switch(const struct topology *t, uint32_t node)
{
	return t->nodes[node].kind == TOPOLOGY_SWITCH;
}

static uint32_t count_targets(const struct topology *t)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < t->node_count; i++)
		count += routing_is_switch(t, i) ? 1U : t->nodes[i].port_count;
	return count;
}

static void add_switch(struct routing *r, uint32_t node)
{
	r->targets[r->target_count++] = (struct routing_target){ .node = node, .at = node };
}

static void add_adapter(const struct topology *t, struct routing *r, uint32_t node)
{
	for (unsigned port = 1; port <= t->nodes[node].port_count; port++) {
		struct routing_target target = { .node = node, .port = (uint8_t)port, .at = TOPOLOGY_NONE };
		struct topology_end peer;

		if (topology_peer(t, node, (uint8_t)port, &peer) && routing_is_switch(t, peer.node)) {
			target.at = peer.node;
			target.at_port = peer.port;
		}
		r->targets[r->target_count++] = target;
	}
}

/* Sorts the targets by the switches where they are. */
static void sort_targets(struct routing *r)
{
	uint32_t sum = 0;

	for (uint32_t i = 0; i < r->target_count; i++)
		if (r->targets[i].at != TOPOLOGY_NONE)
			r->there_first[r->targets[i].at + 1]++;
	for (uint32_t i = 0; i <= r->node_count; i++)
		sum = r->there_first[i] += sum;
	for (uint32_t i = r->target_count; i-- > 0;)
		if (r->targets[i].at != TOPOLOGY_NONE)
			r->there[--r->there_first[r->targets[i].at + 1]] = i;
	/* Now [at + 1] has where `at` begins. */
	for (uint32_t i = 0; i < r->node_count; i++)
		r->there_first[i] = r->there_first[i + 1];
	r->there_first[r->node_count] = sum;
}

struct routing *routing_new(const struct topology *t)
{
	struct routing *r = calloc(1, sizeof(*r));
	uint32_t targets = count_targets(t);

	if (!r)
		return NULL;
	r->node_count = t->node_count;
	r->targets = calloc(targets + 1U, sizeof(*r->targets));
	r->first = calloc(t->node_count + 1U, sizeof(*r->first));
	r->there = calloc(targets + 1U, sizeof(*r->there));
	r->there_first = calloc(t->node_count + 2U, sizeof(*r->there_first));
	r->ports = calloc(t->node_count + 1U, sizeof(*r->ports));
	if (!r->targets || !r->first || !r->there || !r->there_first || !r->ports)
		goto err;
	for (uint32_t i = 0; i < t->node_count; i++) {
		r->first[i] = r->target_count;
		if (!routing_is_switch(t, i)) {
			add_adapter(t, r, i);
			continue;
		}
		add_switch(r, i);
		r->ports[i] = malloc(targets);
		if (!r->ports[i])
			goto err;
		memset(r->ports[i], ROUTING_DISCARD, targets);
	}
	r->first[t->node_count] = r->target_count;
	sort_targets(r);
	return r;
err:
	routing_tables_free(r);
	return NULL;
}

void routing_tables_free(struct routing *r)
{
	if (!r)
		return;
	for (uint32_t i = 0; r->ports && i < r->node_count; i++)
		free(r->ports[i]);
	free(r->ports);
	free(r->there_first);
	free(r->there);
	free(r->first);
	free(r->targets);
	free(r);
}

uint32_t routing_find_target(const struct routing *r, uint32_t node, uint8_t port)
{
	if (node >= r->node_count)
		return TOPOLOGY_NONE;
	for (uint32_t i = r->first[node]; i < r->first[node + 1]; i++)
		if (r->targets[i].port == port)
			return i;
	return TOPOLOGY_NONE;
}

/* The ports of a switch that lead on towards `at`; how many. */
static unsigned find_ports(const struct topology *t, uint32_t from, routing_may *may, const void *context,
			   uint8_t *ports)
{
	unsigned count = 0;

	for (unsigned port = 1; port <= t->nodes[from].port_count; port++) {
		struct topology_end peer;

		if (topology_peer(t, from, (uint8_t)port, &peer) && peer.node != from &&
		    routing_is_switch(t, peer.node) && may(context, from, peer.node))
			ports[count++] = (uint8_t)port;
	}
	return count;
}

static uint8_t least_loaded(const uint32_t *load, const uint8_t *ports, unsigned count)
{
	uint8_t best = ports[0];

	for (unsigned i = 1; i < count; i++)
		if (load[ports[i]] < load[best])
			best = ports[i];
	return best;
}

void routing_fill(const struct topology *t, struct routing *r, uint32_t at, routing_load *load,
		  routing_may *may, const void *context)
{
	for (uint32_t from = 0; from < t->node_count; from++) {
		uint8_t ports[TOPOLOGY_PORTS_MAX];
		unsigned count = 0;

		if (!routing_is_switch(t, from))
			continue;
		if (from != at) {
			count = find_ports(t, from, may, context, ports);
			if (!count)
				continue;
		}
		for (uint32_t i = r->there_first[at]; i < r->there_first[at + 1]; i++) {
			const struct routing_target *target = &r->targets[r->there[i]];
			uint8_t port;

			port = from == at ? target->at_port : least_loaded(load[from], ports, count);
			r->ports[from][r->there[i]] = port;
			/* Little goes to switches themselves. */
			if (target->node != at)
				load[from][port]++;
		}
	}
}
