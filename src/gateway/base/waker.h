/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Wakes the one sleeping consumer of lock-free queues. A producer needs one atomic
 * addition and one load, and a system call only if the consumer sleeps.
 *
 *	consumer: g = waker_prepare(w); check the queues;
 *	          if they are empty: waker_wait(w, g, timeout_ns)
 *	producer: push; waker_wake(w)
 *
 * A waker_wake() between prepare and wait makes the wait return at once.
 */
#ifndef GATEWAY_BASE_WAKER_H
#define GATEWAY_BASE_WAKER_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct waker {
	atomic_uint generation;
	atomic_uint sleeping;
};

static inline unsigned waker_prepare(struct waker *w)
{
	return atomic_load(&w->generation);
}

static inline void waker_wait(struct waker *w, unsigned generation,
			      uint64_t timeout_ns)
{
	struct timespec t = { .tv_sec = (time_t)(timeout_ns / 1000000000),
			      .tv_nsec = (long)(timeout_ns % 1000000000) };

	atomic_store(&w->sleeping, 1);
	/* The kernel compares once more, so a wake in between is not lost. */
	syscall(SYS_futex, &w->generation, FUTEX_WAIT_PRIVATE, generation, &t,
		NULL, 0);
	atomic_store(&w->sleeping, 0);
}

static inline void waker_wake(struct waker *w)
{
	atomic_fetch_add(&w->generation, 1);
	if (atomic_load(&w->sleeping))
		syscall(SYS_futex, &w->generation, FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
}

#endif
