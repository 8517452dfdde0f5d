/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The hooks pmu and ip-dft-pmu on tones, ramps and harmonics.
 *
 * Bounds. A single tone is explained exactly, so what remains is rounding: a
 * phasor is right to 3e-15 of the amplitude (see dft.c), which is 3e-15 rad.
 * With a period of T = 0.02 s between two of three phasors:
 *	frequency  2 * 3e-15 / (2 pi 2 T)  = 2.4e-14 Hz, and that of 50 Hz itself, 7e-15
 *	rocof      4 * 3e-15 / (2 pi T^2)  = 4.8e-12 Hz/s
 * The signal's own samples are sin() of a phase of up to 2000 rad, right to
 * 2.3e-13 rad: that dominates and gives the bounds below.
 */
#include "rig.h"

#define TONE_PHASE 1e-12          /* rad; relative amplitude */
#define TONE_FREQUENCY 1e-11      /* Hz */
#define TONE_ROCOF 1e-9           /* Hz/s */

#define RATE 10000
#define STEP_NS 100000
#define START INT64_C(1700000000000000000)

struct tone {
	double amplitude, frequency, phase, rocof;
};

/* Phase of a tone or a ramp `t` seconds after START. */
static double phase_at(const struct tone *o, double t)
{
	return o->phase + 2 * M_PI * (o->frequency * t + o->rocof * t * t / 2);
}

static double wrapped(double a)
{
	return a - 2 * M_PI * rint(a / (2 * M_PI));
}

static double seconds_of(const struct sample *s)
{
	return (double)((int64_t)timespec_to_ns(s->origin) - START) * 1e-9;
}

struct bounds {
	double frequency, amplitude, phase, rocof;
};

/* Runs a tone through the hooks; each report is compared with what it is at the
 * report's own timestamp. Returns how many there were. */
static unsigned check_tone(const char *hooks, const struct tone *o,
			   const struct bounds *b, unsigned samples)
{
	struct rig r;
	unsigned reports = 0;

	rig_start(&r, hooks, "( { name = \"u\"; unit = \"V\"; } )");
	for (unsigned n = 0; n < samples; n++) {
		double t = (double)n / RATE, at;

		if (!rig_push1(&r, START + (int64_t)n * STEP_NS,
			       o->amplitude * cos(phase_at(o, t))))
			continue;
		reports++;
		at = seconds_of(r.got);
		assert_int_equal(r.got->length, 4);
		assert_near(r.got->data[0].f, o->frequency + o->rocof * at,
			    b->frequency);
		assert_near(r.got->data[1].f, o->amplitude * M_SQRT1_2,
			    b->amplitude * o->amplitude);
		assert_near(wrapped(r.got->data[2].f - phase_at(o, at)), 0,
			    b->phase);
		assert_near(r.got->data[3].f, o->rocof, b->rocof);
	}
	rig_stop(&r);
	return reports;
}

static const struct bounds exact = { TONE_FREQUENCY, TONE_PHASE, TONE_PHASE,
				     TONE_ROCOF };
static const double frequencies[] = { 50, 49.2, 51.7, 45, 55 };

static void a_tone_is_found_exactly_on_and_off_the_nominal_frequency(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		struct tone o = { 325, frequencies[i], 0.4, 0 };

		assert_int_equal(
			check_tone("{ type = \"pmu\"; signal = \"u\"; sample_rate = 10000; dft_rate = 50; nominal_freq = 50; }",
				   &o, &exact, 10000),
			/* In the middle of 0.06 s: from 0.04 to 0.96 s. */
			47);
	}
}

/* How many periods a window function needs before what it lets through of the
 * negative frequency is small. */
static const struct {
	const char *name;
	unsigned periods;
} windows[] = { { "none", 1 }, { "hann", 2 }, { "hamming", 2 },
		{ "blackman", 3 }, { "nuttal", 4 }, { "flattop", 5 } };

static void every_window_finds_it_exactly(void **state)
{
	static const char *const kinds[] = { "pmu", "ip-dft-pmu" };

	(void)state;
	for (unsigned w = 0; w < 6; w++) {
		for (unsigned k = 0; k < 2; k++) {
			for (unsigned i = 0; i < 3; i++) {
				struct tone o = { 325, frequencies[i], -2, 0 };
				/* ip-dft-pmu: rocof is a difference over 20 ms. */
				struct bounds b = { TONE_FREQUENCY, TONE_PHASE,
						    TONE_PHASE,
						    k ? 2 * TONE_FREQUENCY / 0.02 :
							TONE_ROCOF };
				char hooks[400];

				snprintf(hooks, sizeof(hooks),
					 "{ type = \"%s\"; signal = \"u\"; sample_rate = 10000; dft_rate = 50; nominal_freq = 50.0; number_plc = %u.0; window_type = \"%s\"; %s }",
					 kinds[k], k ? 2 * windows[w].periods :
						       windows[w].periods,
					 windows[w].name,
					 k ? "estimation_range = 5.0;" : "");
				assert_true(check_tone(hooks, &o, &b, 6000) > 15);
			}
		}
	}
}

static void sixty_hertz_with_no_whole_number_of_samples(void **state)
{
	struct tone o = { 170, 59.7, 1, 0 };

	(void)state;
	assert_true(check_tone("{ type = \"pmu\"; signal = \"u\"; sample_rate = 10000; dft_rate = 60; nominal_freq = 60; number_plc = 2; }",
			       &o, &exact, 5000) > 20);
	assert_true(check_tone("{ type = \"ip-dft-pmu\"; signal = \"u\"; sample_rate = 10000; dft_rate = 60; nominal_freq = 60; number_plc = 4; window_type = \"hann\"; estimation_range = 3; }",
			       &o, &(struct bounds){ TONE_FREQUENCY, TONE_PHASE,
						     TONE_PHASE,
						     120 * TONE_FREQUENCY },
			       5000) > 20);
}

/*
 * The ramp test of synchrophasor standards, 1 Hz/s from 48 to 52 Hz. Within a
 * window of T = 20 ms the frequency is not constant, which the model of a tone
 * does not know: the phase bends away from it by x (2 t / T)^2 with
 * x = pi R (T / 2)^2 = 3.14e-4 rad. To the first order in x, a phasor is
 *	turned by x / 3 (the mean of the bend), the same in all three: that is the
 *	error of the phase, 1.05e-4 rad;
 *	moved by the negative frequency's part of the bend, x times half the
 *	integral of u^2 cos(a u) from -1 to 1 with a = pi (f + 50) T, which is
 *	sin(a) / a + 2 cos(a) / a^2 - 2 sin(a) / a^3 = 0.067 at most (at 52 Hz), so
 *	by 2.1e-5 of the amplitude.
 * The latter turns by 4 pi f T from phasor to phasor, that is, but for whole
 * turns, by d = 4 pi |f - 50| T = 0.50 rad at the ends of the ramp. So
 *	frequency  2.1e-5 * 2 sin(d) / (2 pi 2 T)         = 8.0e-5 Hz
 *	rocof      2.1e-5 * 4 sin(d / 2)^2 / (2 pi T^2)   = 2.0e-3 Hz/s
 * (Standards allow 0.01 Hz and 0.4 Hz/s for class P.)
 */
static void a_ramp_of_one_hertz_per_second(void **state)
{
	static const double rocofs[] = { 1, -1 };

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		struct tone o = { 100, 50 - 2 * rocofs[i], 0.1, rocofs[i] };
		struct bounds b = { 8.1e-5, 2.2e-5, 1.27e-4, 2.1e-3 };

		assert_true(check_tone("{ type = \"pmu\"; signal = \"u\"; sample_rate = 10000; dft_rate = 50; nominal_freq = 50; }",
				       &o, &b, 40000) > 190);
	}
}

/* Left and right are far from the middle of the windows: the phase is carried
 * there with the frequency and its rate of change. */
static void time_and_phase_are_of_the_sample_that_alignment_says(void **state)
{
	static const char *const aligns[] = { "left", "center", "right" };
	/* Three periods make the span: 600 samples. */
	static const unsigned at[] = { 599, 299, 0 };

	(void)state;
	for (unsigned i = 0; i < 3; i++) {
		struct tone o = { 325, 50.3, 0.4, 0 };
		/* Far from the middle the frequency's error turns the phase:
		 * 2 pi 0.04 s times it. */
		struct bounds difference = { TONE_FREQUENCY, TONE_PHASE,
					     TONE_PHASE + 0.26 * TONE_FREQUENCY,
					     20 * TONE_FREQUENCY };
		struct rig r;
		char hooks[300], ip_dft[300];
		int64_t first = -1, newest = 0;

		snprintf(hooks, sizeof(hooks),
			 "{ type = \"pmu\"; signal = \"u\"; sample_rate = 10000; dft_rate = 10; nominal_freq = 50; timestamp_align = \"%s\"; }",
			 aligns[i]);
		assert_int_equal(check_tone(hooks, &o, &exact, 10000),
				 i == 0 ? 10 : 9);
		snprintf(ip_dft, sizeof(ip_dft),
			 "{ type = \"ip-dft-pmu\"; signal = \"u\"; sample_rate = 10000; dft_rate = 10; nominal_freq = 50; number_plc = 4; window_type = \"hann\"; estimation_range = 2; timestamp_align = \"%s\"; }",
			 aligns[i]);
		assert_in_range(check_tone(ip_dft, &o, &difference, 10000), 8, 9);
		/* Which sample brought it, and which one it is of. */
		rig_start(&r, hooks, "( { name = \"u\"; } )");
		for (unsigned n = 0; n < 3000 && first < 0; n++)
			if (rig_push1(&r, newest = START + (int64_t)n * STEP_NS, 1))
				first = (int64_t)timespec_to_ns(r.got->origin);
		assert_int_equal((newest - first) / STEP_NS, at[i]);
		/* Reports are of whole tenths of a second. */
		assert_int_equal(first % 100000000, 0);
		rig_stop(&r);
	}
}

static void reports_are_at_whole_instants_though_stamps_are_rounded(void **state)
{
	struct rig r;
	unsigned reports = 0;

	(void)state;
	/* Sixtieths of a second, cut off to whole nanoseconds: two thirds of
	 * them lie just before the instant they are meant for. */
	rig_start(&r, "{ type = \"pmu\"; signal = 0; sample_rate = 30000; dft_rate = 60; nominal_freq = 60; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 60000; n++) {
		int64_t t = START + (int64_t)n * INT64_C(1000000000) / 30000;
		int64_t off;

		if (!rig_push1(&r, t, cos(2 * M_PI * 60 * n / 30000)))
			continue;
		/* In sixtieths of a nanosecond. */
		off = (int64_t)r.got->origin.tv_nsec * 60 % INT64_C(1000000000);
		assert_true(off == 0 || off >= INT64_C(1000000000) - 60);
		reports++;
	}
	/* The middle is 750 samples from both ends: from 2/60 to 118/60 s. */
	assert_int_equal(reports, 117);
	rig_stop(&r);
}

static void a_negative_rate_is_seconds_per_report(void **state)
{
	struct rig r;
	unsigned reports = 0;

	(void)state;
	rig_start(&r, "{ type = \"pmu\"; signal = 0; sample_rate = 1000; dft_rate = -2; nominal_freq = 50; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 9000; n++) {
		if (!rig_push1(&r, START + (int64_t)n * 1000000, 1))
			continue;
		assert_int_equal(r.got->origin.tv_sec % 2, 0);
		assert_int_equal(r.got->origin.tv_nsec, 0);
		reports++;
	}
	assert_int_equal(reports, 4);
	rig_stop(&r);
}

static void names_units_and_offsets_are_as_configured(void **state)
{
	struct rig r;
	double v[2] = { 0, 0 };

	(void)state;
	rig_start(&r, "{ type = \"pmu\"; signals = ( \"i\", \"u\" ); sample_rate = 1000; dft_rate = 50; nominal_freq = 50; angle_unit = \"degree\"; phase_offset = 10.0; amplitude_offset = 0.5; frequency_offset = -1; rocof_offset = 2; }",
		  "( { name = \"u\"; unit = \"V\"; }, { name = \"i\"; unit = \"A\"; } )");
	assert_int_equal(r.out->count, 8);
	assert_signal(&r, 0, "frequency_i", "Hz");
	assert_signal(&r, 1, "amplitude_i", "A");
	assert_signal(&r, 2, "phase_i", "deg");
	assert_signal(&r, 3, "rocof_i", "Hz/s");
	assert_signal(&r, 5, "amplitude_u", "V");
	for (unsigned n = 0; n < 200 && !r.got; n++) {
		v[0] = cos(2 * M_PI * n / 20);
		v[1] = 2 * sin(2 * M_PI * n / 20);
		rig_push(&r, START + n * 1000000, v, 2);
	}
	assert_non_null(r.got);
	assert_near(r.got->data[0].f, 49, 1e-10);
	assert_near(r.got->data[1].f, M_SQRT2 + 0.5, 1e-12);
	assert_near(r.got->data[2].f, -90 + 10, 1e-10);
	assert_near(r.got->data[3].f, 2, 1e-8);
	assert_near(r.got->data[6].f, 10, 1e-10);
	rig_stop(&r);

	rig_start(&r, "{ type = \"pmu\"; signal = 0; sample_rate = 1000; add_channel_name = false; }",
		  "\"1f\"");
	assert_signal(&r, 0, "frequency", "Hz");
	assert_signal(&r, 2, "phase", "rad");
	rig_stop(&r);
}

/* At the nominal frequency harmonics fall on zeros of the window: rounding. */
static void harmonics_do_not_matter_at_the_nominal_frequency(void **state)
{
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"pmu\"; signal = 0; sample_rate = 10000; dft_rate = 50; nominal_freq = 50; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 3000; n++) {
		double x = 2 * M_PI * n / 200;

		if (!rig_push1(&r, START + n * STEP_NS,
			       100 * cos(x) + 10 * sin(3 * x) + 5 * cos(5 * x) + 7))
			continue;
		assert_near(r.got->data[0].f, 50, TONE_FREQUENCY);
		assert_near(r.got->data[1].f, 100 * M_SQRT1_2, 100 * TONE_PHASE);
		assert_near(r.got->data[3].f, 0, TONE_ROCOF);
	}
	rig_stop(&r);
}

static void numbers_of_32_bits_that_wrap_are_no_hole(void **state)
{
	struct tone o = { 1, 50.2, 0, 0 };
	struct rig r;

	(void)state;
	rig_start(&r, "{ type = \"pmu\"; signal = 0; sample_rate = 10000; dft_rate = 10000; nominal_freq = 50; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 2000; n++) {
		r.sequence = (uint32_t)(UINT32_MAX - 999 + n);
		assert_int_equal(rig_push1(&r, START + n * STEP_NS,
					   cos(phase_at(&o, (double)n / RATE))),
				 n >= 599);
	}
	rig_stop(&r);
}

static void a_hole_or_a_restart_begins_a_new_window(void **state)
{
	struct tone o = { 1, 50.2, 0, 0 };
	struct rig r;
	unsigned reports = 0, after = 0;

	(void)state;
	rig_start(&r, "{ type = \"pmu\"; signal = 0; sample_rate = 10000; dft_rate = 10000; nominal_freq = 50; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 4000; n++) {
		/* 1000 samples are lost; later the source begins anew. */
		unsigned m = n < 1500 ? n : n + 1000;

		if (n == 1500)
			r.sequence += 1000;
		if (n == 3000) {
			r.flags = SAMPLE_NEW_SIMULATION;
			r.sequence = 0;
			o.phase = 2;
		}
		if (!rig_push1(&r, START + m * STEP_NS,
			       cos(phase_at(&o, (double)m / RATE)))) {
			assert_true(n < 599 || (n >= 1500 && n < 2099) ||
				    (n >= 3000 && n < 3599));
			continue;
		}
		/* What was in the window before would make these wrong. */
		assert_near(r.got->data[0].f, 50.2, TONE_FREQUENCY);
		assert_near(r.got->data[1].f, M_SQRT1_2, TONE_PHASE);
		assert_int_equal(!!(r.got->flags & SAMPLE_NEW_SIMULATION),
				 n >= 3000 && !after);
		after += n >= 3000;
		reports++;
	}
	assert_int_equal(reports, 4000 - 3 * 599);
	assert_non_null(strstr(rig_log, "begins a new window"));
	rig_stop(&r);
}

/* A hook before may leave out all but each n-th sample: that is no hole. */
static void sequence_numbers_may_have_a_constant_step(void **state)
{
	struct rig r;
	unsigned reports = 0;

	(void)state;
	rig_start(&r, "{ type = \"pmu\"; signal = 0; sample_rate = 1000; dft_rate = 50; nominal_freq = 50; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 1000; n++) {
		r.sequence += 9;
		reports += rig_push1(&r, START + n * 1000000,
				     cos(2 * M_PI * n / 20));
	}
	assert_true(reports > 40);
	rig_stop(&r);
}

static void four_million_samples_do_not_drift(void **state)
{
	struct tone o = { 1, 49.9, 0, 0 };
	struct rig r;
	unsigned n;

	(void)state;
	rig_start(&r, "{ type = \"pmu\"; signal = 0; sample_rate = 1000; dft_rate = 1; nominal_freq = 50; }",
		  "\"1f\"");
	/* More than an hour. A table holds the tone, whose period is 10 s. */
	static double table[10000];
	for (n = 0; n < 10000; n++)
		table[n] = cos(phase_at(&o, n / 1000.0));
	for (n = 0; n < 4000000; n++) {
		if (!rig_push1(&r, START + (int64_t)n * 1000000,
			       table[n % 10000]) || n < 3990000)
			continue;
		assert_near(r.got->data[0].f, 49.9, TONE_FREQUENCY);
		assert_near(r.got->data[1].f, M_SQRT1_2, TONE_PHASE);
		assert_near(r.got->data[3].f, 0, TONE_ROCOF);
	}
	rig_stop(&r);
}

static void what_lies_beyond_the_range_is_said(void **state)
{
	struct rig r;
	unsigned reports = 0;

	(void)state;
	rig_start(&r, "{ type = \"ip-dft-pmu\"; signal = 0; sample_rate = 10000; dft_rate = 50; nominal_freq = 50; number_plc = 5; window_type = \"hann\"; estimation_range = 2; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 6000; n++)
		reports += rig_push1(&r, START + n * STEP_NS,
				     cos(2 * M_PI * 57 * n / RATE));
	assert_true(reports > 10);
	assert_non_null(strstr(rig_log, "no tone within 2 Hz of 50 Hz"));
	rig_stop(&r);
}

static void samples_without_timestamps_are_counted(void **state)
{
	struct rig r;
	unsigned reports = 0;

	(void)state;
	rig_start(&r, "{ type = \"pmu\"; signal = 0; sample_rate = 1000; dft_rate = 10; nominal_freq = 50; }",
		  "\"1f\"");
	for (unsigned n = 0; n < 1000; n++) {
		struct sample *s = sample_alloc(&r.pool);

		s->flags = SAMPLE_HAS_DATA;
		s->length = 1;
		s->data[0].f = cos(2 * M_PI * n / 20);
		if (!hook_list_process(r.hooks, &s, 1))
			continue;
		assert_false(s->flags & SAMPLE_HAS_ORIGIN);
		assert_near(s->data[0].f, 50, 1e-10);
		sample_put(s);
		reports++;
	}
	assert_in_range(reports, 9, 10);
	rig_stop(&r);
}

static void what_makes_no_sense_is_refused(void **state)
{
	(void)state;
	rig_refuses("{ type = \"pmu\"; signal = 0; }", "\"1f\"", "sample_rate");
	rig_refuses("{ type = \"pmu\"; signal = 0; sample_rate = 100; }", "\"1f\"",
		    "expected 200 or more");
	rig_refuses("{ type = \"pmu\"; signal = 0; sample_rate = 1000; dft_rate = 0; }",
		    "\"1f\"", "0 is no rate");
	rig_refuses("{ type = \"pmu\"; signal = 0; sample_rate = 1000; window_type = \"hanning\"; }",
		    "\"1f\"", "window_type");
	rig_refuses("{ type = \"pmu\"; signal = 0; sample_rate = 1000; }", "\"1c\"",
		    "complex");
	rig_refuses("{ type = \"ip-dft-pmu\"; signal = 0; sample_rate = 1000; }",
		    "\"1f\"", "estimation_range");
	rig_refuses("{ type = \"ip-dft-pmu\"; signal = 0; sample_rate = 1000; estimation_range = 50; }",
		    "\"1f\"", "reach down to 0 Hz");
	rig_refuses("{ type = \"ip-dft-pmu\"; signal = 0; sample_rate = 200; number_plc = 0.5; estimation_range = 1; }",
		    "\"1f\"", "no three values");
	rig_refuses("{ type = \"ip-dft-pmu\"; signal = 0; sample_rate = 1000000; number_plc = 10000; estimation_range = 10; }",
		    "\"1f\"", "possible are");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tone_is_found_exactly_on_and_off_the_nominal_frequency),
		cmocka_unit_test(every_window_finds_it_exactly),
		cmocka_unit_test(sixty_hertz_with_no_whole_number_of_samples),
		cmocka_unit_test(a_ramp_of_one_hertz_per_second),
		cmocka_unit_test(time_and_phase_are_of_the_sample_that_alignment_says),
		cmocka_unit_test(reports_are_at_whole_instants_though_stamps_are_rounded),
		cmocka_unit_test(a_negative_rate_is_seconds_per_report),
		cmocka_unit_test(names_units_and_offsets_are_as_configured),
		cmocka_unit_test(harmonics_do_not_matter_at_the_nominal_frequency),
		cmocka_unit_test(a_hole_or_a_restart_begins_a_new_window),
		cmocka_unit_test(sequence_numbers_may_have_a_constant_step),
		cmocka_unit_test(numbers_of_32_bits_that_wrap_are_no_hole),
		cmocka_unit_test(four_million_samples_do_not_drift),
		cmocka_unit_test(what_lies_beyond_the_range_is_said),
		cmocka_unit_test(samples_without_timestamps_are_counted),
		cmocka_unit_test(what_makes_no_sense_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
