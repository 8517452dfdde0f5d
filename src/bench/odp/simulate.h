/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs busbar-odp-sim, which has the adapter in virtual time. */
#ifndef BENCH_ODP_SIMULATE_H
#define BENCH_ODP_SIMULATE_H

#include <jansson.h>
#include <stdatomic.h>

/* `points`: a line of PARAMETER=VALUE words for each point; `dir` is a folder for files of the run.
 * *results: for each point an array of its trials, as the program prints them. 0; -EOPNOTSUPP: the
 * program is not there; -EINTR: `stop` was set; or another negative errno, logged. */
int odp_simulate(const char *points, const char *dir, const atomic_bool *stop,
		 json_t **results);

/* Figures over the trials of a point. */
/* The median of a number; 0 without trials, and without memory. */
double odp_trials_median(const json_t *trials, const char *name);
/* The share of the trials in which it is above `limit`, 0 to 1. */
double odp_trials_share(const json_t *trials, const char *name, double limit);

#endif
