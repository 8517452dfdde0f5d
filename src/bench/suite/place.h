/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processors and priority of `busbar bench run` for kinds that have no parameters `cpus` and
 * `priority`: this process has them while such a case is measured, and its children inherit them.
 */
#ifndef BENCH_SUITE_PLACE_H
#define BENCH_SUITE_PLACE_H

#include <sched.h>

#include "bench/kind/kind.h"

#define PLACE_PRIORITY_MAX 99

struct place {
	cpu_set_t cpus;
	bool pinned;  /* cpus counts */
	int priority; /* SCHED_FIFO; 0: none */
};

/* "2,3": two processors at least. 0, or -EINVAL, logged. */
int place_parse_cpus(struct place *p, const char *text);
int place_parse_priority(struct place *p, const char *text);
/* Is it allowed here? Logs what is missing. */
bool place_is_allowed(const struct place *p);
/* `before` is what place_leave() restores. */
void place_enter(const struct place *p, const struct bench_kind *kind, struct place *before);
void place_leave(const struct place *before);

#endif
