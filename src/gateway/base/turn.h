/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The turn of a thread that waits for work: another thread, which has brought the
 * work or spins anyway, may take the turn and do the work, so that nobody has to be
 * woken. Who has the turn is alone with everything that belongs to it.
 *
 *	owner:   nothing to do: turn_open(t); sleep; turn_close(t)
 *	others:  turn_run(slot) of a slot that the owner has put the turn into
 *
 * A turn lies in up to one slot at a time, where others find it. After turn_withdraw()
 * nobody finds it any more, and after turn_close() nobody is at it; then it may go.
 */
#ifndef GATEWAY_BASE_TURN_H
#define GATEWAY_BASE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "util/spin.h"

enum turn_state {
	TURN_OWN,   /* its owner runs; the state after zeroing */
	TURN_OPEN,  /* its owner sleeps: anybody may take it */
	TURN_TAKEN, /* somebody else runs it */
};

struct turn {
	atomic_uint state; /* enum turn_state */
	/*
	 * Does what there is to do, by who took the turn, without waiting for
	 * anybody; false: something is left that only the owner can do, wake it.
	 * Set before the turn lies in a slot.
	 */
	bool (*run)(struct turn *t);
};

struct turn_slot {
	struct spin lock;
	_Atomic(struct turn *) turn; /* NULL: none */
};

/* Owner. Before it sleeps. */
static inline void turn_open(struct turn *t)
{
	atomic_store_explicit(&t->state, TURN_OPEN, memory_order_release);
}

/* Owner. Waits while somebody is at it, which is short. */
void turn_close(struct turn *t);

/* Owner, or who starts and ends it. */
void turn_offer(struct turn_slot *slot, struct turn *t);
void turn_withdraw(struct turn_slot *slot);

/*
 * Any thread: runs the turn of `slot` if it is open. True when it ran and nothing
 * is left to do; false: wake the owner, who will find the work.
 */
bool turn_run(struct turn_slot *slot);

/*
 * Turns that any thread of the process which spins is to run between its own looks:
 * their owners would spin too, had the machine one more processor. False: there
 * are too many.
 */
bool turn_offer_to_spinners(struct turn *t);
void turn_withdraw_from_spinners(struct turn *t);
/* A thread that spins: those of the others. Cheap when there are none. */
void turn_run_offered(void);
/* Whether somebody runs them: brackets the time in which a thread calls the above. */
void turn_spinner_begins(void);
/* `wake` is called for each offered turn when that was the last one: its owner has to
 * see to its work itself. */
void turn_spinner_ends(void (*wake)(struct turn *t));
bool turn_has_spinner(void);

#endif
