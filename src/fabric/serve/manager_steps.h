/* SPDX-License-Identifier: BSD-2-Clause */
/* What a sweep of the manager sets, in which order, and to what. */
#ifndef FABRIC_SERVE_MANAGER_STEPS_H
#define FABRIC_SERVE_MANAGER_STEPS_H

#include <stdbool.h>
#include <stdint.h>

struct mad_smp;
struct manager_steps;
struct serve;
struct serve_host;

struct manager_step {
	uint32_t node;
	uint16_t attribute;
	uint32_t modifier;
	uint8_t port;  /* of PortInfo */
	uint8_t phase;
};

/* LIDs are chosen here: of hosts, then of switches, in their order. As serve_manager_open(). */
int manager_steps_open(struct serve *s, struct manager_steps **out);
void manager_steps_close(struct manager_steps *m);

/* Computes routes and the list of steps for the links that are up. -ENODEV: no host has one. */
int manager_steps_begin(struct manager_steps *m);
/* The host from which the SMPs are sent; NULL before the first sweep. */
const struct serve_host *manager_steps_host(const struct manager_steps *m);
/* The next step; false: there is none, or it is of the next phase and not `next_phase`. */
bool manager_steps_next(struct manager_steps *m, bool next_phase, struct manager_step *step);
bool manager_steps_over(const struct manager_steps *m);
/* The directed route to the node, into paths and hop count. */
void manager_steps_path(const struct manager_steps *m, uint32_t node, struct mad_smp *smp);
/*
 * What to set: false: nothing, or (with `got` NULL) only once it is known what the node has. `got`: the
 * answer to a Get. `data`: 64 bytes.
 */
bool manager_steps_fill(struct manager_steps *m, const struct manager_step *step, const uint8_t *got,
			uint8_t *data);

#endif
