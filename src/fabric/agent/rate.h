/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Width and speed of links: on what two ends agree, and how many bits that is. Private to the agents.
 */
#ifndef FABRIC_AGENT_RATE_H
#define FABRIC_AGENT_RATE_H

#include "fabric/agent/state.h"

struct agent_rate {
	uint8_t width, speed, extended; /* bits of "active" */
};

/* The widest and fastest that both enable. False: they have none in common. */
bool agent_rate_agree(const struct mad_port_info *p, const struct mad_port_info *q, struct agent_rate *r);
/* Data rate of the width and speed that are active at the port, which has a connector. */
uint64_t agent_rate_bps(const struct fabric_agents *a, const struct agent_node *n, uint8_t port);

#endif
