/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Routes for the manager inside of the fabric's process: linear forwarding tables without cycles of
 * lanes that wait for each other (up/down: once a packet has gone down it does not go up again), and
 * a tree for multicast. Links that are down are not used. Pure, but for the engine's state of links.
 *
 * Up is towards switches that are farther from hosts; among equals towards the first switch. In a fat tree
 * these are the spines, all of which carry packets; in rings and grids the tree of one root.
 */
#ifndef FABRIC_SERVE_ROUTE_H
#define FABRIC_SERVE_ROUTE_H

#include <stdint.h>

#include "fabric/topology/topology.h"

struct fabric;
struct serve_route;

/* NULL: no memory. */
struct serve_route *serve_route_new(const struct topology *t, const struct fabric *engine);
void serve_route_free(struct serve_route *r);

/*
 * The port by which each switch reaches the node `to`, for the LID `lid`, by which equal routes are
 * chosen: ports[node]; 255: there is none, or it is no switch; 0: it is the switch itself. `ports` has
 * one entry for each node.
 */
void serve_route_to(struct serve_route *r, uint32_t to, uint8_t to_port, uint16_t lid, uint8_t *ports);
/* Is the port of the switch one of the tree that leads to all nodes? */
int serve_route_in_tree(const struct serve_route *r, uint32_t node, uint8_t port);

#endif
