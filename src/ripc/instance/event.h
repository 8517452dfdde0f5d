/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping until something has changed: who changes it signals, who waits takes the number,
 * looks once more whether it has to wait, and sleeps only while the number is the same.
 * Signalling costs one load where nobody sleeps.
 */
#ifndef RIPC_EVENT_H
#define RIPC_EVENT_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

struct event {
	atomic_uint number, sleepers;
	atomic_uint patience; /* see wait.c */
};

static inline void event_signal(struct event *e)
{
	/* Behind the change: either this finds the sleeper, or that one the change. */
	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&e->sleepers, memory_order_relaxed))
		return;
	atomic_fetch_add(&e->number, 1);
	syscall(SYS_futex, &e->number, FUTEX_WAKE_PRIVATE, 1 << 30, NULL, NULL, 0);
}

/* As event_signal(), by the holder of a lock with which it made the change, where the sleeper
 * takes that lock too between event_prepare() and its last look. Needs no fence: either the
 * sleeper had the lock before, and is found, or later, and finds the change. */
static inline void event_signal_locked(struct event *e)
{
	if (atomic_load_explicit(&e->sleepers, memory_order_relaxed))
		event_signal(e);
}

/* Before the last look. */
static inline unsigned event_prepare(struct event *e)
{
	unsigned number;

	atomic_fetch_add(&e->sleepers, 1);
	number = atomic_load(&e->number);
	atomic_thread_fence(memory_order_seq_cst);
	return number;
}

static inline void event_cancel(struct event *e)
{
	atomic_fetch_sub(&e->sleepers, 1);
}

/* In place of event_cancel(). May return early. */
static inline void event_sleep(struct event *e, unsigned number, uint64_t ns)
{
	const struct timespec t = { .tv_sec = (time_t)(ns / 1000000000u),
				    .tv_nsec = (long)(ns % 1000000000u) };

	syscall(SYS_futex, &e->number, FUTEX_WAIT_PRIVATE, number, &t, NULL, 0);
	atomic_fetch_sub(&e->sleepers, 1);
}

#endif
