/* SPDX-License-Identifier: BSD-2-Clause */
/* Coupling without real time; see couple.h. */
#include "couple.h"

#include <math.h>

void couple_delayed(const struct network *n, unsigned voltage_steps,
		    unsigned current_steps, uint64_t count, struct waveform *w)
{
	struct source_half s;
	struct load_half l;

	source_init(&s, n);
	load_init(&l, n);
	for (uint64_t k = 0; k < count; k++) {
		/* Nothing has come before the delay is over. */
		double i = k < current_steps ? 0 : w->i[k - current_steps];
		double v = k < voltage_steps ? 0 : w->v[k - voltage_steps];

		w->v[k] = source_step(&s, k, i);
		w->i[k] = load_step(&l, k, v);
	}
}

void couple_undivided(const struct network *n, uint64_t count,
		      struct waveform *w)
{
	struct source_half s;
	struct load_half l;

	source_init(&s, n);
	load_init(&l, n);
	for (uint64_t k = 0; k < count; k++)
		undivided_step(&s, &l, k, &w->v[k], &w->i[k]);
}

double couple_rms_error(const double *a, const double *b, uint64_t from,
			uint64_t to)
{
	double difference = 0, reference = 0;

	for (uint64_t k = from; k < to; k++) {
		difference += (a[k] - b[k]) * (a[k] - b[k]);
		reference += b[k] * b[k];
	}
	return sqrt(difference / reference);
}

double couple_peak_error(const double *a, const double *b, uint64_t from,
			 uint64_t to)
{
	double difference = 0, reference = 0;

	for (uint64_t k = from; k < to; k++) {
		/* Not a number counts as far apart. */
		if (!(fabs(a[k] - b[k]) <= difference))
			difference = fabs(a[k] - b[k]);
		reference = fmax(reference, fabs(b[k]));
	}
	return difference / reference;
}
