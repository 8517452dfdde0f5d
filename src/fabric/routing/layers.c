/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layers of paths (Skeie, Lysne, Theiss, "Layered shortest path (LASH) routing in irregular system area
 * networks", 2002). Each path goes into the first layer whose channel dependency graph it leaves without a
 * circle. See routing.h. A port of an adapter, and not a switch as in the original, is what a path leads to: two
 * ports of one switch may be reached over different cables.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric/routing/layers.h"
#include "fabric/topology/lookup.h"
#include "fabric/topology/say.h"

#define NO_EDGE UINT32_MAX

struct edge {
	uint32_t to;   /* channel: link * 2 + the end that sends */
	uint32_t next; /* another edge of the same channel */
};

/* The dependencies of a layer; edges are only added, the last ones can be taken back. */
struct layer {
	uint32_t *first; /* of a channel */
	struct edge *edges;
	uint32_t edge_count, edge_capacity;
	struct topology_table known; /* from << 32 | to, of edges that stay */
};

struct placing {
	const struct topology *t;
	const struct routing *r;
	struct routing_layers *out;
	struct layer *layers;
	unsigned layer_count, layers_max;
	uint32_t channels;
	uint32_t *path, *stack, *seen; /* channels; `seen`: the search that came there last */
	uint32_t search;
};

static int add_layer(struct placing *l)
{
	struct layer *layer = &l->layers[l->layer_count];

	layer->first = malloc((l->channels + 1U) * sizeof(*layer->first));
	if (!layer->first)
		return -ENOMEM;
	memset(layer->first, 0xff, (l->channels + 1U) * sizeof(*layer->first));
	l->layer_count++;
	return 0;
}

/* The channels between switches of the path from a switch to a target into `path`; how many. */
static uint32_t follow(const struct placing *l, uint32_t from, uint32_t target)
{
	uint32_t count = 0, at = from;

	while (at != l->r->targets[target].at && count < l->t->node_count) {
		uint8_t port = l->r->ports[at][target];
		struct topology_end peer;
		uint32_t link;

		if (port == ROUTING_DISCARD || !topology_peer(l->t, at, port, &peer) || !l->r->ports[peer.node])
			break;
		link = l->t->nodes[at].ports[port].link;
		l->path[count++] = link * 2 + (l->t->links[link].end[0].node != at ||
					       l->t->links[link].end[0].port != port);
		at = peer.node;
	}
	return count;
}

/* Does a chain of edges lead from one channel to another? */
static bool leads(struct placing *l, const struct layer *layer, uint32_t from, uint32_t to)
{
	uint32_t depth = 1;

	l->stack[0] = from;
	l->seen[from] = ++l->search;
	while (depth) {
		uint32_t at = l->stack[--depth];

		if (at == to)
			return true;
		for (uint32_t e = layer->first[at]; e != NO_EDGE; e = layer->edges[e].next)
			if (l->seen[layer->edges[e].to] != l->search) {
				l->seen[layer->edges[e].to] = l->search;
				l->stack[depth++] = layer->edges[e].to;
			}
	}
	return false;
}

static int add_edge(struct layer *layer, uint32_t from, uint32_t to)
{
	if (layer->edge_count == layer->edge_capacity) {
		uint32_t capacity = layer->edge_capacity ? layer->edge_capacity * 2 : 256;
		struct edge *more = realloc(layer->edges, capacity * sizeof(*more));

		if (!more)
			return -ENOMEM;
		layer->edges = more;
		layer->edge_capacity = capacity;
	}
	layer->edges[layer->edge_count] = (struct edge){ to, layer->first[from] };
	layer->first[from] = layer->edge_count++;
	return 0;
}

static uint64_t key_of(const struct placing *l, uint32_t i)
{
	return (uint64_t)l->path[i - 1] << 32 | l->path[i];
}

/* Takes back the newest edges: those of the path from place `end` down to `start` that were not there. */
static void take_back(struct placing *l, struct layer *layer, uint32_t before, uint32_t end)
{
	for (uint32_t i = end; layer->edge_count > before; i--)
		if (layer->first[l->path[i - 1]] == layer->edge_count - 1)
			layer->first[l->path[i - 1]] = layer->edges[--layer->edge_count].next;
}

/* 1: the path of `count` channels is in the layer now; 0: it would close a circle; -ENOMEM. */
static int try_layer(struct placing *l, struct layer *layer, uint32_t count)
{
	uint32_t before = layer->edge_count;
	int err;

	for (uint32_t i = 1; i < count; i++) {
		if (topology_table_find(&layer->known, key_of(l, i)) != TOPOLOGY_NONE)
			continue;
		if (leads(l, layer, l->path[i], l->path[i - 1])) {
			take_back(l, layer, before, i);
			return 0;
		}
		err = add_edge(layer, l->path[i - 1], l->path[i]);
		if (err)
			return err;
	}
	for (uint32_t i = 1; i < count; i++) {
		if (topology_table_find(&layer->known, key_of(l, i)) != TOPOLOGY_NONE)
			continue;
		if (topology_table_reserve(&layer->known, 1))
			return -ENOMEM;
		topology_table_add(&layer->known, key_of(l, i), 0);
	}
	return 1;
}

static int place(struct placing *l, uint32_t from, uint32_t target)
{
	uint32_t count = follow(l, from, target);

	for (unsigned i = 0;; i++) {
		int ret = 0;

		if (i == l->layers_max)
			return -ENOSPC;
		if (i == l->layer_count)
			ret = add_layer(l);
		if (!ret)
			ret = try_layer(l, &l->layers[i], count);
		if (ret > 0)
			l->out->of[from][target] = (uint8_t)i;
		if (ret)
			return ret < 0 ? ret : 0;
	}
}

static int place_all(struct placing *l)
{
	for (uint32_t from = 0; from < l->t->node_count; from++) {
		if (!l->r->ports[from])
			continue;
		l->out->of[from] = calloc(l->r->target_count + 1U, 1);
		if (!l->out->of[from])
			return -ENOMEM;
		for (uint32_t target = 0; target < l->r->target_count; target++) {
			int err = l->r->targets[target].at == TOPOLOGY_NONE ? 0 : place(l, from, target);

			if (err)
				return err;
		}
	}
	l->out->count = l->layer_count;
	return 0;
}

static int prepare(struct placing *l)
{
	l->channels = l->t->link_count * 2;
	l->out = calloc(1, sizeof(*l->out));
	l->layers = calloc(l->layers_max, sizeof(*l->layers));
	l->path = malloc((l->t->node_count + 1U) * sizeof(*l->path));
	l->stack = malloc((l->channels + 1U) * sizeof(*l->stack));
	l->seen = calloc(l->channels + 1U, sizeof(*l->seen));
	if (!l->out || !l->layers || !l->path || !l->stack || !l->seen)
		return -ENOMEM;
	l->out->node_count = l->t->node_count;
	l->out->of = calloc(l->t->node_count + 1U, sizeof(*l->out->of));
	return l->out->of ? add_layer(l) : -ENOMEM;
}

static void clean(struct placing *l)
{
	for (unsigned i = 0; l->layers && i < l->layer_count; i++) {
		free(l->layers[i].first);
		free(l->layers[i].edges);
		topology_table_free(&l->layers[i].known);
	}
	free(l->layers);
	free(l->path);
	free(l->stack);
	free(l->seen);
}

static int make_layers(const struct topology *t, const struct routing *r, unsigned layers_max,
		       struct routing_layers **layers)
{
	struct placing l = { .t = t, .r = r, .layers_max = layers_max };
	int err = prepare(&l);

	if (!err)
		err = place_all(&l);
	clean(&l);
	if (err)
		routing_layers_free(l.out);
	else
		*layers = l.out;
	return err;
}

int routing_in_layers(const struct topology *t, routing_engine *engine, unsigned layers_max, struct routing **r,
		      struct routing_layers **layers, char *why, size_t why_bytes)
{
	struct routing *made;
	int err;

	if (!layers_max || layers_max > ROUTING_LANES_MAX)
		return topology_say(why, why_bytes, -EINVAL, "there are 1 to %d layers", ROUTING_LANES_MAX);
	err = engine(t, &made);
	if (err)
		return topology_say(why, why_bytes, err, "no memory for forwarding tables");
	err = make_layers(t, made, layers_max, layers);
	if (!err) {
		*r = made;
		return 0;
	}
	routing_tables_free(made);
	return err == -ENOSPC ? topology_say(why, why_bytes, err, "the shortest paths of this subnet need "
					     "more than %u layers to be without circles", layers_max)
			      : topology_say(why, why_bytes, err, "no memory for layers");
}

int routing_lash(const struct topology *t, unsigned layers_max, struct routing **r,
		 struct routing_layers **layers, char *why, size_t why_bytes)
{
	return routing_in_layers(t, routing_min_hop, layers_max, r, layers, why, why_bytes);
}

uint8_t routing_layer(const struct routing *r, const struct routing_layers *l, uint32_t source, uint32_t target)
{
	uint32_t from = r->targets[source].at;

	return from != TOPOLOGY_NONE && l->of[from] ? l->of[from][target] : 0;
}

void routing_layers_free(struct routing_layers *l)
{
	if (!l)
		return;
	for (uint32_t i = 0; l->of && i < l->node_count; i++)
		free(l->of[i]);
	free(l->of);
	free(l);
}
