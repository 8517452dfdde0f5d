/* SPDX-License-Identifier: BSD-2-Clause */
/* The simulated short circuit against the theory of phasors. */
#include "bench/fault_sim.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void start(struct fault_sim *s, const struct fault_sim_parameters *p)
{
	const char *why;

	assert_int_equal(fault_sim_init(s, p, &why), 0);
}

/* Amplitude of value `index` at the line's frequency over `periods`. */
static double amplitude(struct fault_sim *s, unsigned index, unsigned periods)
{
	unsigned n = (unsigned)lround(s->p.rate_hz / s->p.frequency_hz) * periods;
	double values[FAULT_VALUES_MAX], re = 0, im = 0;

	for (unsigned i = 0; i < n; i++) {
		double x = 2 * M_PI * s->p.frequency_hz * i / s->p.rate_hz;

		fault_sim_next(s, values);
		re += values[index] * cos(x);
		im += values[index] * sin(x);
	}
	return 2 * hypot(re, im) / n;
}

static void advance(struct fault_sim *s, double seconds)
{
	double values[FAULT_VALUES_MAX];

	for (unsigned n = (unsigned)lround(seconds * s->p.rate_hz); n > 0; n--)
		fault_sim_next(s, values);
}

static void before_the_fault_voltage_and_current_are_the_phasors(void **state)
{
	for (unsigned k = 0; k < 3; k++) {
		struct fault_sim s;

		start(&s, &fault_sim_default);
		assert_true(fabs(amplitude(&s, k, 5) /
				 fault_sim_prefault_voltage(&s) - 1) < 1e-4);
		assert_true(fabs(amplitude(&s, 3 + k, 4) /
				 fault_sim_prefault_current(&s) - 1) < 1e-4);
	}
}

static void it_begins_in_steady_state(void **state)
{
	struct fault_sim s;
	double first[FAULT_VALUES_MAX], later[FAULT_VALUES_MAX];

	start(&s, &fault_sim_default);
	fault_sim_next(&s, first);
	advance(&s, 0.1 - 1 / s.p.rate_hz);
	fault_sim_next(&s, later);
	for (unsigned i = 0; i < 6; i++)
		assert_true(fabs(first[i] - later[i]) <
			    1e-3 * (i < 3 ? fault_sim_prefault_voltage(&s) :
					    fault_sim_prefault_current(&s)));
	/* Three symmetrical phases add up to nothing. */
	assert_true(fabs(first[6]) < 1e-6 * fault_sim_prefault_voltage(&s));
	assert_true(fabs(first[7]) < 1e-6 * fault_sim_prefault_current(&s));
}

static void values_are_those_of_a_110_kv_line(void **state)
{
	struct fault_sim s;

	start(&s, &fault_sim_default);
	/* 110 kV line to line is 89.8 kV line to ground at the peak. */
	assert_true(fault_sim_prefault_voltage(&s) > 85e3 &&
		    fault_sim_prefault_voltage(&s) < 89.9e3);
	/* 40 MW are some 220 A, a fault a few kA. */
	assert_true(fault_sim_prefault_current(&s) > 270 &&
		    fault_sim_prefault_current(&s) < 330);
	assert_true(fault_sim_fault_current(&s) > 3e3 &&
		    fault_sim_fault_current(&s) < 12e3);
}

static void the_fault_current_reaches_its_steady_amplitude(void **state)
{
	struct fault_sim_parameters p = fault_sim_default;

	p.clear_at_s = -1;
	for (unsigned phases = 1; phases < 8; phases++) {
		for (unsigned k = 0; k < 3; k++) {
			struct fault_sim s;
			double expected;

			p.fault_phases = phases;
			start(&s, &p);
			/* Long enough for the direct current to have decayed. */
			advance(&s, 1.2);
			expected = phases >> k & 1 ?
					   fault_sim_fault_current(&s) :
					   fault_sim_prefault_current(&s);
			assert_true(fabs(amplitude(&s, 3 + k, 5) / expected - 1) <
				    1e-3);
		}
	}
}

static void the_breaker_opens_at_current_zero(void **state)
{
	struct fault_sim_parameters p = fault_sim_default;
	double values[FAULT_VALUES_MAX], last[FAULT_VALUES_MAX] = { 0 };
	double opened[3] = { 0 };
	struct fault_sim s;

	p.fault_phases = 7;
	start(&s, &p);
	for (unsigned n = 0; n < 5000; n++) {
		double t = n / p.rate_hz;

		fault_sim_next(&s, values);
		for (unsigned k = 0; k < 3; k++) {
			if (!opened[k] && values[3 + k] == 0 && t > p.clear_at_s) {
				opened[k] = t;
				/* A sample at 10 kHz is 1.8 degrees. */
				assert_true(fabs(last[3 + k]) <
					    0.06 * fault_sim_fault_current(&s));
			}
			if (opened[k])
				assert_true(values[3 + k] == 0);
		}
		memcpy(last, values, sizeof(last));
	}
	for (unsigned k = 0; k < 3; k++) {
		assert_true(opened[k] >= p.clear_at_s &&
			    opened[k] < p.clear_at_s + 0.021);
		/* Behind an open breaker the source stands at the bus. */
		assert_true(fabs(amplitude(&s, k, 5) / s.amplitude_v - 1) < 1e-4);
	}
}

static void the_same_parameters_give_the_same_bits(void **state)
{
	double a[FAULT_VALUES_MAX], b[FAULT_VALUES_MAX];
	struct fault_sim s, t;

	start(&s, &fault_sim_default);
	start(&t, &fault_sim_default);
	for (unsigned n = 0; n < 5000; n++) {
		fault_sim_next(&s, a);
		fault_sim_next(&t, b);
		assert_memory_equal(a, b, sizeof(a));
	}
}

static void impossible_lines_are_refused(void **state)
{
	struct fault_sim_parameters p;
	struct fault_sim s;
	const char *why;

	p = fault_sim_default;
	p.location = 1.5;
	assert_true(fault_sim_init(&s, &p, &why) < 0 && why);
	p = fault_sim_default;
	p.fault_phases = 0;
	assert_true(fault_sim_init(&s, &p, &why) < 0 && why);
	p = fault_sim_default;
	p.rate_hz = NAN;
	assert_true(fault_sim_init(&s, &p, &why) < 0 && why);
	p = fault_sim_default;
	p.load_power_factor = 1.1;
	assert_true(fault_sim_init(&s, &p, &why) < 0 && why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(before_the_fault_voltage_and_current_are_the_phasors),
		cmocka_unit_test(it_begins_in_steady_state),
		cmocka_unit_test(values_are_those_of_a_110_kv_line),
		cmocka_unit_test(the_fault_current_reaches_its_steady_amplitude),
		cmocka_unit_test(the_breaker_opens_at_current_zero),
		cmocka_unit_test(the_same_parameters_give_the_same_bits),
		cmocka_unit_test(impossible_lines_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
