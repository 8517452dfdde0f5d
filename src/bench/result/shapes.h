/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the results of a run have the shape that the experiments of the source had: what is
 * faster than what, and by how much. Looks at the scenarios of the suites thesis-hca,
 * thesis-node, perftest-matrix and tutorial. A shape that does not hold is a result and no error;
 * without an adapter of hardware some of them cannot hold.
 *
 * A verdict comes from the interval that holds 99 % of the bootstrap's ratios (blocks.h), never
 * from a ratio alone, and from how much the machine was disturbed meanwhile (disturbance.h).
 */
#ifndef BENCH_RESULT_SHAPES_H
#define BENCH_RESULT_SHAPES_H

#include <stdio.h>

#include "bench/result/result.h"

#define SHAPE_HOLDS "holds"
#define SHAPE_FAILS "does not hold"
#define SHAPE_OPEN "not decidable here"
#define SHAPE_LACKS "not checked"

/* An array of objects as docs/benchmarks.md describes them: "number", "claim", "verdict",
 * "holds" (true, false, or null of the other two verdicts), "reason", "interval", "figures" and
 * "comparisons". `disturbance`: of the run (run.json), or NULL. The rows of cases are read from
 * `dir`, unless they are there, and dropped again. NULL without memory. */
json_t *shapes_evaluate(const char *dir, const json_t *disturbance,
			const struct result_read *cases, size_t count);

/* Prints such an array as lines; those that cannot be checked are counted only, unless
 * `all`. */
void shapes_print(FILE *f, const json_t *shapes, bool all);

#endif
