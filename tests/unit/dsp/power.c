/* SPDX-License-Identifier: BSD-2-Clause */
/* The hooks power and ebm. */
#include "rig.h"

#define START INT64_C(1700000000000000000)
#define STEP_NS 100000

/* 3 periods in 200 samples; each of u and i is right to 1e-13 (the phase of
 * sin() is up to 100 rad), so are the means, relative to U I. */
#define BOUND 1e-12

static double angle(unsigned n)
{
	return 2 * M_PI * 3 * (n % 200) / 200;
}

static void powers_are_those_of_two_tones_with_a_known_angle(void **state)
{
	static const double phis[] = { 0.5, -0.5, 2.5, M_PI / 2, 1e-3 };
	const double u = 325, i = 14, s = u * i / 2;

	(void)state;
	for (unsigned k = 0; k < 5; k++) {
		struct rig r;
		double phi = phis[k];

		rig_start(&r, "{ type = \"power\"; signals = ( \"u\", \"i\" ); window_size = 200; pairings = ( { voltage = \"u\"; current = \"i\"; } ); }",
			  "( { name = \"x\"; }, { name = \"i\"; }, { name = \"u\"; } )");
		assert_int_equal(r.out->count, 4);
		assert_signal(&r, 0, "active", "W");
		assert_signal(&r, 1, "reactive", "Var");
		assert_signal(&r, 2, "apparent", "VA");
		assert_signal(&r, 3, "cos_phi", "rad");
		for (unsigned n = 0; n < 1000; n++) {
			double v[] = { n, i * cos(angle(n) - phi),
				       u * cos(angle(n)) };
			/* S - P is S (1 - cos phi), of which S BOUND is
			 * unsure: the root is unsure by BOUND / 2 tan phi. */
			double q = BOUND + BOUND / fabs(tan(phi / 2));

			if (!rig_push(&r, START + n * STEP_NS, v, 3)) {
				assert_true(n < 199);
				continue;
			}
			assert_true(n >= 199);
			assert_int_equal(r.got->length, 4);
			assert_ptr_equal(r.got->signals, r.out);
			assert_near(r.got->data[0].f / s, cos(phi), BOUND);
			assert_near(r.got->data[1].f / s, fabs(sin(phi)), q);
			assert_near(r.got->data[2].f / s, 1, BOUND);
			assert_near(r.got->data[3].f, fabs(phi), q);
		}
		rig_stop(&r);
	}
}

static void powers_need_no_room_for_their_squares(void **state)
{
	static const double scales[] = { 1e-100, 1, 1e100, 1e145 };
	const double phi = 0.5;

	(void)state;
	for (unsigned k = 0; k < 4; k++) {
		double scale = scales[k];
		struct rig r;

		rig_start(&r, "{ type = \"power\"; window_size = 200; pairings = ( { voltage = 0; current = 1; } ); }",
			  "\"2f\"");
		for (unsigned n = 0; n < 400; n++) {
			double v[] = { scale * cos(angle(n)),
				       scale * cos(angle(n) - phi) };

			if (!rig_push(&r, START + n * STEP_NS, v, 2))
				continue;
			/* Each is of the scale's square; divided twice. */
			assert_near(r.got->data[0].f / scale / scale, cos(phi) / 2, BOUND);
			assert_near(r.got->data[1].f / scale / scale, sin(phi) / 2,
				    10 * BOUND);
			assert_near(r.got->data[2].f / scale / scale, 0.5, BOUND);
			assert_near(r.got->data[3].f, phi, 10 * BOUND);
		}
		rig_stop(&r);
	}
}

/* Not zero, which would look like a line that is switched off. */
static void of_no_number_comes_no_number(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"power\"; window_size = 2; pairings = ( { voltage = 0; current = 1; } ); }",
		  "\"2f\"");
	rig_push(&r, START, (double[]){ 1, 1 }, 2);
	assert_true(rig_push(&r, START + STEP_NS, (double[]){ (double)NAN, 1 }, 2));
	for (unsigned i = 0; i < 4; i++)
		assert_true(isnan(r.got->data[i].f));
	rig_push(&r, START + 2 * STEP_NS, (double[]){ 1, 1 }, 2);
	assert_true(rig_push(&r, START + 3 * STEP_NS, (double[]){ 1, 1 }, 2));
	for (unsigned i = 0; i < 4; i++)
		assert_false(isnan(r.got->data[i].f));
	rig_stop(&r);
}

static void in_phase_there_is_no_reactive_power_below_rounding(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"power\"; window_size = 200; pairings = ( { voltage = 0; current = 1; } ); }",
		  "\"2f\"");
	for (unsigned n = 0; n < 1000; n++) {
		double v[] = { 10 * cos(angle(n)), 3 * cos(angle(n)) };

		if (!rig_push(&r, START + n * STEP_NS, v, 2))
			continue;
		/* sqrt of what is left of S^2 - P^2: a few 2^-52 of S^2. */
		assert_near(r.got->data[1].f / 15, 0, sqrt(8 * 0x1p-52));
		assert_false(isnan(r.got->data[1].f));
	}
	rig_stop(&r);
}

static void a_third_harmonic_is_apparent_but_not_active(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"power\"; window_size = 200; angle_unit = \"degree\"; pairings = ( { voltage = 0; current = 1; } ); }",
		  "\"2f\"");
	assert_signal(&r, 3, "cos_phi", "deg");
	for (unsigned n = 0; n < 400; n++) {
		double v[] = { cos(angle(n)), cos(angle(n)) + cos(3 * angle(n)) };

		rig_push(&r, START + n * STEP_NS, v, 2);
	}
	assert_near(r.got->data[0].f, 0.5, BOUND);
	assert_near(r.got->data[2].f, sqrt(0.5), BOUND);
	assert_near(r.got->data[1].f, 0.5, BOUND);
	assert_near(r.got->data[3].f, 45, 60 * BOUND);
	rig_stop(&r);
}

static void several_pairs_have_their_names(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"power\"; window_size = 2; reactive_power = false; cos_phi = false; pairings = ( { voltage = \"ua\"; current = \"ia\"; }, { voltage = \"ub\"; current = \"ib\"; } ); }",
		  "( { name = \"ua\"; }, { name = \"ub\"; }, { name = \"ia\"; }, { name = \"ib\"; } )");
	assert_int_equal(r.out->count, 4);
	assert_signal(&r, 0, "active_ua_ia", "W");
	assert_signal(&r, 1, "apparent_ua_ia", "VA");
	assert_signal(&r, 2, "active_ub_ib", "W");
	assert_signal(&r, 3, "apparent_ub_ib", "VA");
	for (unsigned n = 0; n < 2; n++)
		rig_push(&r, START, (double[]){ 2, 3, 5, -7 }, 4);
	assert_near(r.got->data[0].f, 10, 0);
	assert_near(r.got->data[2].f, -21, 0);
	assert_near(r.got->data[3].f, 21, 1e-14);
	rig_stop(&r);
}

static void the_timestamp_is_of_the_sample_that_alignment_says(void **state)
{
	static const char *const aligns[] = { "left", "center", "right" };
	static const int64_t behind[] = { 9, 4, 0 };

	(void)state;
	for (unsigned a = 0; a < 3; a++) {
		struct rig r;
		char hook[200];

		snprintf(hook, sizeof(hook),
			 "{ type = \"power\"; window_size = 10; timestamp_align = \"%s\"; pairings = ( { voltage = 0; current = 1; } ); }",
			 aligns[a]);
		rig_start(&r, hook, "\"2f\"");
		for (int64_t n = 0; n < 50; n++)
			if (rig_push(&r, START + n * STEP_NS,
				     (double[]){ 1, 1 }, 2))
				assert_int_equal(timespec_to_ns(r.got->origin),
						 START + (n - behind[a]) * STEP_NS);
		rig_stop(&r);
	}
}

static void a_restart_of_the_source_empties_the_window(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"power\"; window_size = 10; pairings = ( { voltage = 0; current = 1; } ); }",
		  "\"2f\"");
	for (int64_t n = 0; n < 40; n++) {
		double v[] = { n < 25 ? 100 : 2, n < 25 ? 10 : 3 };

		if (n == 25)
			r.flags = SAMPLE_NEW_SIMULATION;
		assert_int_equal(rig_push(&r, START + n * STEP_NS, v, 2),
				 (n >= 9 && n < 25) || n >= 34);
		if (n < 34)
			continue;
		assert_near(r.got->data[0].f, 6, 0);
		assert_near(r.got->data[2].f, 6, 1e-14);
		assert_int_equal(!!(r.got->flags & SAMPLE_NEW_SIMULATION),
				 n == 34);
	}
	rig_stop(&r);
}

static void a_sample_that_is_dropped_is_in_no_window(void **state)
{
	double whole[] = { 2, 3, 2, 3 }, cut[] = { 100, 100, 100 };
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"power\"; window_size = 2; pairings = ( ( 0, 1 ), ( 2, 3 ) ); }",
		  "\"4f\"");
	assert_false(rig_push(&r, 0, whole, 4));
	assert_false(rig_push(&r, 1, cut, 3));
	assert_true(rig_push(&r, 2, whole, 4));
	assert_near(r.got->data[0].f, 6, 0);
	assert_near(r.got->data[4].f, 6, 0);
	rig_stop(&r);
}

static void energy_of_whole_periods_is_mean_power_times_time(void **state)
{
	struct rig r;
	const double phi = 0.7;
	unsigned periods = 0;

	(void)state;
	rig_start(&r, "{ type = \"ebm\"; add_signal = true; phases = ( ( 0, 1 ), ( \"signal2\", 3 ) ); }",
		  "\"4f\"");
	assert_int_equal(r.out->count, 5);
	assert_signal(&r, 4, "energy", "J");
	for (unsigned n = 0; n <= 1000000; n++) {
		double a = 2 * M_PI * (n % 200) / 200;
		double v[] = { 100 * cos(a), 3 * cos(a - phi), 50, 2 };
		/* Per second: the trapezoidal rule is exact for a tone over
		 * whole periods. */
		double power = 150 * cos(phi) + 100, t = n * 1e-4;

		assert_true(rig_push(&r, START + (int64_t)n * STEP_NS, v, 4));
		if (n % 200)
			continue;
		periods++;
		/* Errors of single steps, 1e-16 of 500 W * 0.1 ms each, add up
		 * by chance to a thousand of them, at worst to all. */
		assert_near(r.got->data[4].f, power * t, 1e-12 * (1 + power * t));
	}
	assert_int_equal(periods, 5001);
	rig_log[0] = 0;
	rig_stop(&r);
	assert_non_null(strstr(rig_log, "energy 21472.6"));
}

static void energy_follows_the_timestamps_not_the_count(void **state)
{
	struct rig r;
	double v[] = { 10, 2 };

	(void)state;
	rig_start(&r, "{ type = \"ebm\"; add_signal = true; phases = ( ( 0, 1 ) ); }",
		  "\"2f\"");
	rig_push(&r, START, v, 2);
	assert_near(r.got->data[2].f, 0, 0);
	rig_push(&r, START + 500000000, v, 2);
	assert_near(r.got->data[2].f, 10, 1e-14);
	/* The trapezoid between 20 W and 60 W. */
	v[0] = 30;
	rig_push(&r, START + 1500000000, v, 2);
	assert_near(r.got->data[2].f, 50, 1e-14);
	/* Back in time: not counted, and said. */
	rig_push(&r, START, v, 2);
	assert_near(r.got->data[2].f, 50, 1e-14);
	assert_non_null(strstr(rig_log, "before the last one"));
	/* What is no number is left out. */
	v[0] = (double)NAN;
	rig_push(&r, START + 500000000, v, 2);
	assert_near(r.got->data[2].f, 50, 1e-14);
	v[0] = 30;
	rig_push(&r, START + 1000000000, v, 2);
	assert_near(r.got->data[2].f, 110, 1e-13);
	r.flags = SAMPLE_NEW_SIMULATION;
	rig_push(&r, START + 2000000000, v, 2);
	assert_near(r.got->data[2].f, 0, 0);
	rig_stop(&r);
}

static void samples_pass_ebm_unchanged(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"ebm\"; phases = ( ( 0, 1 ) ); }", "\"2f\"");
	assert_true(rig_push(&r, START, (double[]){ 4, 5 }, 2));
	assert_int_equal(r.got->length, 2);
	assert_near(r.got->data[1].f, 5, 0);
	assert_ptr_equal(r.out, r.in);
	rig_stop(&r);
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	rig_refuses("{ type = \"power\"; pairings = ( { voltage = 0; current = 1; } ); }",
		    "\"2f\"", "window_size");
	rig_refuses("{ type = \"power\"; window_size = 2; pairings = ( ); }",
		    "\"2f\"", "pairings");
	rig_refuses("{ type = \"power\"; window_size = 2; pairings = ( { voltage = 0; curent = 1; } ); }",
		    "\"2f\"", "current");
	rig_refuses("{ type = \"power\"; window_size = 2; pairings = ( { voltage = \"u\"; current = \"x\"; } ); }",
		    "( { name = \"u\"; }, { name = \"i\"; } )", "no signal 'x'");
	rig_refuses("{ type = \"power\"; window_size = 2; pairings = ( { voltage = 0; current = 2; } ); }",
		    "\"2f\"", "no signal with index 2");
	rig_refuses("{ type = \"power\"; window_size = 2; active_power = false; reactive_power = false; apparent_power = false; cos_phi = false; pairings = ( { voltage = 0; current = 1; } ); }",
		    "\"2f\"", "switched off");
	rig_refuses("{ type = \"power\"; window_size = 2; pairings = ( { voltage = 0; current = 1; } ); }",
		    "\"1f1c\"", "complex");
	rig_refuses("{ type = \"ebm\"; }", "\"2f\"", "phases");
	rig_refuses("{ type = \"ebm\"; phases = ( ( 0 ) ); }", "\"2f\"",
		    "entry 0");
	rig_refuses("{ type = \"ebm\"; phases = ( ( 0, 7 ) ); }", "\"2f\"",
		    "index 7");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(powers_are_those_of_two_tones_with_a_known_angle),
		cmocka_unit_test(powers_need_no_room_for_their_squares),
		cmocka_unit_test(of_no_number_comes_no_number),
		cmocka_unit_test(in_phase_there_is_no_reactive_power_below_rounding),
		cmocka_unit_test(a_third_harmonic_is_apparent_but_not_active),
		cmocka_unit_test(several_pairs_have_their_names),
		cmocka_unit_test(the_timestamp_is_of_the_sample_that_alignment_says),
		cmocka_unit_test(a_restart_of_the_source_empties_the_window),
		cmocka_unit_test(a_sample_that_is_dropped_is_in_no_window),
		cmocka_unit_test(energy_of_whole_periods_is_mean_power_times_time),
		cmocka_unit_test(energy_follows_the_timestamps_not_the_count),
		cmocka_unit_test(samples_pass_ebm_unchanged),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
