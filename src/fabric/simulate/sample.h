/* SPDX-License-Identifier: BSD-2-Clause */
/* What is looked at from time to time: lanes that are congested, and deadlocks. Private to the folder. */
#ifndef FABRIC_SIMULATE_SAMPLE_H
#define FABRIC_SIMULATE_SAMPLE_H

#include "fabric/simulate/state.h"

/* -ENOMEM. */
int simulate_sample_open(struct simulate_state *st);
void simulate_sample_congestion(struct simulate_state *st);
/* The end of the scenario is that of all that is congested still. */
void simulate_sample_end(struct simulate_state *st);
/* Looks for deadlocks. How many there are now. */
unsigned simulate_sample_deadlocks(struct simulate_state *st);
/* Of struct fabric_ops. */
void simulate_sample_deadlock(void *arg, const struct fabric_lane_at *cycle, size_t count);

#endif
