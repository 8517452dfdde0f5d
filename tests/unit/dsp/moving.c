/* SPDX-License-Identifier: BSD-2-Clause */
/* The hooks ma and rms. */
#include "rig.h"

static void rms_of_a_sine_over_whole_periods_is_its_amplitude_by_root_two(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"rms\"; signals = ( \"u\" ); window_size = 200; }",
		  "( { name = \"u\"; unit = \"V\"; } )");
	assert_int_equal(r.out->count, 1);
	assert_signal(&r, 0, "u", "V");
	for (unsigned n = 0; n < 5000; n++) {
		/* 3 periods of 66.67 samples; and a phase, so no sample is 0. */
		assert_true(rig_push1(&r, n * 50000,
				      325 * sin(2 * M_PI * 3 * n / 200 + 0.3)));
		if (n >= 199)
			assert_near(r.got->data[0].f / (325 * M_SQRT1_2), 1, 1e-12);
	}
	rig_stop(&r);
}

static void signals_do_not_mix(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"rms\"; signals = ( \"a\", \"c\" ); window_size = 4; }",
		  "( { name = \"a\"; }, { name = \"b\"; }, { name = \"c\"; } )");
	for (unsigned n = 0; n < 20; n++) {
		double v[] = { n & 1 ? 3 : -3, n, 5 };

		assert_true(rig_push(&r, n, v, 3));
		assert_near(r.got->data[0].f, 3, 0);
		assert_near(r.got->data[1].f, n, 0);
		assert_near(r.got->data[2].f, 5, 0);
	}
	rig_stop(&r);
}

static void the_mean_of_a_ramp_is_half_a_window_behind(void **state)
{
	struct rig r;

	(void)state;
	/* The default of window_size is 10. */
	rig_start(&r, "{ type = \"ma\"; signal = \"u\"; }", "( { name = \"u\"; } )");
	for (unsigned n = 0; n < 1000; n++) {
		unsigned have = n < 10 ? n + 1 : 10;

		assert_true(rig_push1(&r, n, n * 0.5));
		/* Whole numbers and halves: the sum is exact, the quotient
		 * rounded. */
		assert_near(r.got->data[0].f, 0.5 * (n - (have - 1) / 2.0), 1e-13);
	}
	rig_stop(&r);
}

static void a_long_run_through_the_hook_stays_exact(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"rms\"; signal = \"u\"; window_size = 100; }",
		  "( { name = \"u\"; } )");
	for (unsigned n = 0; n < 1000000; n++)
		rig_push1(&r, n, n < 500 ? 1e9 : 1e-3 * sin(2 * M_PI * n / 50));
	assert_near(r.got->data[0].f / (1e-3 * M_SQRT1_2), 1, 1e-12);
	rig_stop(&r);
}

/* 1e200 has no square, 1e154 has one but two of them have no sum. */
static void values_that_are_too_large_leave_the_window(void **state)
{
	static const double large[] = { 1e200, 1e154, -1e154, 1.7e308, INFINITY,
					NAN };

	(void)state;
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		for (unsigned first = 20; first < 28; first++) {
			struct rig r;

			rig_start(&r, "{ type = \"rms\"; signal = 0; window_size = 8; }",
				  "\"1f\"");
			for (unsigned n = 0; n < 80; n++) {
				bool is_large = n >= first && n < first + 3;
				double got;

				rig_push1(&r, n, is_large ? large[i] : 3);
				got = r.got->data[0].f;
				if (n < first || n >= first + 10)
					assert_near(got, 3, 0);
				else
					assert_true(isnan(got));
			}
			rig_stop(&r);
		}
}

static void values_up_to_1e150_have_their_mean_square(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"rms\"; signal = 0; window_size = 100; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 1000; n++) {
		rig_push1(&r, n, n & 1 ? 1e150 : -1e150);
		assert_near(r.got->data[0].f / 1e150, 1, 1e-14);
	}
	rig_stop(&r);
}

static void a_restart_of_the_source_empties_the_window(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"ma\"; signal = 0; window_size = 8; }", "\"1f\"");
	for (unsigned n = 0; n < 20; n++)
		rig_push1(&r, n, 100);
	r.flags = SAMPLE_NEW_SIMULATION;
	rig_push1(&r, 20, 4);
	assert_near(r.got->data[0].f, 4, 0);
	rig_push1(&r, 21, 6);
	assert_near(r.got->data[0].f, 5, 0);
	rig_stop(&r);
}

static void integers_come_out_as_real_numbers(void **state)
{
	struct rig r;
	union signal_data v;
	double as_double;

	(void)state;
	rig_start(&r, "{ type = \"ma\"; signal = 1; window_size = 2; }", "\"1f1i1b\"");
	assert_int_equal(r.out->signals[1].type, SIGNAL_FLOAT);
	assert_int_equal(r.out->signals[2].type, SIGNAL_BOOLEAN);
	for (int n = 0; n < 4; n++) {
		double values[3] = { 0, 0, 0 };

		v.i = n;
		memcpy(&as_double, &v, sizeof(v));
		values[1] = as_double;
		assert_true(rig_push(&r, n, values, 3));
	}
	assert_near(r.got->data[1].f, 2.5, 0);
	rig_stop(&r);
}

static void a_sample_that_is_too_short_is_dropped(void **state)
{
	struct rig r;
	double v[2] = { 1, 2 };

	(void)state;
	rig_start(&r, "{ type = \"ma\"; signal = 1; }", "\"2f\"");
	assert_false(rig_push(&r, 0, v, 1));
	assert_true(rig_push(&r, 1, v, 2));
	rig_stop(&r);
}

static void a_sample_that_is_dropped_is_in_no_window(void **state)
{
	static const char *const hooks[] = {
		"{ type = \"ma\"; signals = ( 0, 2 ); window_size = 2; }",
		"{ type = \"rms\"; signals = ( 0, 2 ); window_size = 2; }",
	};
	double first[] = { 3, 0, 3 }, cut[] = { 100, 0 }, last[] = { 3, 0, 3 };
	struct rig r;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		rig_start(&r, hooks[i], "\"3f\"");
		assert_true(rig_push(&r, 0, first, 3));
		assert_false(rig_push(&r, 1, cut, 2));
		assert_non_null(strstr(rig_log, "a sample without one of the signals"));
		assert_true(rig_push(&r, 2, last, 3));
		assert_near(r.got->data[0].f, 3, 0);
		assert_near(r.got->data[2].f, 3, 0);
		rig_stop(&r);
	}
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	rig_refuses("{ type = \"rms\"; signal = 0; }", "\"1f\"", "window_size");
	rig_refuses("{ type = \"rms\"; signal = 0; window_size = 0; }", "\"1f\"",
		    "window_size");
	rig_refuses("{ type = \"ma\"; }", "\"1f\"", "signals");
	rig_refuses("{ type = \"ma\"; signal = \"x\"; }", "\"1f\"", "'x'");
	rig_refuses("{ type = \"ma\"; signal = 0; }", "\"1c\"", "complex");
	rig_refuses("{ type = \"ma\"; signal = 0; windowsize = 3; }", "\"1f\"",
		    "window_size");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rms_of_a_sine_over_whole_periods_is_its_amplitude_by_root_two),
		cmocka_unit_test(signals_do_not_mix),
		cmocka_unit_test(the_mean_of_a_ramp_is_half_a_window_behind),
		cmocka_unit_test(a_long_run_through_the_hook_stays_exact),
		cmocka_unit_test(values_that_are_too_large_leave_the_window),
		cmocka_unit_test(values_up_to_1e150_have_their_mean_square),
		cmocka_unit_test(a_restart_of_the_source_empties_the_window),
		cmocka_unit_test(integers_come_out_as_real_numbers),
		cmocka_unit_test(a_sample_that_is_too_short_is_dropped),
		cmocka_unit_test(a_sample_that_is_dropped_is_in_no_window),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
