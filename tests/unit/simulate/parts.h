/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-types of the simulation: `sim.source` numbers its samples, `sim.sink` keeps the
 * numbers that it gets, `sim.wire` is a peer that sends back what it gets, as messages of
 * a format. All three pass their samples through a format; sources and wires offer a
 * descriptor.
 */
#ifndef TEST_SIMULATE_PARTS_H
#define TEST_SIMULATE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/plugin/node.h"

/* To be called before the first configuration is read. */
void parts_register(void);
/* Forgets the numbers of an earlier run. */
void parts_begin(void);

/* The peer of a source or wire dies, with the samples under way to it, or comes back. No
 * effect on other node-types. */
void parts_kill(struct node *n, bool dead);
/* The source delivers its next samples without a pause. */
void parts_burst(struct node *n, unsigned samples);

/* Number of samples that a sink got, and that a wire or source lost with its peer. */
uint64_t parts_noted(const struct node *n);
uint64_t parts_lost(const struct node *n);
/* How often spinning sources found turns of paths offered, in all runs. */
extern uint64_t parts_offers;
/* Number of samples in the wire. */
uint64_t parts_inside(const struct node *n);

extern const struct node_type parts_source, parts_sink, parts_wire;

#endif
