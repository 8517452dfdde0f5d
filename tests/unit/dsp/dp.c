/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hook dp. Phasors are pairs of single precision numbers: right to 2^-24 =
 * 6e-8 of their size.
 */
#include "rig.h"

#define SINGLE 0x1p-24

/* 20 kHz, 50 Hz: 400 samples per period. */
#define COMMON "type = \"dp\"; f0 = 50; rate = 20000; "

static double wave(unsigned n)
{
	double a = 2 * M_PI * (n % 400) / 400;

	return 3 + 10 * cos(a + 0.6) + 4 * cos(3 * a - 1.2) + 2 * cos(5 * a);
}

static void phasors_of_a_periodic_signal_stand_still(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ " COMMON "signal = \"u\"; harmonics = ( 3, 0, 1 ); }",
		  "( { name = \"a\"; unit = \"A\"; }, { name = \"u\"; unit = \"V\"; }, { name = \"b\"; } )");
	assert_int_equal(r.out->count, 5);
	assert_signal(&r, 0, "a", "A");
	assert_signal(&r, 1, "u_harm3", "V");
	assert_signal(&r, 2, "u_harm0", "V");
	assert_signal(&r, 3, "u_harm1", "V");
	assert_signal(&r, 4, "b", NULL);
	assert_int_equal(r.out->signals[2].type, SIGNAL_COMPLEX);
	for (unsigned n = 0; n < 3000; n++) {
		double v[] = { -1.5, wave(n), n };

		assert_true(rig_push(&r, n * 50000, v, 3));
		assert_int_equal(r.got->length, 5);
		assert_near(r.got->data[0].f, -1.5, 0);
		assert_near(r.got->data[4].f, n, 0);
		if (n < 399)
			continue;
		assert_near((double)r.got->data[1].z.re, 2 * cos(-1.2), 2 * SINGLE);
		assert_near((double)r.got->data[1].z.im, 2 * sin(-1.2), 2 * SINGLE);
		assert_near((double)r.got->data[2].z.re, 3, 3 * SINGLE);
		assert_near((double)r.got->data[2].z.im, 0, SINGLE);
		assert_near((double)r.got->data[3].z.re, 5 * cos(0.6), 5 * SINGLE);
		assert_near((double)r.got->data[3].z.im, 5 * sin(0.6), 5 * SINGLE);
	}
	rig_stop(&r);
}

static void the_inverse_restores_the_signal(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ " COMMON "signal = \"u\"; harmonics = ( 0, 1, 3, 5 ); },"
		      "{ " COMMON "signal = \"u_harm0\"; harmonics = ( 0, 1, 3, 5 ); inverse = true; }",
		  "( { name = \"a\"; }, { name = \"u\"; unit = \"V\"; }, { name = \"b\"; } )");
	assert_int_equal(r.out->count, 3);
	assert_signal(&r, 1, "u", "V");
	assert_int_equal(r.out->signals[1].type, SIGNAL_FLOAT);
	for (unsigned n = 0; n < 100000; n++) {
		double v[] = { 1, wave(n), 2 };

		assert_true(rig_push(&r, n * 50000, v, 3));
		assert_int_equal(r.got->length, 3);
		assert_near(r.got->data[0].f, 1, 0);
		assert_near(r.got->data[2].f, 2, 0);
		if (n >= 399)
			/* 3 + 2 (5 + 2 + 1) times single precision. */
			assert_near(r.got->data[1].f, wave(n), 19 * SINGLE);
	}
	rig_stop(&r);
}

static void a_step_takes_one_period(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"dp\"; f0 = 50; dt = 50e-6; signal = 0; harmonics = ( 0 ); }",
		  "\"1f\"");
	for (unsigned n = 0; n < 1000; n++) {
		double part = n < 500 ? 0 : n < 900 ? (n - 499) / 400.0 : 1;

		rig_push1(&r, n * 50000, n < 500 ? 0 : 8);
		assert_near((double)r.got->data[0].z.re, 8 * part, 8 * SINGLE);
	}
	/* The same after a restart. */
	r.flags = SAMPLE_NEW_SIMULATION;
	rig_push1(&r, 0, 8);
	assert_near((double)r.got->data[0].z.re, 8 / 400.0, 8 * SINGLE);
	rig_stop(&r);
}

/* A slow change of amplitude and phase is what the phasor shows, half a period
 * late (the window's middle). */
static void a_modulated_signal_moves_its_phasor(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ " COMMON "signal = 0; harmonics = ( 1 ); }", "\"1f\"");
	for (unsigned n = 0; n < 40000; n++) {
		double t = n / 20000.0, late = (n - 199.5) / 20000;
		/* 0.5 Hz, a tenth: over half a period (0.01 s) the amplitude
		 * bends by 0.1 (2 pi 0.5 0.01)^2 / 2 = 5e-5, a third of which
		 * is in the mean; its slope of 0.31 / s leaks to 50 Hz by
		 * 0.31 / (4 pi 50) = 5e-4. */
		double a = 1 + 0.1 * sin(M_PI * t);
		double now = 1 + 0.1 * sin(M_PI * late);

		rig_push1(&r, n * 50000, a * cos(2 * M_PI * 50 * t));
		if (n >= 399)
			assert_near(2 * hypot((double)r.got->data[0].z.re,
					      (double)r.got->data[0].z.im),
				    now, 2 * 5.5e-4);
	}
	rig_stop(&r);
}

static void two_million_samples_do_not_drift(void **state)
{
	static double table[400];
	struct rig r;

	(void)state;
	for (unsigned n = 0; n < 400; n++)
		table[n] = wave(n);
	rig_start(&r, "{ " COMMON "signal = 0; harmonics = ( 1 ); }", "\"1f\"");
	for (unsigned n = 0; n < 2000000; n++)
		rig_push1(&r, n, table[n % 400]);
	assert_near((double)r.got->data[0].z.re, 5 * cos(0.6), 5 * SINGLE);
	assert_near((double)r.got->data[0].z.im, 5 * sin(0.6), 5 * SINGLE);
	rig_stop(&r);
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	rig_refuses("{ type = \"dp\"; f0 = 50; signal = 0; harmonics = ( 1 ); }",
		    "\"1f\"", "missing; give it or `rate`");
	rig_refuses("{ " COMMON "dt = 5e-5; signal = 0; harmonics = ( 1 ); }",
		    "\"1f\"", "stands beside `rate`");
	rig_refuses("{ " COMMON "signal = 0; harmonics = ( 200 ); }", "\"1f\"",
		    "less than 10000 Hz");
	rig_refuses("{ " COMMON "signal = 0; harmonics = ( -1 ); }", "\"1f\"",
		    "entry 0");
	rig_refuses("{ " COMMON "signal = 0; harmonics = ( ); }", "\"1f\"",
		    "harmonics");
	rig_refuses("{ " COMMON "harmonics = ( 1 ); }", "\"1f\"", "signal");
	rig_refuses("{ " COMMON "signal = 0; harmonics = ( 1, 2 ); inverse = true; }",
		    "\"1c1f\"", "expected a complex one");
	rig_refuses("{ " COMMON "signal = 0; harmonics = ( 1, 2 ); inverse = true; }",
		    "\"1c\"", "2 phasors");
	rig_refuses("{ " COMMON "signal = 0; harmonics = ( 1 ); }", "\"1c\"",
		    "complex");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phasors_of_a_periodic_signal_stand_still),
		cmocka_unit_test(the_inverse_restores_the_signal),
		cmocka_unit_test(a_step_takes_one_period),
		cmocka_unit_test(a_modulated_signal_moves_its_phasor),
		cmocka_unit_test(two_million_samples_do_not_drift),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
