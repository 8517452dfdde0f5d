/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Node-types of the simulation: `sim.source` numbers each sample, `sim.sink` notes
 * what it gets, `sim.wire` is a peer that sends back what it is sent, as messages of
 * a format. All three send their samples through a format; sources and wires can be
 * waited for by a descriptor.
 */
#ifndef TEST_SIMULATE_PARTS_H
#define TEST_SIMULATE_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/plugin/node.h"

/* Before the first configuration is read. */
void parts_register(void);
/* Forgets the numbers of an earlier run. */
void parts_begin(void);

/* The peer behind a source or wire is gone, with what was under way to it, or is
 * back. Other node-types: nothing. */
void parts_kill(struct node *n, bool dead);
/* The next samples of a source come at once. */
void parts_burst(struct node *n, unsigned samples);

/* Samples that a sink has noted, that a wire or source has lost with its peer. */
uint64_t parts_noted(const struct node *n);
uint64_t parts_lost(const struct node *n);
/* Those that are in the wire. */
uint64_t parts_inside(const struct node *n);

extern const struct node_type parts_source, parts_sink, parts_wire;

#endif
