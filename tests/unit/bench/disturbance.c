/* SPDX-License-Identifier: BSD-2-Clause */
/* What is called a busy machine, from facts that were made. */
#include "bench/result/disturbance.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "bench/result/number.h"

static void the_kernels_line_is_read(void **state)
{
	struct disturbance_times t = { .known = false };

	assert_true(disturbance_parse("cpu  100 20 30 400 50 6 7 80 90 0\n", 100, &t));
	assert_float_equal(t.busy, 1.63, 1e-9);
	assert_float_equal(t.stolen, 0.8, 1e-9);
	assert_float_equal(t.all, 6.93, 1e-9);
	/* Linux before 2.6.11 */
	assert_true(disturbance_parse("cpu 100 20 30 400 50 6 7\n", 100, &t));
	assert_float_equal(t.stolen, 0, 1e-9);
	assert_false(disturbance_parse("cpu 1 2 3\n", 100, &t));
	assert_false(disturbance_parse("intr 1 2 3 4 5 6 7 8\n", 100, &t));
	assert_false(disturbance_parse("", 100, &t));
}

static void what_this_process_used_is_not_of_others(void **state)
{
	const struct disturbance_times from = { .known = true, .all = 100, .busy = 50,
						.stolen = 1, .own = 7 };
	struct disturbance_times to = { .known = true, .all = 110, .busy = 56, .stolen = 2,
					.own = 12 };
	json_t *o = disturbance_between(&from, &to);

	assert_float_equal(number_of(o, "others_percent"), 10, 1e-6);
	assert_float_equal(number_of(o, "stolen_percent"), 10, 1e-6);
	assert_float_equal(number_of(o, "processor_seconds"), 10, 1e-6);
	json_decref(o);
	/* Ticks are coarser than the processes' times: not less than nothing. */
	to.own = 14;
	o = disturbance_between(&from, &to);
	assert_float_equal(number_of(o, "others_percent"), 0, 1e-6);
	json_decref(o);
	/* Too short to be told, or not known at all. */
	to.all = 100.1;
	o = disturbance_between(&from, &to);
	assert_true(json_is_null(json_object_get(o, "others_percent")));
	json_decref(o);
	to = (struct disturbance_times){ .known = false, .all = 110 };
	o = disturbance_between(&from, &to);
	assert_true(json_is_null(json_object_get(o, "stolen_percent")));
	json_decref(o);
}

static json_t *judged(double stolen, double others, const double lines[3], double missed)
{
	json_t *o = json_pack("{s:f, s:f, s:[]}", "stolen_percent", stolen, "others_percent",
			      others, "checks");

	for (int i = 0; i < 3; i++)
		json_array_append_new(json_object_get(o, "checks"),
				      json_pack("{s:o, s:o}", "cacheline_oneway_ns",
						number_json(lines[i]), "missed_percent",
						number_json(i ? 0 : missed)));
	disturbance_judge(o);
	return o;
}

static void expect(json_t *o, const char *line)
{
	const char *said = json_string_value(json_object_get(o, "line"));

	assert_int_equal(json_is_true(json_object_get(o, "busy")), line != NULL);
	if (line && (!said || !strstr(said, line)))
		fail_msg("'%s' is not in '%s'", line, said ? said : "");
	if (!line)
		assert_null(said);
	json_decref(o);
}

static void each_reason_alone_makes_a_machine_busy(void **state)
{
	static const double calm[] = { 100, 110, 120 }, moved[] = { 250, 60, 70 };

	expect(judged(0.5, 2, calm, 0.3), NULL);
	expect(judged(12, 2, calm, 0.3), "the host took the processors away for 12 % of the time");
	expect(judged(0.5, 31, calm, 0.3), "other programs used 31 % of the processors");
	expect(judged(0.5, 2, calm, 41.9), "missed 42 % of its steps");
	expect(judged(0.5, 2, moved, 0.3), "took 60 ns at best and 250 ns at worst");
}

static void the_unit_is_the_best_of_all_checks(void **state)
{
	static const double lines[] = { 250, NAN, 60 };
	json_t *o = judged(0, 0, lines, 0.3);

	assert_float_equal(number_of(o, "floor_ns"), 60, 1e-6);
	assert_float_equal(number_of(o, "floor_worst_ns"), 250, 1e-6);
	json_decref(o);
	/* Without a floor there is none, and no reason either. */
	o = json_object();
	disturbance_judge(o);
	assert_true(json_is_null(json_object_get(o, "floor_ns")));
	expect(o, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_kernels_line_is_read),
		cmocka_unit_test(what_this_process_used_is_not_of_others),
		cmocka_unit_test(each_reason_alone_makes_a_machine_busy),
		cmocka_unit_test(the_unit_is_the_best_of_all_checks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
