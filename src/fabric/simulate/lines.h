/* SPDX-License-Identifier: BSD-2-Clause */
/* The lines of a scenario that are more than one value, behind their first word. Private to the folder. */
#ifndef FABRIC_SIMULATE_LINES_H
#define FABRIC_SIMULATE_LINES_H

#include "fabric/simulate/words.h"

/* Each returns 0, or a negative errno with a line in s->why. The topology is known. */
int simulate_lines_traffic(struct topology_scan *s, struct simulate_scenario *c);
int simulate_lines_expect(struct topology_scan *s, struct simulate_scenario *c);
int simulate_lines_arbitration(struct topology_scan *s, struct simulate_scenario *c);
int simulate_lines_fault(struct topology_scan *s, struct simulate_scenario *c);
int simulate_lines_level(struct topology_scan *s, struct simulate_scenario *c);
int simulate_lines_switch(struct topology_scan *s, struct simulate_scenario *c);
int simulate_lines_congestion_switch(struct topology_scan *s, struct simulate_scenario *c);
int simulate_lines_congestion_host(struct topology_scan *s, struct simulate_scenario *c);
int simulate_lines_congestion_table(struct topology_scan *s, struct simulate_scenario *c);

#endif
