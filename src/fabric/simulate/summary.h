/* SPDX-License-Identifier: BSD-2-Clause */
/* What a run comes to when it has ended. Private to the folder. */
#ifndef FABRIC_SIMULATE_SUMMARY_H
#define FABRIC_SIMULATE_SUMMARY_H

#include "fabric/simulate/state.h"

/* Remembers the counters of all links, from which those at the end are taken off. -ENOMEM. */
int simulate_summary_begin(struct simulate_state *st);
/* Links, flows, lines of traffic, sums. -ENOMEM. */
int simulate_summary(struct simulate_state *st);
/* Fair shares of all flows: share.c. -ENOMEM. */
int simulate_share_flows(struct simulate_state *st);
/* Expectations: judge.c. -ENOMEM. */
int simulate_judge(const struct simulate_scenario *s, struct simulate_result *r);

#endif
