/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of two runs is faster, of values whose answer is known. */
#include "bench/result/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bench/result/blocks.h"
#include "util/prng.h"

#define COUNT 20000
#define TRIALS 20

static int64_t a[COUNT], b[COUNT];

/* In (0, 1). */
static double uniform(struct prng *p)
{
	return ((double)(prng_next(p) >> 11) + 0.5) * 0x1p-53;
}

/* Standard normal (Box and Muller, 1958). */
static double draw_normal(struct prng *p)
{
	double radius = sqrt(-2 * log(uniform(p)));

	return radius * cos(2 * 3.14159265358979 * uniform(p));
}

/* Independent, or in runs of 400 that are late together. */
static void make(int64_t *values, double median, bool together, uint64_t seed)
{
	struct prng prng = prng_from(seed);
	double late = 0;

	for (int i = 0; i < COUNT; i++) {
		if (together && i % 400 == 0)
			late = 200 * draw_normal(&prng);
		values[i] = llrint(median + late + 100 * draw_normal(&prng));
	}
}

static enum compare_verdict verdict_of(struct compare_latency *c)
{
	assert_int_equal(compare_values(a, COUNT, b, COUNT, c), 0);
	return c->verdict;
}

static void a_difference_is_shown(void **state)
{
	struct compare_latency c;

	make(a, 1000, false, 1);
	make(b, 950, false, 2);
	assert_int_equal(verdict_of(&c), COMPARE_FASTER);
	assert_true(fabs(c.ratio - 0.95) < 0.005 && c.low < c.ratio && c.high > c.ratio);
	make(b, 1050, false, 2);
	assert_int_equal(verdict_of(&c), COMPARE_SLOWER);
}

static void equal_runs_rarely_differ(void **state)
{
	struct compare_latency c;
	int differ = 0;

	for (unsigned i = 0; i < TRIALS; i++) {
		make(a, 1000, true, 2 * i + 10);
		make(b, 1000, true, 2 * i + 11);
		differ += verdict_of(&c) != COMPARE_SAME;
	}
	/* 5 % are expected to; with an interval that takes neighbours as independent nearly all
	 * would. */
	assert_true(differ <= 5);
}

static void a_drawn_median_is_one_of_the_values(void **state)
{
	const int64_t values[] = { 5, 5, 7, 7, 7, 9 };
	struct blocks *blocks = blocks_new(values, 6);
	struct prng prng = prng_from(1);
	unsigned seen[10] = { 0 };

	assert_non_null(blocks);
	assert_int_equal(blocks_median(blocks), 7);
	for (int i = 0; i < 1000; i++) {
		int64_t v = blocks_draw(blocks, &prng);

		assert_true(v == 5 || v == 7 || v == 9);
		seen[v]++;
	}
	assert_true(seen[7] > seen[5] && seen[5] > seen[9] && seen[9] > 0);
	blocks_free(blocks);
}

static void nothing_is_not_comparable(void **state)
{
	struct compare_latency c;

	assert_int_equal(compare_values(a, 0, b, 5, &c), 0);
	assert_int_equal(c.verdict, COMPARE_UNKNOWN);
	a[0] = b[0] = 0;
	assert_int_equal(compare_values(a, 1, b, 1, &c), 0);
	assert_int_equal(c.verdict, COMPARE_SAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_difference_is_shown),
		cmocka_unit_test(equal_runs_rarely_differ),
		cmocka_unit_test(a_drawn_median_is_one_of_the_values),
		cmocka_unit_test(nothing_is_not_comparable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
