/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cross [SEED]: two instances of one process that call each other at nearly the same time,
 * again and again: whose attempt comes first is drawn. In the end there is one connection,
 * each side has made one, and no message is lost.
 */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "instance.h"
#include "util/prng.h"

enum { ROUNDS = 120, MESSAGES = 20, APART_US = 1500 };

struct side {
	struct ripc *r;
	struct ripc_service *s;
	uint32_t id, other;
	uint64_t later_us; /* than the other one */
	pthread_barrier_t *both;
};

static void nap(uint64_t us)
{
	nanosleep(&(struct timespec){ .tv_nsec = (long)us * 1000 }, NULL);
}

static void *send_all(void *arg)
{
	struct side *e = arg;
	struct ripc_where where;

	/* Now it is known where the other one is, and both only have to connect. */
	CHECK(!ripc_where(e->r, e->other, LIMIT_MS, &where));
	pthread_barrier_wait(e->both);
	nap(e->later_us);
	for (uint32_t i = 0; i < MESSAGES; i++) {
		struct ripc_item item = { &i, sizeof(i) };

		CHECK(!ripc_send_short(e->s, e->other, &item, 1, NULL, 0));
	}
	return NULL;
}

static void receive_all(struct side *e)
{
	struct ripc_message m;

	for (uint32_t i = 0; i < MESSAGES; i++) {
		uint32_t number;

		CHECK(!ripc_receive(e->s, &m, LIMIT_MS));
		memcpy(&number, m.items[0].data, sizeof(number));
		CHECK(number == i);
		ripc_release(&m);
	}
}

static void round_of(struct prng *p)
{
	pthread_barrier_t both;
	struct side sides[2];
	pthread_t threads[2];
	unsigned late = (unsigned)prng_below(p, 2);

	CHECK(!pthread_barrier_init(&both, NULL, 2));
	for (unsigned i = 0; i < 2; i++) {
		sides[i] = (struct side){ .r = open_instance((struct ripc_config){ 0 }),
					  .id = 1 + i, .other = 2 - i, .both = &both,
					  .later_us = i == late ? prng_below(p, APART_US) : 0 };
		CHECK(!ripc_service_open(sides[i].r, sides[i].id, NULL, &sides[i].s));
	}
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_create(&threads[i], NULL, send_all, &sides[i]));
	for (unsigned i = 0; i < 2; i++)
		CHECK(!pthread_join(threads[i], NULL));
	for (unsigned i = 0; i < 2; i++)
		receive_all(&sides[i]);
	for (unsigned i = 0; i < 2; i++) {
		struct ripc_counters c;

		ripc_counters(sides[i].r, &c);
		CHECK(c.connects == 1);
		CHECK(!c.connect_failures);
	}
	for (unsigned i = 0; i < 2; i++)
		ripc_close(sides[i].r);
	pthread_barrier_destroy(&both);
}

int main(int argc, char **argv)
{
	uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : (uint64_t)time(NULL);
	struct prng p = prng_from(seed);

	printf("seed %llu\n", (unsigned long long)seed);
	fflush(stdout);
	for (unsigned i = 0; i < ROUNDS; i++)
		round_of(&p);
	return 0;
}
