/* SPDX-License-Identifier: BSD-2-Clause */
/* Order statistics and moments of measured values; exact, from the values themselves. */
#ifndef BENCH_RESULT_STATISTICS_H
#define BENCH_RESULT_STATISTICS_H

#include <jansson.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

/* The percentiles of summary.json, ascending. */
#define STATISTICS_PERCENTS \
	{ 10, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999 }
#define STATISTICS_PERCENT_COUNT 10

struct statistics {
	size_t count;
	int64_t min, max;
	double mean, deviation; /* of the sample (n - 1): NAN for fewer than 2 values */
	double middle;          /* mean of those from the 10th to the 90th percentile: of times
				 * that are a few steps of their clock it says more than a
				 * median */
	double skewness;        /* adjusted Fisher-Pearson; NAN for fewer than 3 values */
	int64_t percentile[STATISTICS_PERCENT_COUNT];
	double share_above;     /* of `limit`, 0 to 1 */
};

/* Sorts `values`. All members are 0 (NAN) for count 0. */
void statistics_of(int64_t *values, size_t count, int64_t limit, struct statistics *s);

/* Adds members "min", "p10", ... "p99.999" and "max" to a JSON object. */
void statistics_add_order(json_t *o, const struct statistics *s);

/* Smallest of the sorted values v such that at least `percent` % are <= v. count > 0. */
int64_t statistics_percentile(const int64_t *sorted, size_t count, double percent);

/* Sorts `values`; their median, NAN for count 0. */
double statistics_median(int64_t *values, size_t count);

/* Sorts `draws` of a bootstrap; the interval that holds this share of them. */
void statistics_interval(double *draws, size_t count, double level, double *low, double *high);

/* Of values of which 0 may be one (a clock with coarse steps), and then there is no ratio. */
static inline double statistics_ratio(double low, double high)
{
	return low == high ? 1 : low > 0 ? high / low : INFINITY;
}

/* How many of the sorted values are at most `limit`. */
size_t statistics_up_to(const int64_t *sorted, size_t count, int64_t limit);

#endif
