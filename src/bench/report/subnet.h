/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `busbar fabric show --json` and `busbar fabric simulate --json` print, as the data of a page.
 *
 * SUBNET, an element of data's "subnets":
 * { "file", "of": "state" or "experiment", "title", "topology", "routing", "seed", "seconds",
 *   "sums": { name: number }, "lost": { reason: number },
 *   "nodes": TABLE, "links": TABLE (one row for each direction of a cable), "traffic": TABLE,
 *   "flows": TABLE, "flows_left_out", "congestion": TABLE, "congestion_left_out", "circle": TABLE,
 *   "deadlocks": [ { "at_ns", "lanes": TABLE } ], "expect": TABLE }
 * TABLE: { "keys": [ name ], "rows": [ [ value ] ] }; a value that the file lacks, or that has
 * another type, is null.
 */
#ifndef BENCH_REPORT_SUBNET_H
#define BENCH_REPORT_SUBNET_H

#include <jansson.h>

/* Appends the file to data's "subnets". 0; -ENOENT: the file is something else, nothing is logged; or
 * a negative errno, logged. */
int subnet_add(json_t *data, const char *path);

#endif
