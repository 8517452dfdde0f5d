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

static double random_step(struct generator *g)
{
	return g->own_seed ? random_normal(&g->random) : random_shared_normal();
}

void generator_start(struct generator *g)
{
	if (g->own_seed)
		random_seed(&g->random, g->seed);
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
		/* In single precision it is in VILLASnode, whose numbers these
		 * are. */
		v->walk += (double)(float)v->stddev * random_step(g);
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
