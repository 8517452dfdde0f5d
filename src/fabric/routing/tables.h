/* SPDX-License-Identifier: BSD-2-Clause */
/* What engines share: empty tables, and the choice among ports. Private to the folder. */
#ifndef FABRIC_ROUTING_TABLES_H
#define FABRIC_ROUTING_TABLES_H

#include "fabric/routing/routing.h"

/* Of each node and port, how many ports of adapters the switch reaches through it. */
typedef uint32_t routing_load[TOPOLOGY_PORTS_MAX + 1];

/* Whether packets for the targets at a switch may go from switch `from` to its neighbour `to`. */
typedef bool routing_may(const void *context, uint32_t from, uint32_t to);

/* Tables that discard all. NULL: no memory. */
struct routing *routing_new(const struct topology *t);
/* Fills in all switches' entries for the targets that are at the switch `at`. */
void routing_fill(const struct topology *t, struct routing *r, uint32_t at, routing_load *load,
		  routing_may *may, const void *context);
bool routing_is_switch(const struct topology *t, uint32_t node);

#endif
