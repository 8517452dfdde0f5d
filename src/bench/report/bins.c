/* SPDX-License-Identifier: BSD-2-Clause */
/* Few points of many values; see bins.h. */
#include "bench/report/bins.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/container_of.h"
#include "util/order.h"

void report_bins_histogram(const int64_t *sorted, size_t count, int64_t range,
			   double *shares, size_t bins)
{
	size_t *counts = calloc(bins, sizeof(*counts));

	for (size_t i = 0; i < bins; i++)
		shares[i] = 0;
	if (!counts)
		return;
	for (size_t i = 0; i < count && sorted[i] < range; i++)
		if (sorted[i] >= 0)
			counts[(size_t)((__int128)sorted[i] * (int64_t)bins / range)]++;
	for (size_t i = 0; i < bins && count; i++)
		shares[i] = 100.0 * (double)counts[i] / (double)count;
	free(counts);
}

size_t report_bins_bands(const int64_t *values, size_t count, struct report_band *bands,
			 size_t max)
{
	size_t n = MIN(count, max), longest = n ? count / n + 1 : 0;
	int64_t *copy = n ? malloc(longest * sizeof(*copy)) : NULL;

	if (!copy)
		return 0;
	for (size_t i = 0; i < n; i++) {
		size_t first = (size_t)((__int128)count * i / n);
		size_t length = (size_t)((__int128)count * (i + 1) / n) - first;

		memcpy(copy, values + first, length * sizeof(*copy));
		order_int64(copy, length);
		bands[i] = (struct report_band){
			.first = first,
			.count = length,
			.min = copy[0],
			.median = copy[(length - 1) / 2],
			.max = copy[length - 1],
		};
	}
	free(copy);
	return n;
}

size_t report_bins_tail(const int64_t *sorted, size_t count, struct report_tail *points,
			size_t max)
{
	/* So many values are left at each point: from `count` down to 1 by a factor, by one
	 * where the factor would not make it less. */
	double factor = count > max && max > 1 ? pow((double)count, 2.0 / (double)max) : 1;
	size_t n = 0;

	for (size_t left = count; left && n < max;) {
		size_t next = (size_t)((double)left / factor);

		points[n++] = (struct report_tail){
			.value = sorted[count - left],
			.share = (double)left / (double)count,
		};
		left = next < left ? next : left - 1;
		/* The last one is always there. */
		if (!left && points[n - 1].share * (double)count > 1.5 && n < max)
			left = 1;
	}
	return n;
}

double report_bins_round_up(double value)
{
	static const double steps[] = { 1, 2, 5, 10 };
	double power;

	if (!(value > 0))
		return 1;
	power = pow(10, floor(log10(value)));
	for (size_t i = 0; i < 4; i++)
		if (value <= steps[i] * power * (1 + 1e-9))
			return steps[i] * power;
	return 10 * power;
}
