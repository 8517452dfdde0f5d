/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The port of a host as plugged-in processes see it: struct plug_port from PortInfo and the tables of
 * P_Keys and GUIDs. Private to the agents.
 */
#ifndef FABRIC_AGENT_VIEW_H
#define FABRIC_AGENT_VIEW_H

#include "fabric/agent/state.h"

/* Tells the owner; nothing for switches. `reregister`: the manager asks clients to register again. */
void agent_view_changed(const struct fabric_agents *a, const struct agent_node *n, uint8_t port,
			bool reregister);

#endif
