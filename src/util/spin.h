/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Test-and-test-and-set spin lock for critical sections of a few dozen instructions on
 * the data path. After a while a waiter yields, because on a machine with few cores the
 * holder may have been preempted. After several yields it sleeps: in a real-time class
 * a yield gives the processor to no thread of lower priority, so a holder of lower
 * priority would never run and release the lock.
 */
#ifndef UTIL_SPIN_H
#define UTIL_SPIN_H

#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

#include "util/cancel.h"
#include "util/container_of.h"

struct spin {
	atomic_uint held;
};

static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
	__builtin_ia32_pause();
#elif defined(__aarch64__)
	__asm__ volatile("yield" ::: "memory");
#endif
}

#define SPIN_TRIES 256    /* before each yield */
#define SPIN_YIELDS 16    /* before each sleep */
#define SPIN_SLEEP_NS 20000

/* Sleeps; cancellation is disabled, because the caller may hold other locks. */
static inline void spin_sleep(void)
{
	CANCEL_OFF;
	const struct timespec pause = { .tv_nsec = SPIN_SLEEP_NS };

	nanosleep(&pause, NULL);
}

/* Waits a little; `tries`: number of failed attempts so far. */
static inline void spin_wait(unsigned tries)
{
	if (tries % SPIN_TRIES)
		cpu_relax();
	else if (tries % (SPIN_TRIES * SPIN_YIELDS))
		sched_yield();
	else
		spin_sleep();
}

static inline bool spin_trylock(struct spin *s)
{
	return atomic_load_explicit(&s->held, memory_order_relaxed) == 0 &&
	       atomic_exchange_explicit(&s->held, 1, memory_order_acquire) == 0;
}

static inline void spin_lock(struct spin *s)
{
	unsigned tries = 0;

	while (unlikely(atomic_exchange_explicit(&s->held, 1,
						 memory_order_acquire))) {
		do {
			spin_wait(++tries);
		} while (atomic_load_explicit(&s->held, memory_order_relaxed));
	}
}

static inline void spin_unlock(struct spin *s)
{
	atomic_store_explicit(&s->held, 0, memory_order_release);
}

/* A hint: the answer may be out of date at once. For callers that have seen a store that the
 * holder makes under the lock, or that try again. */
static inline bool spin_is_held(const struct spin *s)
{
	return atomic_load_explicit(&s->held, memory_order_acquire);
}

#endif
