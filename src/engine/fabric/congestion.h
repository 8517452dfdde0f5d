/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Congestion control (IBA volume 1, annex A10): which packets a switch marks, and by how much an adapter
 * delays a flow whose packets were marked.
 */
#ifndef ENGINE_FABRIC_CONGESTION_H
#define ENGINE_FABRIC_CONGESTION_H

#include "engine/fabric/state.h"

/* A packet leaves a switch by `lane`, whose bytes contain it no more: it may be marked. */
void fabric_congestion_mark(struct fabric *f, struct fabric_lane *lane, struct fabric_item *item);
/* How long after a packet, which takes `packet_ps`, the next one of the flow waits. */
uint64_t fabric_congestion_delay_ps(struct fabric *f, struct fabric_flow *flow, uint64_t packet_ps);

#endif
