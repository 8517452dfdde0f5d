/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hook pmu_dft. Unless said otherwise: 1000 samples per second, a window of
 * one second (so frequencies 1 Hz apart are told apart), a spectrum with a value
 * every 0.1 Hz.
 */
#include "rig.h"

#define START INT64_C(1700000000000000000)
#define STEP_NS 1000000

/* As users' files spell the keys. */
#define COMMON                                                          \
	"type = \"pmu_dft\"; signals = ( \"u\" ); sample_rate = 1000; " \
	"dft_rate = 1; start_freqency = 48.0; end_freqency = 52.0; "    \
	"frequency_resolution = 0.1; "
#define SIGNALS "( { name = \"u\"; unit = \"V\"; } )"

struct bounds {
	double frequency, amplitude, phase;
};

/* Reports of a tone of 325 V are within `b` of `frequency`, the amplitude times
 * `shown`, and the phase of the tone at the timestamp. */
static void check(const char *hook, double tone, double frequency, double shown,
		  const struct bounds *b)
{
	struct rig r;
	unsigned reports = 0;

	rig_start(&r, hook, SIGNALS);
	assert_int_equal(r.out->count, 4);
	assert_signal(&r, 1, "amplitude_u", "V");
	for (unsigned n = 0; n < 6000; n++) {
		double phase = 0.3 + 2 * M_PI * tone * n / 1000, at;

		if (!rig_push1(&r, START + (int64_t)n * STEP_NS,
			       325 * cos(phase)))
			continue;
		reports++;
		at = ((double)timespec_to_ns(r.got->origin) - START) * 1e-9;
		assert_near(r.got->data[0].f, frequency, b->frequency);
		assert_near(r.got->data[1].f / (325 * M_SQRT1_2), shown,
			    b->amplitude);
		at = r.got->data[2].f - 0.3 - 2 * M_PI * tone * at;
		assert_near(at - 2 * M_PI * rint(at / (2 * M_PI)), 0, b->phase);
		/* Two reports are a second apart. */
		assert_near(r.got->data[3].f, 0, 2 * b->frequency);
	}
	assert_in_range(reports, 4, 5);
	rig_stop(&r);
}

/* Without an estimate: the nearest frequency, and the height there. A hann
 * window's is sinc(d) / (1 - d^2) at d bins; at 100 bins, where the negative
 * frequency is, less than 1 / (pi 100^3). The phase swings by the latter. */
static void without_an_estimate_it_is_the_nearest_of_the_spectrum(void **state)
{
	double d = 0.04, shown = sin(M_PI * d) / (M_PI * d) / (1 - d * d);
	struct bounds b = { 1e-12, 3.2e-7, 3.3e-7 };

	(void)state;
	check("{ " COMMON "window_type = \"hann\"; }", 49.5, 49.5, 1, &b);
	/* 49.54 is shown as 49.5, whose phase turns differently: the phase is
	 * right in the middle only, where the timestamp is. */
	check("{ " COMMON "window_type = \"hann\"; padding_type = \"zero\"; }",
	      49.54, 49.5, shown, &b);
}

/*
 * A parabola through heights 1 - a x^2 + b x^4 at -s, 0, s from the largest of
 * the grid, which is p away: its vertex is off by p (b / a) (4 p^2 - s^2), at
 * most 0.193 (b / a) s^3. For a hann window a = pi^2 / 6 - 1, b = pi^4 / 120 -
 * pi^2 / 6 + 1: b / a = 0.26, so 5.0e-5 Hz for s = 0.1. What the negative
 * frequency adds, 3.2e-7, moves it by at most 3.2e-7 / (2 a s) = 2.5e-6 Hz.
 */
static void a_parabola_is_right_to_its_known_error(void **state)
{
	struct bounds b = { 5.3e-5, 2e-5, 1e-6 };

	(void)state;
	for (double f = 49.5; f < 49.61; f += 0.0125)
		check("{ " COMMON "window_type = \"hann\"; estimate_type = \"quadratic\"; }",
		      f, f, 1, &b);
	check("{ " COMMON "window_type = \"hann\"; frequency_estimate_type = \"quadratic\"; }",
	      50.03, 50.03, 1, &b);
}

/* A tone is explained exactly. Samples are right to 4e-13 (a phase of 1900 rad);
 * the frequency is a fit over 1 s of phase. */
static void interpolation_is_exact(void **state)
{
	static const char *const windows[] = { "none", "hann", "hamming",
					       "blackman", "nuttal", "flattop" };
	struct bounds b = { 1e-11, 1e-12, 2e-12 };
	char hook[600];

	(void)state;
	for (unsigned w = 0; w < 6; w++) {
		for (unsigned i = 0; i < 3; i++) {
			double f = (double[]){ 49.5, 50.0, 50.46 }[i];

			snprintf(hook, sizeof(hook),
				 "{ %s window_type = \"%s\"; estimate_type = \"ipdft\"; }",
				 COMMON, windows[w]);
			check(hook, f, f, 1, &b);
		}
	}
}

/* Repeating the window makes only whole multiples of 1 Hz stand out. */
static void repeating_the_signal_keeps_to_the_window_s_own_frequencies(void **state)
{
	double d = 0.1, shown = sin(M_PI * d) / (M_PI * d) / (1 - d * d);
	struct bounds b = { 1e-12, 3.2e-7, 3.3e-7 };

	(void)state;
	check("{ " COMMON "window_type = \"hann\"; padding_type = \"signal_repeat\"; }",
	      49.9, 50, shown, &b);
}

static void a_longer_window_overlaps_and_alignment_follows_it(void **state)
{
	static const char *const aligns[] = { "left", "center", "right" };
	static const int64_t behind[] = { 299, 149, 0 };

	(void)state;
	for (unsigned a = 0; a < 3; a++) {
		struct rig r;
		char hook[500];
		unsigned reports = 0;

		snprintf(hook, sizeof(hook),
			 "{ type = \"pmu_dft\"; signal = 0; sample_rate = 1000; dft_rate = 10; window_size_factor = 3; start_frequency = 40; end_frequency = 60; frequency_resolution = 1; estimate_type = \"ipdft\"; add_channel_name = false; timestamp_align = \"%s\"; angle_unit = \"degree\"; }",
			 aligns[a]);
		rig_start(&r, hook, "\"1f\"");
		assert_signal(&r, 0, "frequency", "Hz");
		assert_signal(&r, 2, "phase", "deg");
		for (int64_t n = 0; n < 2000; n++) {
			int64_t t = START + n * STEP_NS, at;

			if (!rig_push1(&r, t, cos(2 * M_PI * 50 * (double)n / 1000)))
				continue;
			reports++;
			at = (int64_t)timespec_to_ns(r.got->origin);
			assert_int_equal(t - at, behind[a] * STEP_NS);
			/* 50 Hz: each tenth of a second has the same phase. */
			assert_int_equal(at % 100000000, 0);
			assert_near(r.got->data[2].f, 0, 1e-9);
		}
		assert_in_range(reports, 16, 18);
		rig_stop(&r);
	}
}

static void the_rate_of_change_is_that_since_the_last_report(void **state)
{
	struct rig r;
	double last = 0;

	(void)state;
	rig_start(&r, "{ type = \"pmu_dft\"; signal = 0; sample_rate = 1000; dft_rate = 5; start_frequency = 40; end_frequency = 60; frequency_resolution = 1; window_type = \"hann\"; estimate_type = \"ipdft\"; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 4000; n++) {
		double t = n / 1000.0, at;

		if (!rig_push1(&r, START + (int64_t)n * STEP_NS,
			       cos(2 * M_PI * (49 * t + 0.25 * t * t))))
			continue;
		at = ((double)timespec_to_ns(r.got->origin) - START) * 1e-9;
		/* The bend, pi 0.5 0.1^2 = 1.6e-2 rad towards the ends of the
		 * window, is even, so it does not tilt the phase; what is left
		 * of it at the negative frequency, 20 bins away, is 1e-4 of it:
		 * 2e-6 rad on 0.2 s. */
		assert_near(r.got->data[0].f, 49 + 0.5 * at, 1e-5);
		assert_near(r.got->data[3].f, 0.5, 2e-5 / 0.2);
		if (last > 0)
			assert_near(r.got->data[3].f,
				    (r.got->data[0].f - last) / 0.2, 1e-9);
		last = r.got->data[0].f;
	}
	assert_true(last > 50);
	rig_stop(&r);
}

static void a_peak_at_the_end_of_the_spectrum_is_said(void **state)
{
	struct rig r;
	unsigned reports = 0;

	(void)state;
	rig_start(&r, "{ " COMMON "estimate_type = \"quadratic\"; }", SIGNALS);
	for (unsigned n = 0; n < 4000; n++)
		reports += rig_push1(&r, START + (int64_t)n * STEP_NS,
				     cos(2 * M_PI * 52.3 * n / 1000));
	assert_true(reports > 1);
	assert_non_null(strstr(rig_log, "at the end of the spectrum"));
	rig_stop(&r);
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	rig_refuses("{ " COMMON "start_frequency = 47; }", SIGNALS,
		    "stands beside `start_frequency`");
	rig_refuses("{ type = \"pmu_dft\"; signal = 0; sample_rate = 1000; frequency_resolution = 1; end_freqency = 50; }",
		    SIGNALS, "start_frequency is missing");
	rig_refuses("{ type = \"pmu_dft\"; signal = 0; sample_rate = 1000; start_frequency = 49; end_frequency = 51; }",
		    SIGNALS, "frequency_resolution");
	rig_refuses("{ type = \"pmu_dft\"; signal = 0; sample_rate = 1000; start_frequency = 49; end_frequency = 51; frequency_resolution = 2; }",
		    SIGNALS, "more than the window tells apart");
	rig_refuses("{ type = \"pmu_dft\"; signal = 0; sample_rate = 1000; start_frequency = 49; end_frequency = 500; frequency_resolution = 1; }",
		    SIGNALS, "below half the sample rate");
	rig_refuses("{ type = \"pmu_dft\"; signal = 0; sample_rate = 1000; start_frequency = 1; end_frequency = 400; frequency_resolution = 0.01; }",
		    SIGNALS, "frequencies, possible are");
	rig_refuses("{ " COMMON "pps_index = 2; }", SIGNALS,
		    "names the signal of a debugging dump");
	rig_refuses("{ " COMMON "estimate_type = \"cubic\"; }", SIGNALS,
		    "estimate_type");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_estimate_it_is_the_nearest_of_the_spectrum),
		cmocka_unit_test(a_parabola_is_right_to_its_known_error),
		cmocka_unit_test(interpolation_is_exact),
		cmocka_unit_test(repeating_the_signal_keeps_to_the_window_s_own_frequencies),
		cmocka_unit_test(a_longer_window_overlaps_and_alignment_follows_it),
		cmocka_unit_test(the_rate_of_change_is_that_since_the_last_report),
		cmocka_unit_test(a_peak_at_the_end_of_the_spectrum_is_said),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
