/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the theory of the ideal-transformer method says about the network of
 * network.h with a delay in its interface.
 *
 * With Z1(s) and Z2(s) the impedances of the halves, seen from the interface, and
 * delays of Tv for the voltage (source to load) and Ti for the current (back),
 *
 *	V = E / (1 + rho exp(-s Td)),   rho = Z1 / Z2,   Td = Tv + Ti
 *
 * where the undivided network has V = E / (1 + rho). So
 *
 *	- the error at s = jw is |(1 + rho) / (1 + rho exp(-jwTd)) - 1|, about
 *	  |rho / (1 + rho)| w Td when that is small;
 *	- the loop gain is rho exp(-s Td): both halves alone are stable, so with
 *	  |Z1 / Z2| < 1 at every frequency it is stable for any delay, and else up to
 *	  the delay that turns the phase to -180 degrees where the gain is 1.
 *
 * All of it is evaluated for the network as it is computed: the trapezoidal rule
 * is s = 2/h tanh(s h / 2), so that at a whole number of steps of delay the figures
 * are exact and no approximation.
 */
#ifndef COSIM_THEORY_H
#define COSIM_THEORY_H

#include <stdbool.h>

#include "network.h"

/* Steady state at the frequency of the source; delays in steps, which may be
 * broken: measured ones are an average. */
struct theory_error {
	double voltage; /* of the source half, relative to the undivided one */
	double current; /* of the load half, likewise */
};

struct theory_error theory_error(const struct network *n, bool closed,
				 double voltage_steps, double current_steps);

struct theory_loop {
	double ratio_max;       /* of |Z1 / Z2| over all frequencies */
	double ratio_max_hz;    /* where */
	bool any_delay;         /* ratio_max < 1 */
	/* The smallest delay, voltage and current together, that makes it
	 * unstable; infinite when none does. */
	double limit_s;
};

struct theory_loop theory_loop(const struct network *n, bool closed);

/*
 * Whether the loop with this many steps of delay, both ways together, is stable,
 * by Nyquist's criterion. *margin is the smallest distance of the loop gain from
 * -1: near zero there is neither decay nor growth to speak of.
 */
bool theory_stable(const struct network *n, bool closed, unsigned steps,
		   double *margin);

/* Amplitudes of the undivided network in steady state. */
void theory_steady(const struct network *n, bool closed, double *voltage_v,
		   double *current_a);

#endif
