/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Life cycle of a node, for the super-node only: each function moves the node
 * to its next state when the node-type's callback succeeds.
 */
#ifndef GATEWAY_PLUGIN_NODE_LIFE_H
#define GATEWAY_PLUGIN_NODE_LIFE_H

#include "gateway/plugin/node.h"

/*
 * Makes a node from its configuration: init, common keys, parse. Everything
 * that is wrong is reported by config_fail(). 0 with *out set (also when
 * errors were reported, so that the rest can be looked at too), or a negative
 * errno when nothing could be made of it.
 */
int node_new(struct node **out, struct services *services, struct config *c,
	     const char *name, json_t *cfg);
int node_check(struct node *n, struct config *c);
int node_prepare(struct node *n);
int node_start(struct node *n);
int node_stop(struct node *n);
void node_destroy(struct node *n); /* NULL allowed */

/* Is `name` a valid node name? Reports when it is not. */
bool node_name_valid(struct config *c, json_t *nodes, const char *name);

#endif
