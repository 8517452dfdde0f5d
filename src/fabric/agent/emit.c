/* SPDX-License-Identifier: BSD-2-Clause */
#include "fabric/agent/emit.h"

#include <string.h>

void agent_emit_local(struct fabric_agents *a, struct agent_node *n, uint8_t port,
		      const uint8_t mad[MAD_BYTES], const struct agent_address *from)
{
	if (n->is_switch) {
		a->counts.bad_route++;
		return;
	}
	a->counts.delivered++;
	a->ops.deliver(a->ops.arg, n->number, port, mad, from);
}

void agent_emit(struct fabric_agents *a, struct agent_node *n, uint8_t port, const uint8_t mad[MAD_BYTES],
		const struct agent_address *to)
{
	if (agent_has_lid(&n->port[port], to->dlid))
		agent_emit_local(a, n, port, mad, to);
	else
		a->ops.send(a->ops.arg, n->number, port, mad, to);
}

void agent_emit_directed(struct fabric_agents *a, struct agent_node *n, uint8_t port,
			 const uint8_t mad[MAD_BYTES])
{
	const struct agent_address to = {.slid = MAD_LID_PERMISSIVE, .dlid = MAD_LID_PERMISSIVE};

	if (!port || port > n->ports || !n->port[port].up) {
		a->counts.bad_route++;
		return;
	}
	a->ops.send(a->ops.arg, n->number, port, mad, &to);
}

struct agent_address agent_reverse(const struct agent_address *from)
{
	struct agent_address to = *from;

	to.slid = from->dlid;
	to.dlid = from->slid;
	to.src_qp = from->dest_qp;
	to.dest_qp = from->src_qp;
	memcpy(to.sgid, from->dgid, sizeof(to.sgid));
	memcpy(to.dgid, from->sgid, sizeof(to.dgid));
	if (from->grh)
		to.hop_limit = 0xff;
	return to;
}
