/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The additive feedback generator x[i] = x[i-3] + x[i-31] of 32 bits, whose
 * lowest bit is not used; see random.h.
 */
#include "gateway/part/random.h"

#include <math.h>
#include <pthread.h>

/* Words between the two that are added. */
#define LAG 28
/* Numbers that are thrown away behind a new seed. */
#define WARM_UP 310
#define LARGEST 2147483647

static struct {
	pthread_once_t once;
	pthread_mutex_t lock;
	struct random random;
} shared = { .once = PTHREAD_ONCE_INIT };

void random_seed(struct random *r, uint32_t seed)
{
	int32_t word;

	r->words[0] = seed ? seed : 1;
	for (unsigned i = 1; i < RANDOM_WORDS; i++) {
		word = (int32_t)(16807 * (int64_t)(int32_t)r->words[i - 1] %
				 LARGEST);
		r->words[i] = (uint32_t)(word < 0 ? word + LARGEST : word);
	}
	/* The words behind the seed stand before it in time. */
	r->at = RANDOM_WORDS - LAG;
	r->has_spare = false;
	for (unsigned i = 0; i < WARM_UP; i++)
		random_next(r);
}

uint32_t random_next(struct random *r)
{
	/* x[i-31] stands where x[i] comes to stand. */
	uint32_t *word = &r->words[r->at];

	*word += r->words[(r->at + LAG) % RANDOM_WORDS];
	r->at = (r->at + 1) % RANDOM_WORDS;
	return *word >> 1;
}

/* In [-1, 1]; each step rounds, and the order of the steps counts. */
static double uniform(struct random *r)
{
	double unit = (double)random_next(r) / LARGEST;

	return 2.0 * unit - 1.0;
}

double random_normal(struct random *r)
{
	double x, y, w;

	if (r->has_spare) {
		r->has_spare = false;
		return r->spare;
	}
	do {
		x = uniform(r);
		y = uniform(r);
		w = x * x + y * y;
	} while (w >= 1.0);
	/* Never 0: no number is half of the largest one, which is odd. */
	w = sqrt(-2.0 * log(w) / w);
	r->spare = y * w;
	r->has_spare = true;
	return x * w;
}

/* A thread that draws may have real-time priority; the thread that holds the lock inherits
 * it. */
static void prepare(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	pthread_mutex_init(&shared.lock, &attr);
	pthread_mutexattr_destroy(&attr);
	random_seed(&shared.random, 0);
}

void random_shared_seed(uint32_t seed)
{
	pthread_once(&shared.once, prepare);
	pthread_mutex_lock(&shared.lock);
	random_seed(&shared.random, seed);
	pthread_mutex_unlock(&shared.lock);
}

double random_shared_normal(void)
{
	double value;

	pthread_once(&shared.once, prepare);
	pthread_mutex_lock(&shared.lock);
	value = random_normal(&shared.random);
	pthread_mutex_unlock(&shared.lock);
	return value;
}
