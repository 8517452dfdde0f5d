/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * examples/cosim without real time: the delay is injected in whole steps, so every
 * figure is the same on every machine.
 *
 * The error of the coupled network in steady state is that of the theory to 1e-6 of
 * itself and 1e-10 (what is left of the transient, and rounding), and the coupled
 * network grows exactly where Nyquist's criterion says so.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "couple.h"
#include "theory.h"

#define COUNT 200000

static struct waveform whole, coupled;
static int failures;

__attribute__((format(printf, 2, 3))) static void expect(bool good,
							 const char *fmt, ...)
{
	va_list args;

	if (good)
		return;
	failures++;
	printf("failed: ");
	va_start(args, fmt);
	vprintf(fmt, args);
	va_end(args);
	printf("\n");
}

static double amplitude(const double *a, uint64_t from, uint64_t to)
{
	double sum = 0;

	for (uint64_t k = from; k < to; k++)
		sum += a[k] * a[k];
	return sqrt(2 * sum / (double)(to - from));
}

static void the_undivided_network_obeys_its_phasors(double step_s)
{
	struct network n = network_default;
	double v, i;

	n.step_s = step_s;
	for (int closed = 0; closed < 2; closed++) {
		uint64_t period = (uint64_t)(0.02 / step_s + 0.5);
		uint64_t count = 100 * period;

		n.switch_s = closed ? 0.0 : -1.0;
		couple_undivided(&n, count, &whole);
		theory_steady(&n, closed, &v, &i);
		expect(fabs(amplitude(whole.v, count - 10 * period, count) / v -
			    1) < 1e-9, "voltage at a step of %g", step_s);
		expect(fabs(amplitude(whole.i, count - 10 * period, count) / i -
			    1) < 1e-9, "current at a step of %g", step_s);
	}
}

/* Against the differential equations, integrated by another rule at 1/200 of the
 * step: the error of the trapezoidal rule falls with the square of the step. */
static double distance_from_equations(double step_s)
{
	struct network n = network_default;
	uint64_t count = (uint64_t)(0.24 / step_s);
	int parts = 200;
	double h = step_s / parts, i1 = 0, i2 = 0, vc = 0, worst = 0, v = 0;

	n.step_s = step_s;
	n.rp_ohm = 50; /* makes the equations less stiff */
	n.switch_s = 0.1;
	couple_undivided(&n, count, &whole);
	for (uint64_t k = 0; k + 1 < count; k++) {
		for (int p = 0; p < parts; p++) {
			double t = ((double)k + (double)p / parts) * step_s;
			bool on = t > n.switch_s - 1e-9;
			double g = 1 / n.rload_ohm + on / n.rswitch_ohm;
			double di1, di2, dvc, e, a1 = i1, a2 = i2, ac = vc;

			/* Midpoint rule: a half step, then a whole one with the
			 * slopes of the middle. */
			for (int half = 0; half < 2; half++) {
				e = n.e_v * cos(2 * M_PI * n.frequency_hz *
						(t + half * h / 2));
				v = e - n.r1_ohm * a2 - n.rp_ohm * (a2 - a1);
				di1 = n.rp_ohm * (a2 - a1) / n.l1_h;
				di2 = (v - n.r2_ohm * a2 - ac) / n.l2_h;
				dvc = (a2 - ac * g) / n.c2_f;
				a1 = i1 + di1 * (half ? h : h / 2);
				a2 = i2 + di2 * (half ? h : h / 2);
				ac = vc + dvc * (half ? h : h / 2);
			}
			i1 = a1;
			i2 = a2;
			vc = ac;
		}
		/* Behind the first 20 ms: e(t) begins with a jump. */
		if (network_time(&n, k) > 0.02)
			worst = fmax(worst, fabs(whole.i[k + 1] - i2));
	}
	return worst;
}

static void the_rule_is_of_second_order(void)
{
	double coarse = distance_from_equations(100e-6);
	double fine = distance_from_equations(50e-6);

	expect(coarse < 0.5, "100 us: %g A away from the equations", coarse);
	expect(fine < coarse / 3, "50 us: %g A away, 100 us: %g A", fine, coarse);
}

static void the_error_is_that_of_the_theory(double step_s, unsigned there,
					    unsigned back)
{
	struct network n = network_default;
	uint64_t period = (uint64_t)(0.02 / step_s + 0.5), count = COUNT;

	n.step_s = step_s;
	count -= count % period;
	for (int closed = 0; closed < 2; closed++) {
		struct theory_error e = theory_error(&n, closed, there, back);
		double v, i;

		n.switch_s = closed ? 0.0 : -1.0;
		couple_undivided(&n, count, &whole);
		couple_delayed(&n, there, back, count, &coupled);
		v = couple_rms_error(coupled.v, whole.v, count - 10 * period,
				     count);
		i = couple_rms_error(coupled.i, whole.i, count - 10 * period,
				     count);
		expect(fabs(v - e.voltage) <= 1e-6 * e.voltage + 1e-10,
		       "step %g delays %u %u: voltage error %.9g, theory %.9g",
		       step_s, there, back, v, e.voltage);
		expect(fabs(i - e.current) <= 1e-6 * e.current + 1e-10,
		       "step %g delays %u %u: current error %.9g, theory %.9g",
		       step_s, there, back, i, e.current);
	}
}

static void small_errors_grow_with_the_delay(void)
{
	struct network n = network_default;
	double one, four, w_td;

	n.step_s = 20e-6;
	one = theory_error(&n, false, 1, 1).voltage;
	four = theory_error(&n, false, 4, 4).voltage;
	expect(fabs(four / one - 4) < 0.05, "four times the delay: %g times",
	       four / one);
	/* |rho / (1 + rho)| w Td, with rho = 0.0445 at 50 Hz. */
	w_td = 2 * M_PI * 50 * 40e-6;
	expect(one < w_td * 0.06 && one > w_td * 0.03,
	       "40 us: %g of w Td", one / w_td);
}

/* Whether the last tenth is larger than the fifth one. */
static bool grows(const double *a, uint64_t count)
{
	double early = 0, late = 0;

	for (uint64_t k = count / 2; k < count / 2 + count / 10; k++)
		early = fmax(early, fabs(a[k]));
	for (uint64_t k = count - count / 10; k < count; k++) {
		if (!isfinite(a[k]))
			return true;
		late = fmax(late, fabs(a[k]));
	}
	return late > 1.5 * early;
}

static void it_is_unstable_where_the_theory_says(void)
{
	static const double steps_s[] = { 20e-6, 50e-6, 200e-6, 1e-3 };
	static const double l1_h[] = { 1e-3, 3e-3, 6e-3, 9e-3, 11e-3, 15e-3,
				       30e-3 };
	static const unsigned delays[] = { 1, 2, 3, 5, 9, 20 };
	unsigned stable = 0, unstable = 0;

	for (unsigned c = 0; c < 4 * 7 * 6 * 2; c++) {
		struct network n = network_default;
		unsigned there = delays[c / 2 % 6], back = delays[(c / 2 + c) % 6];
		bool closed = c & 1, says;
		struct theory_loop loop;
		double margin;

		n.step_s = steps_s[c / 84];
		n.l1_h = l1_h[c / 12 % 7];
		n.switch_s = closed ? 0.0 : -1.0;
		says = theory_stable(&n, closed, there + back, &margin);
		loop = theory_loop(&n, closed);
		expect(!loop.any_delay || says,
		       "%g H, %u steps of %g: |Z1/Z2| %g, but unstable",
		       n.l1_h, there + back, n.step_s, loop.ratio_max);
		if (margin < 0.02)
			continue; /* hardly decays, hardly grows */
		/* The limit of the delay says the same up to its first crossing. */
		expect((there + back) * n.step_s > loop.limit_s || says,
		       "%g H, %u steps of %g: below the limit %g, but unstable",
		       n.l1_h, there + back, n.step_s, loop.limit_s);
		couple_delayed(&n, there, back, COUNT / 8, &coupled);
		expect(grows(coupled.v, COUNT / 8) == !says,
		       "%g H, closed %d, %u + %u steps of %g: theory says %s (margin %g)",
		       n.l1_h, closed, there, back, n.step_s,
		       says ? "stable" : "unstable", margin);
		if (says)
			stable++;
		else
			unstable++;
	}
	expect(stable >= 50 && unstable >= 50, "%u stable, %u unstable", stable,
	       unstable);
	printf("%u stable and %u unstable loops as the theory says\n", stable,
	       unstable);
}

int main(void)
{
	static double room[4][COUNT];

	whole = (struct waveform){ room[0], room[1] };
	coupled = (struct waveform){ room[2], room[3] };
	the_undivided_network_obeys_its_phasors(100e-6);
	the_undivided_network_obeys_its_phasors(1e-3);
	the_rule_is_of_second_order();
	the_error_is_that_of_the_theory(20e-6, 1, 1);
	the_error_is_that_of_the_theory(50e-6, 3, 2);
	the_error_is_that_of_the_theory(200e-6, 1, 10);
	the_error_is_that_of_the_theory(1e-3, 1, 1);
	the_error_is_that_of_the_theory(1e-3, 5, 7);
	small_errors_grow_with_the_delay();
	it_is_unstable_where_the_theory_says();
	return failures ? 1 : 0;
}
