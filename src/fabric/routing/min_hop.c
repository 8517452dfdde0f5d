/* SPDX-License-Identifier: BSD-2-Clause */
/* Shortest paths, with balanced ports. See routing.h. */
#include <errno.h>
#include <stdlib.h>

#include "fabric/routing/tables.h"

/* `context` has the hops of all nodes from the switch where the targets are. */
static bool is_nearer(const void *context, uint32_t from, uint32_t to)
{
	const uint32_t *hops = context;

	return hops[to] < hops[from];
}

int routing_min_hop(const struct topology *t, struct routing **r)
{
	struct routing *made = routing_new(t);
	uint32_t *hops = malloc((t->node_count + 1U) * sizeof(*hops));
	routing_load *load = calloc(t->node_count + 1U, sizeof(*load));
	int err = made && hops && load ? 0 : -ENOMEM;

	for (uint32_t at = 0; at < t->node_count && !err; at++) {
		if (!routing_is_switch(t, at))
			continue;
		err = topology_hops(t, at, hops);
		if (!err)
			routing_fill(t, made, at, load, is_nearer, hops);
	}
	free(load);
	free(hops);
	if (err)
		routing_tables_free(made);
	else
		*r = made;
	return err;
}
