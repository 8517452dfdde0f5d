/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs one measurement and sums up its rounds. */
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "bench/floor/floor_parts.h"
#include "util/hist.h"

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void floor_measure_run(const struct floor_measure *m,
		       const struct floor_setting *setting, struct floor_result *r)
{
	struct hist trips;
	struct floor_rounds rounds = { .trips = &trips };
	bool rate = !strcmp(m->unit, "GB/s");
	cpu_set_t before;

	hist_init(&trips);
	*r = (struct floor_result){ .err = -errno };
	if (sched_getaffinity(0, sizeof(before), &before))
		return;
	r->err = floor_pin(setting->cpus.first);
	if (!r->err)
		r->err = m->run(setting, m->size_bytes, &rounds);
	sched_setaffinity(0, sizeof(before), &before);
	if (r->err)
		return;
	qsort(rounds.value, FLOOR_ROUNDS, sizeof(rounds.value[0]), compare_double);
	r->median = rounds.value[FLOOR_ROUNDS / 2];
	r->best = rate ? rounds.value[FLOOR_ROUNDS - 1] : rounds.value[0];
	r->p50 = (double)hist_percentile(&trips, 50);
	r->p99 = (double)hist_percentile(&trips, 99);
}
