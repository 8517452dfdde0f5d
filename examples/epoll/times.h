/* SPDX-License-Identifier: BSD-2-Clause */
/* How long questions took: "p50 NS p99 NS count N". */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The first questions find caches and pages cold; they do not count. */
#define WARM_UP 100

static inline uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static int times_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static inline void times_print(uint64_t *ns, size_t count)
{
	qsort(ns, count, sizeof(*ns), times_compare);
	printf("p50 %ju p99 %ju count %zu\n", (uintmax_t)ns[count / 2],
	       (uintmax_t)ns[count * 99 / 100], count);
}
