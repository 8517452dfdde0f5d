/* SPDX-License-Identifier: BSD-2-Clause */
/* Sorts numbers, ascending. */
#ifndef UTIL_ORDER_H
#define UTIL_ORDER_H

#include <stdint.h>
#include <stdlib.h>

static inline int order_of_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static inline int order_of_int64(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* `values` may be NULL for count 0. */
static inline void order_doubles(double *values, size_t count)
{
	if (count)
		qsort(values, count, sizeof(*values), order_of_doubles);
}

static inline void order_int64(int64_t *values, size_t count)
{
	if (count)
		qsort(values, count, sizeof(*values), order_of_int64);
}

#endif
