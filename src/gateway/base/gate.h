/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A gate in front of something that one thread uses all the time (a node's
 * read, its write, a path's output) and others close now and then, to stop or
 * change what lies behind it.
 *
 *	user:    if (gate_enter(g)) { ...; gate_leave(g); } else gate_wait(g, t)
 *	others:  gate_shut(g, why); until (gate_is_empty(g)) ...;
 *	         change things; gate_open(g, why)
 *
 * Each side stores its word and then looks at the other's, which needs a full
 * barrier between the two. The user's is left to the others where the kernel can
 * run one on all threads (membarrier), so that passing costs no locked
 * instruction.
 */
#ifndef GATEWAY_BASE_GATE_H
#define GATEWAY_BASE_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/container_of.h"

enum gate_reason {
	GATE_HOLD = 1 << 0,   /* for a moment: the user is to wait */
	GATE_PAUSED = 1 << 1,
	GATE_STOPPED = 1 << 2,
};

struct gate {
	atomic_uint shut;     /* enum gate_reason; 0: open */
	atomic_uint busy;     /* the user is behind it */
};

/* Set once by gate_init_all(), before there are threads. */
extern bool gate_barrier_by_kernel;

/* Asks what the kernel can do. Cheap to repeat. */
void gate_init_all(void);

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

static inline void gate_leave(struct gate *g)
{
	atomic_store_explicit(&g->busy, 0, memory_order_release);
}

/* Why it is shut, 0: it is open. */
static inline unsigned gate_reasons(struct gate *g)
{
	return atomic_load_explicit(&g->shut, memory_order_relaxed);
}

/* Nobody enters any more; who is inside may still be. */
void gate_shut(struct gate *g, unsigned reasons);
bool gate_is_empty(struct gate *g);
/* Takes reasons back and wakes the user when none is left. */
void gate_open(struct gate *g, unsigned reasons);

/* Sleeps while it is shut, at most `timeout_ns`. */
void gate_wait(struct gate *g, uint64_t timeout_ns);
/* Enters, waiting where it is only shut for a moment; false: it is shut for one
 * of the other reasons. */
bool gate_pass_slow(struct gate *g);

static inline bool gate_pass(struct gate *g)
{
	return likely(gate_enter(g)) || gate_pass_slow(g);
}

/* Makes the user look around. */
void gate_wake(struct gate *g);

#endif
