/* SPDX-License-Identifier: BSD-2-Clause */
/* Figures over the trials of a point, which odp_simulate() gives as an array. */
#ifndef BENCH_ODP_TRIALS_H
#define BENCH_ODP_TRIALS_H

#include <jansson.h>

/* The median of a number; 0 without trials, and without memory. */
double odp_trials_median(const json_t *trials, const char *name);
/* The share of the trials in which it is above `limit`, 0 to 1. */
double odp_trials_share(const json_t *trials, const char *name, double limit);

#endif
