/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The channel dependency graph: an edge leads from one channel to another if a packet may hold the buffer of
 * the first while it waits for room in the second. Dally and Seitz, "Deadlock-free message routing in
 * multiprocessor interconnection networks", 1987: without a circle there is no deadlock. See routing.h.
 */
#include <errno.h>
#include <stdlib.h>

#include "fabric/routing/routing.h"
#include "fabric/topology/lookup.h"

#define NO_CHANNEL UINT32_MAX

struct graph {
	const struct topology *t;
	const struct routing *r;
	routing_lane *lane;
	const void *context;
	unsigned lanes;
	struct topology_table edges; /* from << 32 | to */
	uint32_t *seen;              /* of a switch: the target + 1 whose packets have been followed from there */
};

/* ---- edges ---- */

static uint32_t channel_count(const struct graph *g)
{
	return g->t->link_count * 2 * g->lanes;
}

/* The channel behind a port, as a number below channel_count(). */
static uint32_t channel_of(const struct graph *g, uint32_t node, uint8_t port, unsigned lane)
{
	uint32_t link = g->t->nodes[node].ports[port].link;
	const struct topology_end *first = &g->t->links[link].end[0];
	unsigned from = first->node == node && first->port == port ? 0 : 1;

	return (link * 2 + from) * g->lanes + lane;
}

static int add_edge(struct graph *g, uint32_t from, uint32_t to)
{
	uint64_t key = (uint64_t)from << 32 | to;

	if (topology_table_find(&g->edges, key) != TOPOLOGY_NONE)
		return 0;
	if (topology_table_reserve(&g->edges, 1))
		return -ENOMEM;
	topology_table_add(&g->edges, key, 0);
	return 0;
}

/* Adds the edges of the path between two end ports, as far as packets for the target were not followed before. */
static int add_path(struct graph *g, uint32_t source, uint32_t target)
{
	struct topology_end at = { g->r->targets[source].node, g->r->targets[source].port };
	uint32_t held = NO_CHANNEL, steps = 0;
	bool goes_on = true;

	while (goes_on && steps++ <= g->t->node_count) {
		bool is_switch = g->r->ports[at.node];
		uint8_t out = is_switch ? g->r->ports[at.node][target] : g->r->targets[source].port;
		struct topology_end peer;
		uint32_t next;
		unsigned lane;

		/* At its end, or discarded, which makes room. */
		if ((!is_switch && held != NO_CHANNEL) || out == ROUTING_DISCARD ||
		    !topology_peer(g->t, at.node, out, &peer))
			return 0;
		/* Of one lane all packets for a target go on in the same way. */
		if (is_switch && !g->lane) {
			goes_on = g->seen[at.node] != target + 1;
			g->seen[at.node] = target + 1;
		}
		lane = g->lane ? g->lane(g->context, source, target, at.node, is_switch ? at.port : 0, out) : 0;
		next = channel_of(g, at.node, out, lane % g->lanes);
		if (held != NO_CHANNEL && add_edge(g, held, next))
			return -ENOMEM;
		held = next;
		at = peer;
	}
	return 0;
}

static int add_paths(struct graph *g)
{
	const struct routing_target *targets = g->r->targets;

	for (uint32_t target = 0; target < g->r->target_count; target++)
		for (uint32_t source = 0; source < g->r->target_count; source++) {
			/* Port 0 is a switch's own. */
			bool counts = source != target && (targets[source].port || targets[target].port);

			if (counts && add_path(g, source, target))
				return -ENOMEM;
		}
	return 0;
}

/* ---- circles ---- */

struct search {
	uint32_t *first; /* of a channel: its edges in `to`; [channels]: their number */
	uint32_t *to;
	uint32_t *next;  /* of a channel on the stack: the edge to follow next */
	uint32_t *stack;
	uint8_t *state;  /* of a channel */
};

enum { NEW, ON_STACK, DONE };

static void free_search(struct search *s)
{
	free(s->first);
	free(s->to);
	free(s->next);
	free(s->stack);
	free(s->state);
}

/* The edges, sorted by the channels where they begin. */
static int sort_edges(const struct graph *g, struct search *s)
{
	uint32_t channels = channel_count(g), sum = 0;

	s->first = calloc(channels + 1U, sizeof(*s->first));
	s->next = calloc(channels + 1U, sizeof(*s->next));
	s->stack = calloc(channels + 1U, sizeof(*s->stack));
	s->state = calloc(channels + 1U, 1);
	s->to = calloc(g->edges.count + 1U, sizeof(*s->to));
	if (!s->first || !s->next || !s->stack || !s->state || !s->to)
		return -ENOMEM;
	for (uint32_t i = 0; i < g->edges.capacity; i++)
		if (g->edges.entries[i].value != TOPOLOGY_NONE)
			s->first[g->edges.entries[i].key >> 32]++;
	for (uint32_t i = 0; i <= channels; i++) {
		uint32_t count = s->first[i];

		s->first[i] = s->next[i] = sum;
		sum += count;
	}
	for (uint32_t i = 0; i < g->edges.capacity; i++) {
		const struct topology_entry *e = &g->edges.entries[i];

		if (e->value != TOPOLOGY_NONE)
			s->to[s->next[e->key >> 32]++] = (uint32_t)e->key;
	}
	for (uint32_t i = 0; i < channels; i++)
		s->next[i] = s->first[i];
	return 0;
}

/* Depth first from a channel. The number of channels of a circle, which end the stack; 0: there is none. */
static uint32_t search_from(struct search *s, uint32_t channel, uint32_t *depth)
{
	*depth = 1;
	s->stack[0] = channel;
	s->state[channel] = ON_STACK;
	while (*depth) {
		uint32_t at = s->stack[*depth - 1], to, length;

		if (s->next[at] == s->first[at + 1]) {
			s->state[at] = DONE;
			--*depth;
			continue;
		}
		to = s->to[s->next[at]++];
		if (s->state[to] == NEW) {
			s->state[to] = ON_STACK;
			s->stack[(*depth)++] = to;
		} else if (s->state[to] == ON_STACK) {
			for (length = 1; s->stack[*depth - length] != to; length++)
				;
			return length;
		}
	}
	return 0;
}

static int find_circle(const struct graph *g, struct search *s, struct routing_channel **circle)
{
	uint32_t length = 0, depth = 0;

	for (uint32_t i = 0; i < channel_count(g) && !length; i++)
		if (s->state[i] == NEW)
			length = search_from(s, i, &depth);
	if (!length)
		return 0;
	*circle = malloc(length * sizeof(**circle));
	if (!*circle)
		return -ENOMEM;
	for (uint32_t i = 0; i < length; i++) {
		uint32_t channel = s->stack[depth - length + i];

		(*circle)[i] = (struct routing_channel){
			.link = channel / g->lanes / 2,
			.from = (uint8_t)(channel / g->lanes % 2),
			.lane = (uint8_t)(channel % g->lanes),
		};
	}
	return (int)length;
}

int routing_credit_loop(const struct topology *t, const struct routing *r, routing_lane *lane,
			const void *context, struct routing_channel **circle)
{
	struct graph g = { .t = t, .r = r, .lane = lane, .context = context,
			   .lanes = lane ? ROUTING_LANES_MAX : 1 };
	struct search s = { 0 };
	int result;

	g.seen = calloc(t->node_count + 1U, sizeof(*g.seen));
	result = g.seen ? add_paths(&g) : -ENOMEM;
	if (!result)
		result = sort_edges(&g, &s);
	if (!result)
		result = find_circle(&g, &s, circle);
	free_search(&s);
	topology_table_free(&g.edges);
	free(g.seen);
	return result;
}
