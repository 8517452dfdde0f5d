/* SPDX-License-Identifier: BSD-2-Clause */
/* Which of two runs is faster, of values whose answer is known; the shapes of results. */
#include "bench/result/compare.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/result/blocks.h"
#include "bench/result/shapes.h"
#include "util/prng.h"

#define COUNT 20000
#define TRIALS 20
#define MTU_SHAPE 7 /* in the list of shapes */

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

static struct result_read make_case(const char *id, const char *scenario, const char *type,
				    int median)
{
	return (struct result_read){
		.id = strdup(id),
		.description = json_pack("{s:s, s:{s:s}}", "scenario", scenario, "parameters",
					 "type", type),
		.summary = json_pack("{s:{s:{s:i}}, s:{}}", "latencies", "t_lat", "p50", median,
				     "figures"),
	};
}

static const json_t *holds(const json_t *shapes, size_t i)
{
	return json_object_get(json_array_get(shapes, i), "holds");
}

static void shapes_hold_or_not_or_cannot_be_checked(void **state)
{
	struct result_read *cases = calloc(4, sizeof(*cases));
	json_t *shapes;

	assert_non_null(cases);
	cases[0] = make_case("A1_RC", "A1", "RC", 3000);
	cases[1] = make_case("B1_RC", "B1", "RC", 1000);
	cases[2] = make_case("A1_UD", "A1", "UD", 3000);
	cases[3] = make_case("B1_UD", "B1", "UD", 1000);
	shapes = shapes_evaluate(cases, 2);
	assert_true(json_is_true(holds(shapes, 0)));
	assert_true(json_is_null(holds(shapes, 1)));
	assert_string_equal(json_string_value(json_object_get(json_array_get(shapes, 0),
							      "figures")),
			    "RC 1.00 us and 3.00 us (3.00 times)");
	json_decref(shapes);
	/* One of two is enough for not holding. */
	json_decref(cases[3].summary);
	cases[3].summary = json_pack("{s:{s:{s:i}}}", "latencies", "t_lat", "p50", 4000);
	shapes = shapes_evaluate(cases, 4);
	assert_true(json_is_false(holds(shapes, 0)));
	json_decref(shapes);
	result_read_free(cases, 4);
}

/* Sizes of which the source says that they make no difference. */
static void a_single_point_shows_no_shape(void **state)
{
	struct result_read *cases = calloc(2, sizeof(*cases));
	json_t *shapes;

	assert_non_null(cases);
	for (int i = 0; i < 2; i++) {
		cases[i] = make_case("P2", "P2", "RC", 1000 + i);
		json_object_update_new(json_object_get(cases[i].description, "parameters"),
				       json_pack("{s:i, s:i}", "size", 4096, "mtu", 1024 << i));
	}
	shapes = shapes_evaluate(cases, 1);
	assert_true(json_is_null(holds(shapes, MTU_SHAPE)));
	json_decref(shapes);
	shapes = shapes_evaluate(cases, 2);
	assert_true(json_is_true(holds(shapes, MTU_SHAPE)));
	json_decref(shapes);
	result_read_free(cases, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_difference_is_shown),
		cmocka_unit_test(equal_runs_rarely_differ),
		cmocka_unit_test(a_drawn_median_is_one_of_the_values),
		cmocka_unit_test(nothing_is_not_comparable),
		cmocka_unit_test(shapes_hold_or_not_or_cannot_be_checked),
		cmocka_unit_test(a_single_point_shows_no_shape),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
