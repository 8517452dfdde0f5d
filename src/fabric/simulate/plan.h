/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of traffic become flows and senders. Private to the folder. */
#ifndef FABRIC_SIMULATE_PLAN_H
#define FABRIC_SIMULATE_PLAN_H

#include "fabric/simulate/state.h"

#define SIMULATE_SENDERS_MAX 65536u
#define SIMULATE_FLOWS_MAX (1u << 20)

/* Fills st->senders and the flows and groups of the result; all start with the scenario's seed. The routes are
 * known. Negative: logged. */
int simulate_plan(struct simulate_state *st);

#endif
