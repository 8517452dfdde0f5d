/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random numbers that are the same on every machine and in every program that
 * draws them as the C library of GNU does: a seed gives the numbers of
 * srandom(seed) and random(), and normally distributed ones follow from them by
 * the polar method, two at a time. They are ours and not the C library's, so
 * that no other caller of random() in the process takes one of them.
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
 * The numbers that all who have no seed of their own share: each one is drawn
 * once in the process. Seeded with 0 until random_shared_seed() is called. From
 * any thread.
 */
void random_shared_seed(uint32_t seed);
double random_shared_normal(void);

#endif
