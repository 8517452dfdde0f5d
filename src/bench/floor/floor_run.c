/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs one measurement and sums up its rounds. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/floor/floor_parts.h"

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void floor_measure_run(const struct floor_measure *m,
		       const struct floor_cpus *cpus, struct floor_result *r)
{
	double rounds[FLOOR_ROUNDS];
	bool rate = !strcmp(m->unit, "GB/s");
	cpu_set_t before;

	*r = (struct floor_result){ .err = -errno };
	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	r->err = floor_pin(cpus->first);
	if (!r->err)
		r->err = m->run(cpus, m->size_bytes, rounds);
	sched_setaffinity(0, sizeof(before), &before);
	if (r->err)
		return;
	qsort(rounds, FLOOR_ROUNDS, sizeof(rounds[0]), compare_double);
	r->median = rounds[FLOOR_ROUNDS / 2];
	r->best = rate ? rounds[FLOOR_ROUNDS - 1] : rounds[0];
}
