/* SPDX-License-Identifier: BSD-2-Clause */
/* For node_write() only; node.h has the functions for node-types. */
#ifndef GATEWAY_PLUGIN_NODE_LOSSES_H
#define GATEWAY_PLUGIN_NODE_LOSSES_H

#include <stdint.h>

struct node;

/* write() returned `ret` and did not accept `count` samples. Counts those for which it
 * did not call node_refuse() as NODE_LOSS_UNKNOWN. */
void node_count_unsent(struct node *n, int ret, uint64_t count);

#endif
