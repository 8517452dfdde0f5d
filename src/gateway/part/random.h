/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that are the same on every machine. A seed gives the numbers that
 * srandom(seed) and random() of the GNU C library give; the polar method makes normally
 * distributed numbers of them, two at a time. The generator is our own, so that another
 * caller of random() in the process does not take numbers out of the sequence.
 */
#ifndef GATEWAY_PART_RANDOM_H
#define GATEWAY_PART_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

#define RANDOM_WORDS 31

struct random {
	uint32_t words[RANDOM_WORDS];
	unsigned at;
	double spare;    /* the second one of a pair */
	bool has_spare;
};

void random_seed(struct random *r, uint32_t seed);

/* From 0 to 2^31 - 1. One thread at a time. */
uint32_t random_next(struct random *r);

/* Mean 0, standard deviation 1. One thread at a time. */
double random_normal(struct random *r);

/*
 * The sequence that all generators without a seed of their own share. Its seed is 0 until
 * random_shared_seed() is called. Any thread.
 */
void random_shared_seed(uint32_t seed);
double random_shared_normal(void);

#endif
