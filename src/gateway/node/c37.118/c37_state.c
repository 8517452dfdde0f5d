/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of the node, which its threads tell. */
#include "gateway/node/c37.118/c37_node.h"

void c37_node_tell(struct c37_node *x, bool server, bool connected, bool *shown, bool *was)
{
	struct node *n = x->node;

	if ((*shown && *was == connected) || !node_is_running(n))
		return;
	*shown = true;
	*was = connected;
	/* Of a node that does both, the device counts. */
	if (server && x->reads && n->is_source)
		return;
	node_set_state(n, connected ? NODE_CONNECTED : NODE_PENDING_CONNECT);
}
