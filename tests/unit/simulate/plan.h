/* SPDX-License-Identifier: BSD-2-Clause */
/* Random configurations of the simulation, and random changes of them. */
#ifndef TEST_SIMULATE_PLAN_H
#define TEST_SIMULATE_PLAN_H

#include <stdbool.h>
#include <stddef.h>

#define PLAN_NODES 11
#define PLAN_PATHS 6
#define PLAN_SOURCES 3
#define PLAN_TEXT 8192

enum plan_kind { PLAN_SOURCE, PLAN_WIRE, PLAN_LOOP, PLAN_SINK };

struct plan_node {
	enum plan_kind kind;
	const char *name;
	const char *format, *mode;
	unsigned vectorize, gap_ns, limit, room;
	bool waits, spins, hooked;
};

struct plan_path {
	bool used;
	unsigned in[PLAN_SOURCES], in_count;
	unsigned out[2], out_count;
	unsigned queuelen, full, hook, rate, poll;
	bool all, mask;
};

struct plan {
	/* Paths have one source and send no sample twice, so each sink gets each sample
	 * once, in order. A node that has got samples from one node gets none from another. */
	bool strict;
	struct plan_node nodes[PLAN_NODES];
	struct plan_path paths[PLAN_PATHS];
	bool taken[PLAN_NODES];         /* is a destination */
};

/* Makes a random configuration; world_draw() makes all choices. */
void plan_make(struct plan *p);
/* A random change as operators make them: a node is replaced, a path gets other settings, a
 * reader is added or removed, or nothing changes. */
void plan_change(struct plan *p);
/* As libconfig text, into buf[0..PLAN_TEXT). */
void plan_print(const struct plan *p, char *buf);

#endif
