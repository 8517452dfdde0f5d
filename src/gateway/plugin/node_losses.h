/* SPDX-License-Identifier: BSD-2-Clause */
/* For node_write() alone; what node-types call is in node.h. */
#ifndef GATEWAY_PLUGIN_NODE_LOSSES_H
#define GATEWAY_PLUGIN_NODE_LOSSES_H

#include <stdint.h>

struct node;

/* write() returned `ret` and did not accept `count`; those whose cause it has not
 * told get one. */
void node_count_unsent(struct node *n, int ret, uint64_t count);

#endif
