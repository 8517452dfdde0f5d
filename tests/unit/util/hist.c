/* SPDX-License-Identifier: BSD-2-Clause */
/* The histogram against a sorted array of the same values. */
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "util/hist.h"

enum { COUNT = 20000 };

static const double percents[] = { 0,  0.01, 1,	   10,	 25,	50,
				   75, 90,   99,   99.9, 99.99, 100 };

static uint64_t state = 88172645463325252u;

static uint64_t next_random(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* The smallest value such that at least `percent` % of all values are not above it. */
static uint64_t exact(const uint64_t *sorted, size_t count, double percent)
{
	double rank = ceil((double)count * percent / 100.0);

	return sorted[rank < 1 ? 0 : (size_t)rank - 1];
}

static void compare(uint64_t (*make)(void))
{
	static uint64_t values[COUNT];
	static struct hist h;
	double sum = 0;

	hist_init(&h);
	for (size_t i = 0; i < COUNT; i++) {
		values[i] = make();
		sum += (double)values[i];
		hist_record(&h, values[i]);
	}
	qsort(values, COUNT, sizeof(values[0]), by_value);
	assert_int_equal(h.count, COUNT);
	assert_true(h.min == values[0]);
	assert_true(h.max == values[COUNT - 1]);
	for (size_t i = 0; i < sizeof(percents) / sizeof(percents[0]); i++) {
		uint64_t want = exact(values, COUNT, percents[i]);
		uint64_t got = hist_percentile(&h, percents[i]);

		/* Never below; above by a 64th at most, and exact when small. */
		assert_true(got >= want);
		assert_true(got - want <= want / 64);
		assert_true(got <= h.max);
		if (want < 64)
			assert_true(got == want);
	}
	assert_true(fabs(hist_mean(&h) - sum / COUNT) <= sum / COUNT * 1e-9 + 1);
}

static uint64_t small(void)
{
	return next_random() % 64;
}

static uint64_t latency(void)
{
	uint64_t v = 500 + next_random() % 300;

	return next_random() % 100 ? v : v * (1 + next_random() % 5000);
}

static uint64_t anything_below_2_to_48(void)
{
	return next_random() >> (16 + next_random() % 48);
}

static void percentiles_of_small_values_are_exact(void **unused)
{
	compare(small);
}

static void percentiles_of_latencies_are_within_a_64th(void **unused)
{
	compare(latency);
}

static void percentiles_of_any_magnitude_are_within_a_64th(void **unused)
{
	compare(anything_below_2_to_48);
}

static void an_empty_histogram_says_zero(void **unused)
{
	static struct hist h;

	hist_init(&h);
	assert_int_equal(hist_percentile(&h, 50), 0);
	assert_true(hist_mean(&h) == 0.0);
}

static void one_value_is_every_percentile(void **unused)
{
	static const uint64_t values[] = { 0, 1, 63, 64, 65, 127, 128, 1000003,
					   UINT64_MAX - 1, UINT64_MAX };
	static struct hist h;

	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		hist_init(&h);
		hist_record(&h, values[i]);
		for (size_t k = 0; k < sizeof(percents) / sizeof(percents[0]); k++)
			assert_true(hist_percentile(&h, percents[k]) ==
				    values[i]);
	}
}

static void merging_equals_recording_in_one(void **unused)
{
	static struct hist one, a, b, empty;

	hist_init(&one);
	hist_init(&a);
	hist_init(&b);
	hist_init(&empty);
	for (int i = 0; i < 5000; i++) {
		uint64_t v = latency();

		hist_record(&one, v);
		hist_record(i % 3 ? &a : &b, v);
	}
	hist_merge(&a, &b);
	hist_merge(&a, &empty);
	assert_memory_equal(&a, &one, sizeof(a));
	hist_merge(&empty, &one);
	assert_memory_equal(&empty, &one, sizeof(a));
}

static void cumulated_rows_count_what_is_not_above_them(void **unused)
{
	static const uint64_t bounds[] = { 0, 9, 63, 1000, 1000000, UINT64_MAX };
	uint64_t counts[sizeof(bounds) / sizeof(bounds[0])], below, above;
	static uint64_t values[5000];
	static struct hist h;

	hist_init(&h);
	for (int i = 0; i < 5000; i++) {
		values[i] = i % 5 ? latency() : (uint64_t)i % 80;
		hist_record(&h, values[i]);
	}
	assert_int_equal(hist_cumulate(&h, bounds, counts, 6), 5000);
	for (int r = 0; r < 6; r++) {
		/* What is near to a bound may be on either side of it. */
		below = above = 0;
		for (int i = 0; i < 5000; i++) {
			below += values[i] <= bounds[r] - bounds[r] / 64;
			above += values[i] <= bounds[r];
		}
		assert_in_range(counts[r], below, above);
	}
	assert_int_equal(counts[5], 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_of_small_values_are_exact),
		cmocka_unit_test(percentiles_of_latencies_are_within_a_64th),
		cmocka_unit_test(percentiles_of_any_magnitude_are_within_a_64th),
		cmocka_unit_test(an_empty_histogram_says_zero),
		cmocka_unit_test(one_value_is_every_percentile),
		cmocka_unit_test(merging_equals_recording_in_one),
		cmocka_unit_test(cumulated_rows_count_what_is_not_above_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
