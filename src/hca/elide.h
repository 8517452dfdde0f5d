/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The data path's locks, and how the usual program does without them.
 *
 * Most programs have one thread that posts and polls. It becomes the owner of
 * the data path: between hca_enter() and hca_leave() it takes no lock at all,
 * it only says "inside" in a word of its own. Any other thread (the progress
 * thread, an application's second one) announces itself, makes the owner notice
 * with a membarrier(2), waits until the owner is outside, and from then on all
 * use the locks, until no such thread is left. So the owner pays two plain
 * stores and a load instead of a locked instruction per lock, and the rare one
 * pays a system call.
 *
 * When two application threads are at it all the time, or the kernel has no
 * membarrier, elision is switched off and the locks are what they look like.
 *
 * A thread that takes one of these locks outside of hca_enter() is announced
 * for as long as it holds any: correct everywhere, and slow.
 *
 * The locks that are taken this way: sq_lock, post_lock, consume_lock, cq.lock,
 * and a link's rx_lock, ack_lock and tx_lock. No thread may wait for another
 * one, except for these locks, between hca_enter() and hca_leave().
 */
#ifndef HCA_ELIDE_H
#define HCA_ELIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/container_of.h"
#include "util/spin.h"

/*
 * How often ownership may pass on; then it stays. An owner that is interrupted
 * right after it found itself to be the owner may wake up much later, when it no
 * longer is: whatever it then says of being inside must be nobody else's word.
 * So each owner has a word of its own, which is used by no other, ever.
 */
#define HCA_OWNERS 32u

struct hca_self {
	uint32_t depth;     /* of hca_enter() */
	uint32_t auto_held; /* locks taken outside of it */
	uint32_t streak;    /* slow entries, no other thread's in between */
	uint32_t since_move, polls; /* of poll_cq */
	/* Locks are not taken at the moment: the word in hca_elision that says so;
	 * else NULL. */
	_Atomic uint8_t *elided;
	bool polls_found;   /* one of the last polls found something */
	/* Counted in hca_elision.others, by hca_enter() and by locks outside. */
	bool announced, auto_announced;
} __attribute__((aligned(HCA_OWNERS)));

struct hca_elision {
	/* The address of its hca_self, and in the low bits which one it is. */
	cache_aligned _Atomic uintptr_t owner;
	_Atomic uint8_t inside[HCA_OWNERS]; /* the owner is, without locks */
	_Atomic uint32_t others; /* threads that are, with locks */
	_Atomic bool off;        /* for good; `others` never falls to 0 again */
};

extern struct hca_elision hca_elision;
extern _Thread_local struct hca_self hca_self
	__attribute__((tls_model("initial-exec")));

/* When the adapter is opened; in a forked child. */
void hca_elision_start(void);
void hca_elision_forked(void);
/* As hca_enter(), and nobody waits for the caller while it is inside, except for the
 * locks that it holds: for long work. */
void hca_enter_with_locks(void);
void hca_enter_slow(void);
void hca_leave_slow(void);
void hca_lock_outside(struct spin *s);
void hca_unlock_outside(struct spin *s);

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
		/* Who announces itself has a membarrier for both of us. */
		atomic_signal_fence(memory_order_seq_cst);
		/* The owner still: this thread may have slept for long. */
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

/* Between hca_enter() and hca_leave() only. */
static inline bool hca_trylock(struct spin *s)
{
	return likely(hca_self.elided) || spin_trylock(s);
}

/*
 * Between hca_enter() and hca_leave(): is no other thread there, nor holds one of
 * these locks outside? Whoever comes later finds all that was stored before. False is
 * also the answer when nobody can tell.
 */
static inline bool hca_alone(void)
{
	/* Who wants to come in waits for an owner that goes without locks. */
	return hca_self.elided ||
	       (!atomic_load(&hca_elision.off) &&
		atomic_load(&hca_elision.others) == 1);
}

#endif
