/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Values of generated signals as a function of the step number. No clock and no
 * configuration inside: the same settings and seed give the same values. Random
 * walks without a seed of their own draw from numbers that all of them share.
 */
#ifndef GATEWAY_PART_SIGNAL_GENERATOR_H
#define GATEWAY_PART_SIGNAL_GENERATOR_H

#include <stdbool.h>
#include <stdint.h>

#include "gateway/part/random.h"

enum waveform {
	/* In the order in which `mixed` hands them to the values. */
	WAVEFORM_RANDOM,
	WAVEFORM_SINE,
	WAVEFORM_SQUARE,
	WAVEFORM_TRIANGLE,
	WAVEFORM_RAMP,
	WAVEFORM_COUNTER,
	WAVEFORM_CONSTANT,
	WAVEFORM_MIXED, /* a setting, not a shape */
	WAVEFORM_PULSE,
};

/* NULL terminated. */
extern const char *const waveform_names[];

struct generator_value {
	enum waveform waveform;
	double frequency_hz, amplitude, stddev, offset, phase_rad;
	double pulse_width; /* steps */
	double pulse_low, pulse_high;
	double walk;        /* where the random walk stands */
};

struct generator {
	struct generator_value *values;
	unsigned count;
	double rate_hz;
	bool own_seed;       /* else its random walks draw from the shared numbers */
	uint32_t seed;
	struct random random;
};

/* The waveform that value `index` has under `mixed`. */
enum waveform generator_mixed(unsigned index);

/* `values` (borrowed), `own_seed` and `seed` may be changed until here only. */
void generator_start(struct generator *g);

/*
 * Value `index` at step `step` (from 0). A random walk takes one step per
 * call, whatever `step` is.
 */
double generator_next(struct generator *g, unsigned index, uint64_t step);

/* Is value `index` a random walk, and so the same at any step? */
static inline bool generator_is_walk(const struct generator *g, unsigned index)
{
	return g->values[index].waveform == WAVEFORM_RANDOM;
}

#endif
