/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All node-types, one line each. meson.build defines GATEWAY_NODE_<NAME> for
 * every folder that is there.
 */
#include <stddef.h>
#include <string.h>

#include "gateway/node.h"

extern const struct node_type node_file, node_infiniband, node_loopback,
	node_signal;

const struct node_type *const node_types[] = {
#ifdef GATEWAY_NODE_FILE
	&node_file,
#endif
#ifdef GATEWAY_NODE_INFINIBAND
	&node_infiniband,
#endif
#ifdef GATEWAY_NODE_LOOPBACK
	&node_loopback,
#endif
#ifdef GATEWAY_NODE_SIGNAL
	&node_signal,
#endif
	NULL,
};

const struct node_type *node_type_find(const char *name)
{
	for (size_t i = 0; node_types[i]; i++)
		if (!strcmp(node_types[i]->name, name))
			return node_types[i];
	return NULL;
}
