/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The owner of the data path is interrupted after it found that it is the owner and before
 * it says that it is inside, for so long that another thread becomes the owner. It must
 * then take the locks, and must not clear the new owner's flag.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* Called before every store of elide.h. */
static void before_store(void);
#ifdef __clang__
#define STORE(p, v, order) __c11_atomic_store(p, v, order)
#else
#define STORE(p, v, order) __atomic_store_n(p, v, order)
#endif
#undef atomic_store_explicit
#define atomic_store_explicit(p, v, order) \
	(before_store(), STORE(p, v, order))

#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/run/yield.h"
#include "util/clock.h"

enum { LONG_ENOUGH = 5000 }; /* number of entries after which a thread is the owner */

void hca_yield(bool (*peer_ran_on)(unsigned cpu))
{
	sched_yield();
}

static _Thread_local bool interrupt_next;
static sem_t interrupted, go_on, inside, leave;
static struct spin lock;

static void before_store(void)
{
	if (!interrupt_next)
		return;
	interrupt_next = false;
	sem_post(&interrupted);
	sem_wait(&go_on);
}

static void expect(bool ok, const char *what)
{
	if (ok)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

static bool work(unsigned times)
{
	bool elided = false;

	for (unsigned i = 0; i < times; i++) {
		hca_enter();
		hca_lock(&lock);
		elided = hca_self.elided;
		hca_unlock(&lock);
		hca_leave();
	}
	return elided;
}

static void *first_owner(void *arg)
{
	expect(work(LONG_ENOUGH), "the first owner goes without locks");
	interrupt_next = true;
	hca_enter();
	expect(!hca_self.elided, "who was the owner takes the locks");
	hca_leave();
	sem_post(&interrupted);
	return NULL;
}

static void *second_owner(void *arg)
{
	sem_wait(&interrupted);
	expect(work(LONG_ENOUGH), "the second owner goes without locks");
	hca_enter();
	expect(hca_self.elided, "it does still");
	sem_post(&go_on);
	/* Now the first thread goes on; it must wait for this one. */
	sem_post(&inside);
	sem_wait(&leave);
	hca_leave();
	return NULL;
}

/* The third thread, while the second is inside. */
static void *visitor(void *arg)
{
	hca_enter();
	atomic_store((atomic_bool *)arg, true);
	hca_leave();
	return NULL;
}

static void *next_owner(void *arg)
{
	atomic_fetch_add((atomic_uint *)arg, work(LONG_ENOUGH));
	sem_post(&inside);
	sem_wait(&leave); /* exists while the others run */
	return NULL;
}

/* More threads, one after the other, than there are words for owners. */
static void many_owners(void)
{
	enum { COUNT = HCA_OWNERS + 8 };
	pthread_t threads[COUNT];
	atomic_uint elided = 0;

	for (int i = 0; i < COUNT; i++) {
		if (pthread_create(&threads[i], NULL, next_owner, &elided))
			exit(77);
		sem_wait(&inside);
	}
	for (int i = 0; i < COUNT; i++)
		sem_post(&leave);
	for (int i = 0; i < COUNT; i++)
		pthread_join(threads[i], NULL);
	expect(elided > 1 && elided <= HCA_OWNERS,
	       "ownership passes on as often as there are words");
	expect(atomic_load(&hca_elision.others) ==
		       (atomic_load(&hca_elision.off) ? 1u : 0u),
	       "nobody is still announced");
}

int main(void)
{
	pthread_t first, second, third;
	atomic_bool entered = false;

	hca_elision_start();
	if (atomic_load(&hca_elision.off))
		return 77;
	sem_init(&interrupted, 0, 0);
	sem_init(&go_on, 0, 0);
	sem_init(&inside, 0, 0);
	sem_init(&leave, 0, 0);
	if (pthread_create(&first, NULL, first_owner, NULL) ||
	    pthread_create(&second, NULL, second_owner, NULL))
		return 77;
	sem_wait(&inside);
	/* A third thread waits for the second one as usual: the first one has
	 * withdrawn its flag. */
	if (pthread_create(&third, NULL, visitor, &entered))
		return 77;
	for (int i = 0; i < 200; i++) {
		const struct timespec t = { 0, 1000000 };

		nanosleep(&t, NULL); /* the third one must not enter within 200 ms */
		expect(!atomic_load(&entered),
		       "nobody takes the locks while the owner is inside");
	}
	sem_post(&leave);
	pthread_join(first, NULL);
	pthread_join(second, NULL);
	pthread_join(third, NULL);
	expect(atomic_load(&entered), "afterwards it does");
	many_owners();
	return 0;
}
