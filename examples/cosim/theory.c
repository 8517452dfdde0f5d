/* SPDX-License-Identifier: BSD-2-Clause */
/* The network in frequency; see theory.h. */
#include "theory.h"

#include <complex.h>
#include <math.h>

/* Frequencies from 0 to half the sampling rate, more of them at the low end. */
#define POINTS 10000

typedef double complex cplx;

/* s of the trapezoidal rule at `angle` = w h, in [0, pi). */
static cplx rule(const struct network *n, double angle)
{
	return I * (2 / n->step_s) * tan(angle / 2);
}

static cplx z_source(const struct network *n, cplx s)
{
	cplx l = s * n->l1_h;

	return n->r1_ohm + l * n->rp_ohm / (l + n->rp_ohm);
}

static cplx z_load(const struct network *n, cplx s, bool closed)
{
	double g = 1 / n->rload_ohm + (closed ? 1 / n->rswitch_ohm : 0);

	return n->r2_ohm + s * n->l2_h + 1 / (g + s * n->c2_f);
}

static cplx ratio(const struct network *n, double angle, bool closed)
{
	cplx s = rule(n, angle);

	return z_source(n, s) / z_load(n, s, closed);
}

/* In (0, pi), denser towards zero, where the resonances are at small steps. */
static double angle_of(int point)
{
	double x = (point + 0.5) / POINTS;

	return M_PI * x * x;
}

struct theory_error theory_error(const struct network *n, bool closed,
				 double voltage_steps, double current_steps)
{
	double angle = 2 * M_PI * n->frequency_hz * n->step_s;
	cplx rho = ratio(n, angle, closed);
	cplx there = cexp(-I * angle * voltage_steps);
	cplx back = cexp(-I * angle * current_steps);
	cplx v = (1 + rho) / (1 + rho * there * back);

	return (struct theory_error){ .voltage = cabs(v - 1),
				      .current = cabs(v * there - 1) };
}

void theory_steady(const struct network *n, bool closed, double *voltage_v,
		   double *current_a)
{
	cplx s = rule(n, 2 * M_PI * n->frequency_hz * n->step_s);
	cplx z2 = z_load(n, s, closed);
	cplx i = n->e_v / (z_source(n, s) + z2);

	*voltage_v = cabs(i * z2);
	*current_a = cabs(i);
}

struct theory_loop theory_loop(const struct network *n, bool closed)
{
	struct theory_loop loop = { .limit_s = INFINITY };
	double before = cabs(ratio(n, angle_of(0), closed));

	for (int i = 0; i < POINTS; i++) {
		double angle = angle_of(i), phase, gain;
		cplx rho = ratio(n, angle, closed);

		gain = cabs(rho);
		if (gain > loop.ratio_max) {
			loop.ratio_max = gain;
			loop.ratio_max_hz = angle / (2 * M_PI * n->step_s);
		}
		if ((gain > 1) != (before > 1)) {
			/* What is left to -180 degrees, per radian and second. */
			phase = M_PI + carg(rho);
			loop.limit_s = fmin(loop.limit_s,
					    phase * n->step_s / angle);
		}
		before = gain;
	}
	loop.any_delay = loop.ratio_max < 1;
	return loop;
}

bool theory_stable(const struct network *n, bool closed, unsigned steps,
		   double *margin)
{
	double turned = 0;
	cplx before = 1 + ratio(n, 0, closed);

	/* How far 1 + loop gain turns around zero along the half circle. */
	*margin = INFINITY;
	for (int i = 0; i < POINTS; i++) {
		double angle = angle_of(i);
		cplx at = 1 + ratio(n, angle, closed) *
				      cexp(-I * angle * steps);

		turned += carg(at / before);
		*margin = fmin(*margin, cabs(at));
		before = at;
	}
	return fabs(turned) < M_PI / 2;
}
