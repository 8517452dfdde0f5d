/* SPDX-License-Identifier: BSD-2-Clause */
/* The subnet of a scenario in the engine, as a subnet manager would set it. Private to the folder. */
#ifndef FABRIC_SIMULATE_BUILD_H
#define FABRIC_SIMULATE_BUILD_H

#include "fabric/simulate/state.h"

/* Forwarding tables, and layers with lash and dfsssp. Negative: logged. */
int simulate_build_routes(struct simulate_state *st);
/* Nodes, links, tables, lanes, arbitration, congestion control. Negative: logged. */
int simulate_build_fabric(struct simulate_state *st, const struct fabric_ops *ops);
/* Makes a port active and sets what a scenario says of all ports. */
int simulate_build_port(struct simulate_state *st, uint32_t node, uint8_t port);
/* The LID of a port: those of routing targets count from 1. */
uint16_t simulate_build_lid(const struct simulate_state *st, struct topology_end end);

#endif
