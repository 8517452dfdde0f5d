/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Links and the states of their two ports: what is up, what was negotiated, and what the engine gets of
 * it. The link comes up while its cable is joined, neither end is disabled, one at least polls, and both
 * ends have a width and a speed in common (IBA volume 1, 7.2 and 14.2.5.6; training takes no time here).
 * Private to the agents.
 */
#ifndef FABRIC_AGENT_LINK_H
#define FABRIC_AGENT_LINK_H

#include "fabric/agent/state.h"

/* Takes the link down or up as joined, physical and what is enabled at its ends say. */
void agent_link_update(struct fabric_agents *a, struct agent_node *n, uint8_t port, uint64_t now_ns);
/* The link goes down first; then as agent_link_update(). */
void agent_link_retrain(struct fabric_agents *a, struct agent_node *n, uint8_t port, uint64_t now_ns);
/* Puts `info` into the engine's port. Nothing for port 0. A negative errno of the engine. */
int agent_link_push(const struct fabric_agents *a, const struct agent_node *n, uint8_t port,
		    const struct mad_port_info *info);
/* Sets what the port has in PortInfo and the engine by its link, when agents are opened. A negative errno
 * of the engine. */
int agent_link_settle(struct fabric_agents *a, struct agent_node *n, uint8_t port);

/* The number of data lanes of a code (enum mad_vl_cap), and the code of a number; 0: none. */
uint8_t agent_lanes_of_code(uint8_t code);
uint8_t agent_code_of_lanes(uint8_t lanes);
/* The code of an MTU in bytes (enum mad_mtu); 0: none. */
uint8_t agent_code_of_mtu(uint16_t mtu);

#endif
