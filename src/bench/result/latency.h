/* SPDX-License-Identifier: BSD-2-Clause */
/* The difference of two columns. */
#ifndef BENCH_RESULT_LATENCY_H
#define BENCH_RESULT_LATENCY_H

#include <stddef.h>
#include <stdint.h>

/* Stores to - from of the rows in which both are there, in their order, in values[rows]. A
 * difference that int64_t cannot hold (a damaged file) is left out. Returns their number. */
size_t latency_values(const int64_t *from, const int64_t *to, size_t rows,
		      int64_t *values);

#endif
