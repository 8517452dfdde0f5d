/* SPDX-License-Identifier: BSD-2-Clause */
/* Percentiles and moments whose answers are known. */
#include "bench/result/statistics.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentiles_are_values_that_were_measured),
		cmocka_unit_test(skewness_is_the_adjusted_one),
		cmocka_unit_test(large_times_keep_their_digits),
		cmocka_unit_test(few_values_have_no_deviation_or_skewness),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
