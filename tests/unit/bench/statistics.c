/* SPDX-License-Identifier: BSD-2-Clause */
/* Percentiles, moments and intervals of medians whose answers are known. */
#include "bench/result/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/result/draw.h"

#define MANY 200000

static void percentiles_are_values_that_were_measured(void **state)
{
	int64_t v[1000];
	struct statistics s;

	/* Shuffled: 7 and 1000 have no common factor. */
	for (int i = 0; i < 1000; i++)
		v[i] = 1 + 7 * i % 1000;
	statistics_of(v, 1000, 990, &s);
	assert_int_equal(s.count, 1000);
	assert_int_equal(s.min, 1);
	assert_int_equal(s.max, 1000);
	assert_int_equal(s.percentile[0], 100);
	assert_int_equal(s.percentile[1], 250);
	assert_int_equal(s.percentile[2], 500);
	assert_int_equal(s.percentile[6], 990);
	/* 999, not 1000: 99.9 / 100 is not exact in binary. */
	assert_int_equal(s.percentile[7], 999);
	assert_int_equal(s.percentile[8], 1000);
	assert_true(fabs(s.mean - 500.5) < 1e-9);
	assert_true(fabs(s.deviation - 288.8194360957494) < 1e-9);
	assert_true(fabs(s.skewness) < 1e-12);
	assert_true(fabs(s.share_above - 0.01) < 1e-12);
}

static void skewness_is_the_adjusted_one(void **state)
{
	int64_t v[] = { 10, 1, 4, 3, 2 };
	struct statistics s;

	statistics_of(v, 5, 3, &s);
	assert_int_equal(s.percentile[2], 3);
	assert_true(fabs(s.skewness - 1.6970562748477143) < 1e-12);
	assert_true(fabs(s.deviation - 3.5355339059327378) < 1e-12);
	assert_true(fabs(s.share_above - 0.4) < 1e-12);
}

static void large_times_keep_their_digits(void **state)
{
	const int64_t base = INT64_C(1700000000000000000);
	int64_t v[] = { base + 10, base + 1, base + 4, base + 3, base + 2 };
	struct statistics s;

	statistics_of(v, 5, base, &s);
	assert_int_equal(s.max, base + 10);
	assert_true(fabs(s.deviation - 3.5355339059327378) < 1e-12);
	assert_true(s.share_above == 1);
}

static void few_values_have_no_deviation_or_skewness(void **state)
{
	int64_t v[] = { 5, 5, 5 };
	struct statistics s;

	statistics_of(v, 0, 0, &s);
	assert_int_equal(s.count, 0);
	assert_true(isnan(s.mean));
	statistics_of(v, 1, 5, &s);
	assert_true(s.mean == 5 && isnan(s.deviation) && isnan(s.skewness));
	assert_true(s.share_above == 0);
	statistics_of(v, 2, 4, &s);
	assert_true(s.deviation == 0 && isnan(s.skewness));
	statistics_of(v, 3, 4, &s);
	assert_true(s.deviation == 0 && isnan(s.skewness)); /* 0 / 0 */
}

/* The median of a bootstrap sample of 9 values is at most the j-th with the probability
 * P(binomial(9, j / 9) >= 5): 0.030 for j = 2, 0.145 for 3, 0.855 for 6, 0.970 for 7. */
static void the_interval_is_that_of_the_bootstrap(void **state)
{
	const int64_t v[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
	static const struct {
		double level;
		int64_t low, high;
	} known[] = { { 0.95, 2, 8 }, { 0.93, 3, 7 }, { 0.68, 4, 6 } };
	int64_t low, high;

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		assert_int_equal(statistics_median_interval(v, 9, known[i].level, 100000, 1,
							    &low, &high), 0);
		assert_int_equal(low, known[i].low);
		assert_int_equal(high, known[i].high);
	}
}

/* Standard error of the median of n normal values: 1.2533 sigma / sqrt(n). */
static void the_interval_of_many_values_is_as_wide_as_theory_says(void **state)
{
	int64_t *v = malloc(MANY * sizeof(*v)), low, high;
	struct prng prng = prng_from(7);
	double width;

	assert_non_null(v);
	for (int i = 0; i < MANY; i++)
		v[i] = llrint(1e9 + 1e7 * draw_normal(&prng));
	statistics_sort(v, MANY);
	assert_int_equal(statistics_median_interval(v, MANY, 0.95, 2000, 3, &low, &high), 0);
	width = (double)(high - low) / (2 * 1.95996 * 1.2533 * 1e7 / sqrt(MANY));
	assert_true(width > 0.9 && width < 1.1);
	assert_true(llabs(v[MANY / 2] - 1000000000) < 200000);
	free(v);
}

static void beta_numbers_have_its_mean_and_variance(void **state)
{
	struct prng prng = prng_from(1);
	double sum = 0, squares = 0, mean, variance;

	for (int i = 0; i < MANY; i++) {
		double x = draw_beta(&prng, 2, 6);

		sum += x;
		squares += x * x;
	}
	mean = sum / MANY;
	variance = squares / MANY - mean * mean;
	assert_true(fabs(mean - 0.25) < 0.002);
	assert_true(fabs(variance - 2.0 * 6 / (8 * 8 * 9)) < 0.0005);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_values_that_were_measured),
		cmocka_unit_test(skewness_is_the_adjusted_one),
		cmocka_unit_test(large_times_keep_their_digits),
		cmocka_unit_test(few_values_have_no_deviation_or_skewness),
		cmocka_unit_test(the_interval_is_that_of_the_bootstrap),
		cmocka_unit_test(the_interval_of_many_values_is_as_wide_as_theory_says),
		cmocka_unit_test(beta_numbers_have_its_mean_and_variance),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
