/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How a MAD leaves an agent: by the link, or to a process of the same port. Private to the agents.
 */
#ifndef FABRIC_AGENT_EMIT_H
#define FABRIC_AGENT_EMIT_H

#include "fabric/agent/state.h"

/* By LID, from the end port (port 0 of a switch): delivered in the node when the LID is the port's own. */
void agent_emit(struct fabric_agents *a, struct agent_node *n, uint8_t port, const uint8_t mad[MAD_BYTES],
		const struct agent_address *to);
/* By directed route out of `port`; discarded and counted when the port has no link. */
void agent_emit_directed(struct fabric_agents *a, struct agent_node *n, uint8_t port,
			 const uint8_t mad[MAD_BYTES]);
/* To processes at the port; discarded and counted on a switch, where there are none. */
void agent_emit_local(struct fabric_agents *a, struct agent_node *n, uint8_t port,
		      const uint8_t mad[MAD_BYTES], const struct agent_address *from);
/* The address of an answer to a MAD that came by `from`. */
struct agent_address agent_reverse(const struct agent_address *from);

#endif
