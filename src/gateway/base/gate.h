/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gate in front of an operation that one thread, the user, performs all the time (a
 * node's read, its write, a path's output). Other threads shut the gate now and then to
 * stop or change what the operation uses.
 *
 *	user:    if (gate_enter(g)) { ...; gate_leave(g); } else gate_wait(g, t)
 *	others:  gate_shut(g, why); until (gate_is_empty(g)) ...;
 *	         change things; gate_open(g, why)
 *
 * Each side stores its own word and then loads the other's, which needs a full memory
 * barrier between store and load. Where the kernel can run a barrier on all threads
 * (membarrier), gate_shut() has it do so for the user too; then passing the gate
 * needs no locked instruction.
 */
#ifndef GATEWAY_BASE_GATE_H
#define GATEWAY_BASE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/container_of.h"

enum gate_reason {
	GATE_HOLD = 1 << 0,   /* for a moment: the user waits */
	GATE_PAUSED = 1 << 1,
	GATE_STOPPED = 1 << 2,
};

struct gate {
	atomic_uint shut;     /* enum gate_reason; 0: open */
	atomic_uint busy;     /* the user is inside */
};

/* Set once by gate_init_all(), before other threads start. */
extern bool gate_barrier_by_kernel;

/* Finds out whether the kernel has membarrier. Cheap to repeat. */
void gate_init_all(void);

/* User: enters without waiting. False: the gate is shut, the user is outside. */
static inline bool gate_enter(struct gate *g)
{
	atomic_store_explicit(&g->busy, 1, memory_order_relaxed);
	if (unlikely(!gate_barrier_by_kernel))
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	if (likely(!atomic_load_explicit(&g->shut, memory_order_acquire)))
		return true;
	atomic_store_explicit(&g->busy, 0, memory_order_release);
	return false;
}

/* User, after gate_enter() or gate_pass() returned true. */
static inline void gate_leave(struct gate *g)
{
	atomic_store_explicit(&g->busy, 0, memory_order_release);
}

/* The reasons for which the gate is shut (enum gate_reason); 0: it is open. */
static inline unsigned gate_reasons(struct gate *g)
{
	return atomic_load_explicit(&g->shut, memory_order_relaxed);
}

/* After this call the user cannot enter; it may still be inside until
 * gate_is_empty(). Any thread but the user. */
void gate_shut(struct gate *g, unsigned reasons);
bool gate_is_empty(struct gate *g);
/* Removes `reasons`; wakes the user when no reason is left. */
void gate_open(struct gate *g, unsigned reasons);

/* User: sleeps while the gate is shut, at most `timeout_ns`. */
void gate_wait(struct gate *g, uint64_t timeout_ns);
/* User: enters; waits while GATE_HOLD is the only reason. False: the gate is shut for
 * another reason. */
bool gate_pass_slow(struct gate *g);

static inline bool gate_pass(struct gate *g)
{
	return likely(gate_enter(g)) || gate_pass_slow(g);
}

/* Ends the user's gate_wait() early, so that it checks its conditions again. */
void gate_wake(struct gate *g);

#endif
