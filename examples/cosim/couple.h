/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Both halves in one program, coupled with a delay of whole steps, beside the
 * undivided network; no real time. And the measure of how far two solutions are
 * apart.
 */
#ifndef COSIM_COUPLE_H
#define COSIM_COUPLE_H

#include "network.h"

#define COUPLE_DELAY_MAX 64

/* One solution: `count` steps of both interface quantities, the caller's. */
struct waveform {
	double *v, *i;
};

/* Delays in steps, 1 to COUPLE_DELAY_MAX each. */
void couple_delayed(const struct network *n, unsigned voltage_steps,
		    unsigned current_steps, uint64_t count, struct waveform *w);
void couple_undivided(const struct network *n, uint64_t count,
		      struct waveform *w);

/* Steps [from, to): root mean square of a - b, relative to that of b. */
double couple_rms_error(const double *a, const double *b, uint64_t from,
			uint64_t to);
/* Largest difference, relative to the largest b. */
double couple_peak_error(const double *a, const double *b, uint64_t from,
			 uint64_t to);

#endif
