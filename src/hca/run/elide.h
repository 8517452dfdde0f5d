/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Lock elision: the locks of the data path cost nothing while one thread uses it.
 *
 * Most programs have one thread that posts and polls. It becomes the owner of the data
 * path: between hca_enter() and hca_leave() it takes no locks, and only sets its byte
 * `inside`. Any other thread (the progress thread, a second thread of the application)
 * increments `others`, executes membarrier(2), and waits until the owner is outside. From
 * then on all threads take the locks, until no such thread is left. So the owner pays two
 * plain stores and a load instead of a locked instruction per lock, and the other thread
 * pays a system call.
 *
 * When two application threads use the data path all the time, or the kernel has no
 * membarrier, elision is switched off and all threads take the locks.
 *
 * A thread that takes one of these locks outside of hca_enter() is counted in `others` as
 * long as it holds any of them. That is correct everywhere, but slow.
 *
 * These locks are taken with hca_lock(): sq_lock, post_lock, consume_lock, cq.lock, and
 * rx_lock, ack_lock and tx_lock of links. Between hca_enter() and hca_leave() a thread must
 * not wait for another thread, except for these locks.
 */
#ifndef HCA_ELIDE_H
#define HCA_ELIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/container_of.h"
#include "util/spin.h"

/*
 * How many owners there may be in succession; the last one remains the owner. A thread that
 * is interrupted after it has found itself to be the owner may continue much later, when it
 * is no longer. What it then stores in `inside` must not be taken for the state of the new
 * owner. So each owner has a byte that no other owner ever uses.
 */
#define HCA_OWNERS 32u

struct hca_channel;

struct hca_self {
	uint32_t depth;     /* nesting of hca_enter() */
	uint32_t auto_held; /* locks held that were taken outside of it */
	uint32_t streak;    /* slow entries since another thread's last one, close together */
	/* Counts of polls, cq.c. A poll in vain that takes as long as others of shared memory counts
	 * as many. */
	uint32_t since_move, polls;
	/* Not NULL: the thread is inside as the owner and takes no locks. Points to its
	 * byte of hca_elision.inside. */
	_Atomic uint8_t *elided;
	uint32_t beside;    /* slow entries of the owner */
	bool yielded;       /* hca_yield() has given its processor away */
	bool polls_found;   /* a poll found a completion since the last pause, cq.c */
	uint64_t vain_since_ns; /* when hca_yield() was first called since then; 0: not */
	/* The channel for whose events the thread waits, and moves messages meanwhile; channel.c. */
	struct hca_channel *waits_for;
	bool looked; /* it has moved messages so, and armed no queue since */
	/* Counted in hca_elision.others by hca_enter(), and by hca_lock_outside(). */
	bool announced, auto_announced;
	bool progress; /* it is the progress thread */
	uint64_t entered_ns; /* the last slow entry */
} __attribute__((aligned(HCA_OWNERS)));

struct hca_elision {
	/* The address of the owner's hca_self, with its index of `inside` in the low bits;
	 * 0: no owner yet. */
	cache_aligned _Atomic uintptr_t owner;
	_Atomic uint8_t inside[HCA_OWNERS]; /* 1: this owner is inside and takes no locks */
	_Atomic uint32_t others; /* threads that take the locks */
	_Atomic bool off;        /* elision is switched off; `others` remains above 0 */
};

extern struct hca_elision hca_elision;
extern _Thread_local struct hca_self hca_self
	__attribute__((tls_model("initial-exec")));

/* When the adapter starts. Threads may be inside already. */
void hca_elision_start(void);
/* In a forked child. */
void hca_elision_forked(void);
/* Gives the processor to the thread that the caller waits for, for the `nth` time in a row: the
 * progress thread sleeps, 10 us at first and 160 at most, others yield. */
void hca_make_way(unsigned nth);
/* hca_enter() for long work: the caller takes the locks even if it is the owner, so that other
 * threads wait only for locks that it holds. */
void hca_enter_with_locks(void);
/* The slow cases of the inline functions below. */
void hca_enter_slow(void);
void hca_leave_slow(void);
void hca_lock_outside(struct spin *s);
void hca_unlock_outside(struct spin *s);

/* Begins work on the data path; may be nested. Does not wait for the owner if the caller is it. */
static inline void hca_enter(void)
{
	uintptr_t owner, nth;

	if (unlikely(hca_self.depth++))
		return;
	owner = atomic_load_explicit(&hca_elision.owner, memory_order_relaxed);
	nth = owner - (uintptr_t)&hca_self;
	if (likely(nth < HCA_OWNERS)) {
		_Atomic uint8_t *inside = &hca_elision.inside[nth];

		atomic_store_explicit(inside, 1, memory_order_relaxed);
		/* Another thread executes a membarrier after it has incremented `others`;
		 * it acts as a fence here, too. */
		atomic_signal_fence(memory_order_seq_cst);
		/* `owner` again: this thread may have been interrupted for long since. */
		if (likely(atomic_load_explicit(&hca_elision.others,
						memory_order_acquire) == 0 &&
			   atomic_load_explicit(&hca_elision.owner,
						memory_order_relaxed) ==
				   owner)) {
			hca_self.elided = inside;
			return;
		}
		atomic_store_explicit(inside, 0, memory_order_release);
	}
	hca_enter_slow();
}

static inline void hca_leave(void)
{
	_Atomic uint8_t *inside = hca_self.elided;

	if (unlikely(--hca_self.depth))
		return;
	if (likely(inside)) {
		hca_self.elided = NULL;
		atomic_store_explicit(inside, 0, memory_order_release);
		return;
	}
	if (hca_self.announced)
		hca_leave_slow();
}

/* Is there an owner, and in a call now? It may have changed when this returns. */
static inline bool hca_owner_inside(void)
{
	uintptr_t owner = atomic_load(&hca_elision.owner);

	return owner && atomic_load(&hca_elision.inside[owner % HCA_OWNERS]);
}

static inline void hca_lock(struct spin *s)
{
	if (likely(hca_self.elided))
		return;
	if (likely(hca_self.depth))
		spin_lock(s);
	else
		hca_lock_outside(s);
}

static inline void hca_unlock(struct spin *s)
{
	if (likely(hca_self.elided))
		return;
	if (likely(hca_self.depth))
		spin_unlock(s);
	else
		hca_unlock_outside(s);
}

/* Only between hca_enter() and hca_leave(). */
static inline bool hca_trylock(struct spin *s)
{
	return likely(hca_self.elided) || spin_trylock(s);
}

/*
 * Only between hca_enter() and hca_leave(). True: no other thread is inside or holds one of
 * these locks, and a thread that enters later sees all stores made before this call. False
 * also if that is not known (elision is off).
 */
static inline bool hca_alone(void)
{
	/* Other threads wait until an owner that takes no locks is outside. */
	return hca_self.elided ||
	       (!atomic_load(&hca_elision.off) &&
		atomic_load(&hca_elision.others) == 1);
}

#endif
