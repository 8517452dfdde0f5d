/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a packet in a node leaves, by which lane, and whether it may. */
#ifndef ENGINE_FABRIC_FORWARD_H
#define ENGINE_FABRIC_FORWARD_H

#include "engine/fabric/state.h"

/* A packet in a switch goes to an output port, to several, to the management port, or is dropped. Also
 * one that the switch sends by itself from its port 0. */
void fabric_forward(struct fabric *f, struct fabric_item *item);
/* A packet goes out of a given port: of an adapter, or a directed route. */
void fabric_forward_out(struct fabric *f, struct fabric_item *item, struct fabric_port *out,
			struct fabric_source *s);
/* The output port by the linear table; NULL: none. */
struct fabric_port *fabric_forward_lookup(const struct fabric_node *n, uint16_t dlid);
/* The lane by which packets of a service level leave. */
uint8_t fabric_forward_lane(const struct fabric_node *n, uint8_t in, uint8_t out, uint8_t sl);
/* Is one of the port's P_Keys the same partition, one of both a full member? */
bool fabric_forward_is_member(const struct fabric_port *o, uint16_t pkey);

#endif
