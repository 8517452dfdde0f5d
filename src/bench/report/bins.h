/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is drawn of many values: few points, chosen so that no outlier is lost. A figure of
 * a million values then is as large as one of a thousand.
 */
#ifndef BENCH_REPORT_BINS_H
#define BENCH_REPORT_BINS_H

#include <stddef.h>
#include <stdint.h>

/* So many values from `first` on (an index of rows): smallest, median and largest. */
struct report_band {
	size_t first, count;
	int64_t min, median, max;
};

/* `share` of the values (0 to 1) are at least `value`. */
struct report_tail {
	int64_t value;
	double share;
};

/* shares[i]: percent of all values that lie within [i, i + 1) * range / bins; negative ones
 * are in none, like those of at least `range`. */
void report_bins_histogram(const int64_t *sorted, size_t count, int64_t range,
			   double *shares, size_t bins);

/* The values in their order, cut into at most `max` bands of equal size. Returns how many;
 * 0 also on no memory. */
size_t report_bins_bands(const int64_t *values, size_t count, struct report_band *bands,
			 size_t max);

/* From all values down to the last one, the points as near to each other on a logarithmic
 * axis as `max` of them allow; the largest ones are all there. Returns how many. */
size_t report_bins_tail(const int64_t *sorted, size_t count, struct report_tail *points,
			size_t max);

/* The smallest of 1, 2, 5, 10, 20 ... that is at least `value`. */
double report_bins_round_up(double value);

#endif
