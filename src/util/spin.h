/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Test-and-test-and-set spin lock for critical sections of a few dozen
 * instructions on the data path. A waiter yields after a while, because the
 * holder may have been preempted on a machine with few cores. One that has yielded
 * in vain sleeps: in a real-time class yielding leaves the processor to none of a
 * lower priority, so where such a one holds the lock it would never come to let go.
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

/* Whoever waits may hold other locks. */
static inline void spin_sleep(void)
{
	CANCEL_OFF;
	const struct timespec pause = { .tv_nsec = SPIN_SLEEP_NS };

	nanosleep(&pause, NULL);
}

/* The holder does not let go; `tries` of this wait until now. */
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

#endif
