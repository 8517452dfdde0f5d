/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several threads call the pool at random, each with a model of what it has: every byte
 * that a thread was given stays its own, references are granted where the model says, and
 * at the end nothing is left. Arguments: seconds and seed; else some thousand calls each.
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pool_help.h"
#include "util/container_of.h"
#include "util/prng.h"

#define THREADS 4
#define THINGS 40
#define REFERENCES 3
#define OWN_BYTES (256 * 1024)
#define OWN_STEP 4096
#define KEPT_BYTES (8u << 20)
#define CALLS 6000

struct thing {
	uint8_t *at;
	size_t bytes;
	bool foreign;
	unsigned references;
	struct pool_ref reference[REFERENCES];
};

struct worker {
	pthread_t thread;
	struct prng random;
	uint8_t mark;
	struct thing things[THINGS];
	uint8_t *own;
	bool taken[OWN_BYTES / OWN_STEP];
};

static struct ground g;
static uint64_t seed;
static struct timespec until; /* 0: CALLS */

static uint64_t below(struct worker *w, uint64_t n)
{
	return prng_below(&w->random, n);
}

/* Marks enough of the bytes to notice anybody else in them. */
static void mark(struct worker *w, struct thing *t, bool set)
{
	for (size_t i = 0; i < t->bytes; i += t->bytes < 512 ? 1 : t->bytes / 256) {
		if (set)
			t->at[i] = w->mark;
		else
			check_eq(t->at[i], w->mark);
	}
	if (!t->bytes)
		return;
	if (set)
		t->at[t->bytes - 1] = w->mark;
	else
		check_eq(t->at[t->bytes - 1], w->mark);
}

static void take(struct worker *w, struct thing *t)
{
	static const size_t most[] = { 64, 2000, 70000, 1 << 20, 6 << 20 };

	t->foreign = false;
	t->bytes = below(w, most[below(w, ARRAY_SIZE(most))]);
	t->at = pool_alloc(g.pool, t->bytes);
	check(t->at);
	mark(w, t, true);
}

static void enter(struct worker *w, struct thing *t)
{
	const size_t first = below(w, ARRAY_SIZE(w->taken));
	size_t last = first;

	if (w->taken[first]) {
		check_eq(pool_register(g.pool, w->own + first * OWN_STEP, 1), -EEXIST);
		return;
	}
	while (last + 1 < ARRAY_SIZE(w->taken) && !w->taken[last + 1] && below(w, 3))
		last++;
	t->foreign = true;
	t->at = w->own + first * OWN_STEP;
	t->bytes = (last - first + 1) * OWN_STEP;
	check_eq(pool_register(g.pool, t->at, t->bytes), 0);
	memset(w->taken + first, true, last - first + 1);
	mark(w, t, true);
}

static void refer(struct worker *w, struct thing *t)
{
	const size_t offset = below(w, t->bytes + 1), length = below(w, t->bytes - offset + 1);
	const enum pool_access access = (enum pool_access)below(w, 3);
	struct pool_ref *ref = &t->reference[t->references];

	if (t->references == REFERENCES || offset == t->bytes)
		return;
	check_eq(pool_get(g.pool, t->at + offset, length, access, ref), 0);
	check(ref->mr && (uint8_t *)ref->mr->addr <= t->at &&
	      (uint8_t *)ref->mr->addr + ref->mr->length >= t->at + t->bytes);
	t->references++;
	check_eq(pool_get(g.pool, t->at + offset, 2 * t->bytes + OWN_BYTES, access,
			  &(struct pool_ref){ 0 }), -ENOENT);
}

static void drop(struct thing *t)
{
	if (t->references)
		pool_put(g.pool, &t->reference[--t->references]);
}

static void leave(struct worker *w, struct thing *t)
{
	mark(w, t, false);
	if (t->foreign) {
		const size_t first = (size_t)(t->at - w->own) / OWN_STEP;

		if (t->references) {
			check_eq(pool_unregister(g.pool, t->at), -EBUSY);
			return;
		}
		check_eq(pool_unregister(g.pool, t->at), 0);
		memset(w->taken + first, false, t->bytes / OWN_STEP);
	} else {
		check_eq(pool_free(g.pool, t->at + below(w, t->bytes ? t->bytes : 1)), 0);
		if (t->references) /* not anybody else's yet */
			check_eq(pool_free(g.pool, t->at), -EINVAL);
		while (t->references)
			drop(t);
	}
	t->at = NULL;
}

static void step(struct worker *w)
{
	struct thing *t = &w->things[below(w, THINGS)];

	if (!t->at) {
		if (below(w, 4))
			take(w, t);
		else
			enter(w, t);
		return;
	}
	switch (below(w, 8)) {
	case 0: case 1: case 2: refer(w, t); break;
	case 3: case 4: drop(t); break;
	case 5: mark(w, t, false); break;
	default: leave(w, t); break;
	}
	if (!below(w, 200))
		pool_trim(g.pool, below(w, KEPT_BYTES));
	if (!below(w, 50))
		check(counters_of(g.pool).kept_bytes <= KEPT_BYTES);
}

static bool more(unsigned call)
{
	struct timespec now;

	if (!until.tv_sec)
		return call < CALLS;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < until.tv_sec;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	for (unsigned call = 0; more(call); call++)
		step(w);
	for (unsigned i = 0; i < THINGS; i++) {
		struct thing *t = &w->things[i];

		while (t->references)
			drop(t);
		if (t->at)
			leave(w, t);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	static struct worker workers[THREADS];
	struct pool_counters c;

	seed = argc > 2 ? strtoull(argv[2], NULL, 0) : (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	if (argc > 1) {
		clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_sec += atoi(argv[1]) + 1;
	}
	ground_open(&g, KEPT_BYTES);
	for (unsigned i = 0; i < THREADS; i++) {
		workers[i].random = prng_from(seed + i);
		workers[i].mark = (uint8_t)(0x41 + i);
		workers[i].own = aligned_alloc(OWN_STEP, OWN_BYTES);
		check(workers[i].own);
		check_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(workers[i].thread, NULL);
		free(workers[i].own);
	}
	c = counters_of(g.pool);
	check(c.kept_bytes <= KEPT_BYTES && c.registrations > 0);
	pool_trim(g.pool, 0);
	c = counters_of(g.pool);
	check_eq(c.kept_bytes, 0);
	check_eq(c.registered_bytes, 0);
	ground_close(&g);
	return 0;
}
