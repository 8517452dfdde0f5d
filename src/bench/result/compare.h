/* SPDX-License-Identifier: BSD-2-Clause */
/* Two runs, latency by latency: which is faster, as far as the values show it. */
#ifndef BENCH_RESULT_COMPARE_H
#define BENCH_RESULT_COMPARE_H

#include "bench/result/result.h"

enum compare_verdict {
	COMPARE_FASTER,  /* B's median is smaller, by more than chance explains */
	COMPARE_SLOWER,
	COMPARE_SAME,    /* no difference shown */
	COMPARE_UNKNOWN, /* one of them has no values */
};

struct compare_latency {
	size_t count_a, count_b;
	double median_a, median_b; /* ns */
	double ratio, low, high;   /* B / A, and the interval that holds 95 % of the bootstrap's */
	enum compare_verdict verdict;
};

/* "faster", "slower", "no difference shown", "not comparable" */
const char *compare_verdict_name(enum compare_verdict v);

/* Compares values in the order in which they were measured. 0 or -ENOMEM. */
int compare_values(const int64_t *a, size_t count_a, const int64_t *b, size_t count_b,
		   struct compare_latency *out);

/* Calls `found`, which returns 0 or a negative errno, for each latency of each case that both runs
 * have. Their rows are read case by case. 0 or a negative errno. */
int compare_folders(struct result_folder *a, struct result_folder *b,
		    int (*found)(void *data, const char *id, const char *latency,
				 const struct compare_latency *c),
		    void *data);

#endif
