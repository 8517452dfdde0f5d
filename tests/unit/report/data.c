/* SPDX-License-Identifier: BSD-2-Clause */
/* What a page gets of many values: intervals that hold the median, fewer points of more latencies, and texts
 * that are valid whatever a file holds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "bench/report/data.h"

#define COUNT 20000

static json_t *new_case(json_t **data)
{
	*data = json_pack("{s:[]}", "runs");
	return report_case_add(report_run_add(*data, "suite", NULL), "a", "hca");
}

static int64_t member(const json_t *o, const char *key)
{
	assert_true(json_is_integer(json_object_get(o, key)));
	return json_integer_value(json_object_get(o, key));
}

static void an_interval_holds_its_median_and_is_narrow_of_many_values(void **state)
{
	static int64_t values[COUNT];
	const struct report_detail detail = report_detail_for(1);
	uint64_t seed = 7;
	json_t *data, *c = new_case(&data), *l;

	(void)state;
	for (size_t i = 0; i < COUNT; i++) {
		seed = seed * UINT64_C(6364136223846793005) + 1;
		values[i] = 1000 + (int64_t)(seed >> 56);
	}
	assert_int_equal(report_latency_add(c, "t_lat", NULL, values, COUNT, &detail), 0);
	l = json_array_get(json_object_get(c, "latencies"), 0);
	assert_true(member(l, "low") <= member(l, "p50") && member(l, "p50") <= member(l, "high"));
	assert_true(member(l, "high") - member(l, "low") < 20);
	assert_int_equal(member(l, "count"), COUNT);
	assert_int_equal(json_array_size(json_object_get(json_object_get(l, "bands"), "low")),
			 detail.bands);
	json_decref(data);
}

static void no_values_are_no_latency(void **state)
{
	const struct report_detail detail = report_detail_for(1);
	json_t *data, *c = new_case(&data);

	(void)state;
	assert_int_equal(report_latency_add(c, "t_lat", NULL, NULL, 0, &detail), 0);
	assert_int_equal(json_array_size(json_object_get(c, "latencies")), 0);
	json_decref(data);
}

static void a_part_of_a_budget_has_statistics_only(void **state)
{
	int64_t values[] = { 3, 1, 2 };
	json_t *data, *c = new_case(&data), *l;

	(void)state;
	assert_int_equal(report_latency_add(c, "way.write", NULL, values, 3, NULL), 0);
	l = json_array_get(json_object_get(c, "latencies"), 0);
	assert_int_equal(member(l, "p50"), 2);
	assert_null(json_object_get(l, "bins"));
	json_decref(data);
}

static void more_latencies_have_fewer_points(void **state)
{
	struct report_detail last = report_detail_for(0);

	(void)state;
	for (size_t n = 1; n < 5000; n = n * 3 + 1) {
		struct report_detail d = report_detail_for(n);

		assert_true(d.bins <= last.bins && d.bands <= last.bands && d.tail <= last.tail);
		assert_true(d.bins && d.bands && d.tail);
		last = d;
	}
}

static void texts_are_valid_whatever_bytes_they_have(void **state)
{
	json_t *v = report_string("a\xff<b>\xe2\x80\xae\n");

	(void)state;
	assert_string_equal(json_string_value(v), "a\xef\xbf\xbd<b>\xef\xbf\xbd ");
	json_decref(v);
	v = report_string(NULL);
	assert_true(json_is_null(v));
	json_decref(v);
}

static void a_curve_without_values_is_left_out(void **state)
{
	const double seconds[] = { 0, 1 }, none[] = { 0.0 / 0.0, 0.0 / 0.0 }, one[] = { 4, 0.0 / 0.0 };
	json_t *data, *c = new_case(&data);

	(void)state;
	assert_int_equal(report_curve_add(c, "u", "V", seconds, none, 2), 0);
	assert_int_equal(json_array_size(json_object_get(c, "curves")), 0);
	assert_int_equal(report_curve_add(c, "u", "V", seconds, one, 2), 0);
	assert_int_equal(member(json_array_get(json_object_get(c, "curves"), 0), "samples"), 1);
	json_decref(data);
}

static void the_name_of_a_figure_stands_once(void **state)
{
	json_t *data = json_pack("{s:[]}", "runs"), *run = report_run_add(data, "suite", NULL);
	json_t *a = report_case_add(run, "a", "hca"), *b = report_case_add(run, "b", "hca");

	(void)state;
	assert_int_equal(report_figure_add(run, a, "lost", "messages lost", "", 1), 0);
	assert_int_equal(report_figure_add(run, b, "lost", "messages lost", "", 0.0 / 0.0), 0);
	assert_int_equal(report_figure_add(run, b, "lost", "messages lost", "%", 2), 0);
	assert_int_equal(json_array_size(json_object_get(run, "figures")), 2);
	a = json_array_get(json_object_get(a, "figures"), 0);
	assert_int_equal(json_integer_value(json_array_get(a, 0)), 0);
	a = json_array_get(json_object_get(b, "figures"), 0);
	assert_true(json_is_null(json_array_get(a, 1)));
	a = json_array_get(json_object_get(b, "figures"), 1);
	assert_int_equal(json_integer_value(json_array_get(a, 0)), 1);
	json_decref(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_interval_holds_its_median_and_is_narrow_of_many_values),
		cmocka_unit_test(no_values_are_no_latency),
		cmocka_unit_test(a_part_of_a_budget_has_statistics_only),
		cmocka_unit_test(more_latencies_have_fewer_points),
		cmocka_unit_test(texts_are_valid_whatever_bytes_they_have),
		cmocka_unit_test(the_name_of_a_figure_stands_once),
		cmocka_unit_test(a_curve_without_values_is_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
