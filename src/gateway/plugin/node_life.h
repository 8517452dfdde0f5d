/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Life cycle of a node, for the super-node only: each function moves the node
 * to its next state when the node-type's callback succeeds.
 */
#ifndef GATEWAY_PLUGIN_NODE_LIFE_H
#define GATEWAY_PLUGIN_NODE_LIFE_H

#include "gateway/plugin/node.h"

/*
 * Makes a node from its configuration: init, common keys, parse. Reports every error by
 * config_fail(). Returns 0 with *out set, also after errors, so that the caller can
 * check the rest of the configuration too; or a negative errno when no node could be
 * made. The caller frees *out by node_destroy().
 */
int node_new(struct node **out, struct services *services, struct config *c,
	     const char *name, json_t *cfg);
int node_check(struct node *n, struct config *c);
int node_prepare(struct node *n);
int node_start(struct node *n);
int node_stop(struct node *n);
void node_destroy(struct node *n); /* NULL allowed */

/* Whether `name` is a valid name of a node; reports an error when it is not. */
bool node_name_valid(struct config *c, json_t *nodes, const char *name);

#endif
