/* SPDX-License-Identifier: BSD-2-Clause */
/* Shapes of generated signals; see generator.h. */
#include "gateway/part/signal_generator.h"

#include <math.h>
#include <stddef.h>

const char *const waveform_names[] = {
	[WAVEFORM_RANDOM] = "random",
	[WAVEFORM_SINE] = "sine",
	[WAVEFORM_SQUARE] = "square",
	[WAVEFORM_TRIANGLE] = "triangle",
	[WAVEFORM_RAMP] = "ramp",
	[WAVEFORM_COUNTER] = "counter",
	[WAVEFORM_CONSTANT] = "constant",
	[WAVEFORM_MIXED] = "mixed",
	[WAVEFORM_PULSE] = "pulse",
	NULL,
};

enum waveform generator_mixed(unsigned index)
{
	return (enum waveform)(index % WAVEFORM_MIXED);
}

/* Uniform in (-1, 1); splitmix64 over a counter. */
static double random_uniform(struct generator *g)
{
	uint64_t z = (g->random_state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	z ^= z >> 31;
	return (double)(int64_t)(z | 1) * 0x1p-63;
}

/* Standard normal distribution, by the polar method: two at a time. */
static double random_normal(struct generator *g)
{
	double x, y, r, scale;

	if (g->has_spare) {
		g->has_spare = false;
		return g->normal_spare;
	}
	do {
		x = random_uniform(g);
		y = random_uniform(g);
		r = x * x + y * y;
	} while (r >= 1.0 || r == 0.0);
	scale = sqrt(-2.0 * log(r) / r);
	g->normal_spare = y * scale;
	g->has_spare = true;
	return x * scale;
}

void generator_start(struct generator *g, uint64_t seed)
{
	g->random_state = seed;
	g->has_spare = false;
	for (unsigned i = 0; i < g->count; i++)
		g->values[i].walk = g->values[i].offset;
}

/* Position within the period, in [0, 1). */
static double cycle_position(const struct generator_value *v, double t)
{
	double cycles = t * v->frequency_hz + v->phase_rad / (2 * M_PI);

	/* A hair before a period's end, by rounding, is its beginning. */
	cycles -= floor(cycles + 1e-9);
	return cycles > 0.0 ? cycles : 0.0;
}

double generator_next(struct generator *g, unsigned index, uint64_t step)
{
	struct generator_value *v = &g->values[index];
	double t = (double)step / g->rate_hz;

	switch (v->waveform) {
	case WAVEFORM_RANDOM:
		v->walk += v->stddev * random_normal(g);
		return v->walk;
	case WAVEFORM_SINE:
		return v->offset +
		       v->amplitude * sin(2 * M_PI * v->frequency_hz * t +
					  v->phase_rad);
	case WAVEFORM_SQUARE:
		return v->offset +
		       (cycle_position(v, t) < 0.5 ? -v->amplitude : v->amplitude);
	case WAVEFORM_TRIANGLE:
		return v->offset +
		       v->amplitude *
			       (fabs(cycle_position(v, t) - 0.5) - 0.25) * 4;
	case WAVEFORM_RAMP:
		/* The frequency serves as period in seconds: so it has always
		 * been for users of this node-type. */
		return v->offset + v->amplitude * fmod(t, v->frequency_hz);
	case WAVEFORM_COUNTER:
		return v->offset + v->amplitude * (double)step;
	case WAVEFORM_PULSE:
		/* Whole steps since the pulse began, robust against rounding. */
		return v->offset +
		       (rint(cycle_position(v, t) / v->frequency_hz *
			     g->rate_hz) < v->pulse_width ?
				v->pulse_high :
				v->pulse_low);
	case WAVEFORM_CONSTANT:
	case WAVEFORM_MIXED:
		break;
	}
	return v->offset + v->amplitude;
}
