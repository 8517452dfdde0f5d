/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether the results of a run have the shape that the experiments of the source had: what is
 * faster than what, and by how much. Looks at the scenarios of the suites thesis-hca,
 * thesis-node, perftest-matrix and tutorial. A shape that does not hold is a result and no error;
 * without an adapter of hardware some of them cannot hold.
 */
#ifndef BENCH_RESULT_SHAPES_H
#define BENCH_RESULT_SHAPES_H

#include <stdio.h>

#include "bench/result/result.h"

/* An array of { "number", "claim", "holds": true, false or null (the run lacks cases), "figures":
 * text }; NULL without memory. */
json_t *shapes_evaluate(const struct result_read *cases, size_t count);

/* Prints such an array as lines; those that cannot be checked are counted only, unless
 * `all`. */
void shapes_print(FILE *f, const json_t *shapes, bool all);

#endif
