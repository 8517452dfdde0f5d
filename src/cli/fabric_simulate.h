/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar fabric simulate` prints. */
#ifndef CLI_FABRIC_SIMULATE_H
#define CLI_FABRIC_SIMULATE_H

#include <stdbool.h>
#include <stdio.h>

#include "fabric/simulate/run.h"

/* Tables for people. `all`: all flows and links, and not the first of each. */
void fabric_simulate_print(const struct simulate_scenario *s, const struct simulate_result *r, bool all);
/* One JSON object; it has nothing of this machine or of the time, so that equal runs give equal bytes. */
void fabric_simulate_json(const struct simulate_scenario *s, const struct simulate_result *r, FILE *out);

#endif
