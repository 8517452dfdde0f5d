/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pseudo-random numbers for simulations and tests: the same on every machine, all from
 * one seed (splitmix64: Steele, Lea and Flood, 2014). Not for secrets.
 */
#ifndef UTIL_PRNG_H
#define UTIL_PRNG_H

#include <stdbool.h>
#include <stdint.h>

struct prng {
	uint64_t state;
};

static inline uint64_t prng_next(struct prng *p)
{
	uint64_t z = (p->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Of any two seeds the sequences have nothing in common; as states they would be one
 * sequence, shifted, where the seeds differ by a multiple of the constant above. */
static inline struct prng prng_from(uint64_t seed)
{
	struct prng p = { ~seed };

	p.state = prng_next(&p);
	return p;
}

/* 0 to n - 1; 0 for n = 0. Draws one number. */
static inline uint64_t prng_below(struct prng *p, uint64_t n)
{
	return (uint64_t)(((unsigned __int128)prng_next(p) * n) >> 64);
}

/* True with the probability `p`; draws one number whatever it is. */
static inline bool prng_chance(struct prng *g, double p)
{
	return (double)(prng_next(g) >> 11) * 0x1p-53 < p;
}

#endif
