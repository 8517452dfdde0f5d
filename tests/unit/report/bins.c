/* SPDX-License-Identifier: BSD-2-Clause */
/* Few points of many values: none of the outliers is lost, all shares add up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/report/bins.h"

#define COUNT 100000

static int64_t values[COUNT], sorted[COUNT];

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static int fill(void **state)
{
	uint64_t seed = 3;

	for (size_t i = 0; i < COUNT; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1;
		values[i] = sorted[i] = 1000 + (int64_t)(seed >> 56);
	}
	values[77777] = sorted[77777] = 500000;
	values[5] = sorted[5] = 3;
	qsort(sorted, COUNT, sizeof(sorted[0]), by_value);
	return 0;
}

static void a_histogram_counts_all_that_lie_in_its_range(void **state)
{
	double shares[10], sum = 0;

	report_bins_histogram(sorted, COUNT, 2000, shares, 10);
	for (size_t i = 0; i < 10; i++)
		sum += shares[i];
	/* All but the one outlier. */
	assert_true(fabs(sum - 100.0 * (COUNT - 1) / COUNT) < 1e-6);
	assert_true(fabs(shares[0] - 100.0 / COUNT) < 1e-9);
	assert_true(shares[5] > 70 && shares[6] > 10 && shares[7] == 0);
}

static void values_at_the_edges_are_in_one_bin(void **state)
{
	static const int64_t edge[] = { -1, 0, 99, 100, 199, 200 };
	double shares[2];

	report_bins_histogram(edge, 6, 200, shares, 2);
	assert_true(fabs(shares[0] - 100.0 * 2 / 6) < 1e-9);
	assert_true(fabs(shares[1] - 100.0 * 2 / 6) < 1e-9);
}

static void bands_keep_order_and_outliers(void **state)
{
	struct report_band bands[320];
	size_t n = report_bins_bands(values, COUNT, bands, 320), next = 0;

	assert_int_equal(n, 320);
	for (size_t i = 0; i < n; i++) {
		assert_int_equal(bands[i].first, next);
		next += bands[i].count;
		assert_true(bands[i].min <= bands[i].median && bands[i].median <= bands[i].max);
		if (bands[i].first <= 77777 && 77777 < next)
			assert_int_equal(bands[i].max, 500000);
	}
	assert_int_equal(next, COUNT);
	assert_int_equal(bands[0].min, 3);
}

static void few_values_are_a_band_each(void **state)
{
	struct report_band bands[320];

	assert_int_equal(report_bins_bands(values, 3, bands, 320), 3);
	assert_int_equal(bands[2].first, 2);
	assert_int_equal(bands[2].max, values[2]);
	assert_int_equal(report_bins_bands(values, 0, bands, 320), 0);
}

static void the_tail_goes_from_all_to_the_last_value(void **state)
{
	struct report_tail points[240];

	for (size_t count = 1; count < COUNT; count = count * 3 + 1) {
		const int64_t *from = sorted + COUNT - count;
		size_t n = report_bins_tail(from, count, points, 240);

		assert_true(n >= 1 && n <= 240 && (count > 100 || n == count));
		assert_int_equal(points[0].value, from[0]);
		assert_true(fabs(points[0].share - 1) < 1e-12);
		assert_int_equal(points[n - 1].value, sorted[COUNT - 1]);
		assert_true(fabs(points[n - 1].share * (double)count - 1) < 1e-9);
		for (size_t i = 1; i < n; i++)
			assert_true(points[i].share < points[i - 1].share &&
				    points[i].value >= points[i - 1].value);
	}
}

static void ranges_are_rounded_up_to_1_2_5(void **state)
{
	assert_true(report_bins_round_up(1) == 1);
	assert_true(report_bins_round_up(1.1) == 2);
	assert_true(report_bins_round_up(4999) == 5000);
	assert_true(report_bins_round_up(5001) == 10000);
	assert_true(fabs(report_bins_round_up(0.03) - 0.05) < 1e-9);
	assert_true(report_bins_round_up(0) == 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_histogram_counts_all_that_lie_in_its_range),
		cmocka_unit_test(values_at_the_edges_are_in_one_bin),
		cmocka_unit_test(bands_keep_order_and_outliers),
		cmocka_unit_test(few_values_are_a_band_each),
		cmocka_unit_test(the_tail_goes_from_all_to_the_last_value),
		cmocka_unit_test(ranges_are_rounded_up_to_1_2_5),
	};

	return cmocka_run_group_tests(tests, fill, NULL);
}
