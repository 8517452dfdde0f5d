/* SPDX-License-Identifier: BSD-2-Clause */
/* See statistics.h. */
#include "bench/result/statistics.h"

#include <stdio.h>

#include "util/container_of.h"
#include "util/order.h"

int64_t statistics_percentile(const int64_t *sorted, size_t count, double percent)
{
	/* 99.9 % of 1000 values are 999, not a rounding error more. */
	double rank = percent * (double)count / 100 * (1 - 4e-15);
	size_t at = rank > 0 ? (size_t)ceil(rank) : 0;

	if (at > count)
		at = count;
	return sorted[at ? at - 1 : 0];
}

void statistics_add_order(json_t *o, const struct statistics *s)
{
	static const double percents[] = STATISTICS_PERCENTS;

	json_object_set_new(o, "min", json_integer(s->min));
	for (size_t i = 0; i < ARRAY_SIZE(percents); i++) {
		char key[24];

		snprintf(key, sizeof(key), "p%g", percents[i]);
		json_object_set_new(o, key, json_integer(s->percentile[i]));
	}
	json_object_set_new(o, "max", json_integer(s->max));
}

double statistics_median(int64_t *values, size_t count)
{
	order_int64(values, count);
	return count ? (double)statistics_percentile(values, count, 50) : NAN;
}

void statistics_interval(double *draws, size_t count, double level, double *low, double *high)
{
	order_doubles(draws, count);
	*low = draws[(size_t)((double)count * (1 - level) / 2)];
	*high = draws[(size_t)((double)count * (1 + level) / 2) - 1];
}

/* Sorted values have a difference that fits, and is exact as long as it is below 2^53: times
 * since 1970 have more digits than a double. */
static double above_first(const int64_t *sorted, size_t i)
{
	return (double)((uint64_t)sorted[i] - (uint64_t)sorted[0]);
}

/* Mean, deviation and skewness of sorted values. */
static void moments(const int64_t *v, size_t count, struct statistics *s)
{
	double n = (double)count, sum = 0, m2 = 0, m3 = 0, mean;

	for (size_t i = 0; i < count; i++)
		sum += above_first(v, i);
	mean = sum / n;
	for (size_t i = 0; i < count; i++) {
		double d = above_first(v, i) - mean;

		m2 += d * d;
		m3 += d * d * d;
	}
	s->mean = mean + (double)v[0];
	if (count > 1)
		s->deviation = sqrt(m2 / (n - 1));
	if (count > 2 && m2 > 0)
		s->skewness = sqrt(n * (n - 1)) / (n - 2) * (m3 / n) / pow(m2 / n, 1.5);
}

/* The mean without the tenth at either end; at least one value is left. */
static double middle(const int64_t *v, size_t count)
{
	size_t cut = count / 10;
	double sum = 0;

	for (size_t i = cut; i < count - cut; i++)
		sum += above_first(v, i);
	return (double)v[0] + sum / (double)(count - 2 * cut);
}

size_t statistics_up_to(const int64_t *sorted, size_t count, int64_t limit)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (sorted[middle] > limit)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

void statistics_of(int64_t *values, size_t count, int64_t limit, struct statistics *s)
{
	static const double percents[] = STATISTICS_PERCENTS;

	_Static_assert(ARRAY_SIZE(percents) == STATISTICS_PERCENT_COUNT, "one place each");
	*s = (struct statistics){ .count = count, .mean = NAN, .deviation = NAN,
				  .middle = NAN, .skewness = NAN, .share_above = NAN };
	if (!count)
		return;
	order_int64(values, count);
	s->min = values[0];
	s->max = values[count - 1];
	moments(values, count, s);
	s->middle = middle(values, count);
	for (size_t i = 0; i < ARRAY_SIZE(percents); i++)
		s->percentile[i] = statistics_percentile(values, count, percents[i]);
	s->share_above = (double)(count - statistics_up_to(values, count, limit)) / (double)count;
}
