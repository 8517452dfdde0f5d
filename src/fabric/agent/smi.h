/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The subnet management interface (SMI): one step of a directed-route SMP at a node (IBA volume 1,
 * 14.2.2, rules C14-6 to C14-13). It changes the bytes of the path and says where the SMP goes. Pure, without
 * state. Private to the agents.
 *
 * The path has a directed part of `hop count` links, and may begin and end with routes by LID (DrSLID,
 * DrDLID other than the permissive LID): by LID to a switch at which the directed part begins, and from
 * the switch at which it ends.
 */
#ifndef FABRIC_AGENT_SMI_H
#define FABRIC_AGENT_SMI_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/mad/smp.h"

enum agent_origin {
	AGENT_FROM_LINK, /* by directed route: the LID of the packet is the permissive one */
	AGENT_FROM_LID,  /* the packet was addressed to a LID of the node */
	AGENT_FROM_NODE, /* of a process at the port, or the answer of the node's agent */
};

enum agent_way {
	AGENT_DISCARD,     /* it breaks a rule */
	AGENT_OUT,         /* out of `port`, with permissive LIDs */
	AGENT_BY_LID,      /* to `lid`, as the forwarding table leads */
	AGENT_TO_AGENT,    /* the end of the route: for the SMA, or the manager beside it */
	AGENT_TO_PROCESS,  /* back at the sender */
};

struct agent_step {
	enum agent_way way;
	uint8_t port;
	uint16_t lid;
};

/* `port`: where it came in; from the node: the port of an adapter, and of a switch anything. An adapter
 * does not forward, and sends by `port` alone. */
struct agent_step agent_smi_step(uint8_t mad[MAD_BYTES], bool is_switch, uint8_t port,
				 enum agent_origin origin);
/* Whether the path is one at all: hop count and hop pointer are in range. */
bool agent_smi_is_path(const uint8_t mad[MAD_BYTES]);

#endif
