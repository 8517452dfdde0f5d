/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The turn of a thread (its owner) that sleeps until there is work. Another thread that
 * produced the work, or that spins anyway, may take the turn and do the work, so that
 * the owner need not be woken. The thread that has the turn has exclusive use of all
 * data that belong to it.
 *
 *	owner:   nothing to do: turn_open(t); sleep; turn_close(t)
 *	others:  turn_run(slot), for a slot into which the turn was put by turn_offer()
 *
 * A turn is in one slot at most, where other threads find it. After turn_withdraw() no
 * thread finds it any more, and after turn_close() no other thread runs it; then it
 * may be freed.
 */
#ifndef GATEWAY_BASE_TURN_H
#define GATEWAY_BASE_TURN_H

#include <stdatomic.h>
#include <stdbool.h>

#include "util/spin.h"

enum turn_state {
	TURN_OWN,   /* its owner runs; the state after zeroing */
	TURN_OPEN,  /* its owner sleeps: any thread may take it */
	TURN_TAKEN, /* another thread runs it */
};

struct turn {
	atomic_uint state; /* enum turn_state */
	/*
	 * Does the work that there is, without waiting; called by the thread that
	 * took the turn. False: work is left that only the owner can do, so it
	 * must be woken. Set before the turn is put into a slot.
	 */
	bool (*run)(struct turn *t);
	/* Wakes the owner; set before the turn is offered to spinners. */
	void (*wake)(struct turn *t);
};

struct turn_slot {
	struct spin lock;
	_Atomic(struct turn *) turn; /* NULL: none */
};

/* Owner, before it sleeps: other threads may take the turn from now on. */
static inline void turn_open(struct turn *t)
{
	atomic_store_explicit(&t->state, TURN_OPEN, memory_order_release);
}

/* Owner, after it woke: takes the turn back. Waits shortly while another thread runs it. */
void turn_close(struct turn *t);

/* Put a turn into a slot and take it out. The owner, or the thread that starts and
 * joins it. */
void turn_offer(struct turn_slot *slot, struct turn *t);
void turn_withdraw(struct turn_slot *slot);

/*
 * Runs the turn of `slot` if it is open. Any thread. True: it ran and no work is left.
 * False: the caller has to wake the owner, which will find the work.
 */
bool turn_run(struct turn_slot *slot);

/*
 * Offers a turn to all spinning threads of the process, which run it between two checks
 * of their own work; used for owners that would spin themselves if there were a
 * processor left. False: too many turns are offered already.
 */
bool turn_offer_to_spinners(struct turn *t);
void turn_withdraw_from_spinners(struct turn *t);
/* Does any thread rely on spinning ones? */
bool turn_is_offered_to_spinners(void);
/* A thread that spins calls this to run the offered turns. Cheap when there are none;
 * false then. */
bool turn_run_offered(void);
/* Mark the beginning and the end of the time in which the calling thread calls
 * turn_run_offered() again and again; a second call of either changes nothing.
 * turn_has_spinner() says whether any other thread does. A thread has to end it before it waits
 * for anything else, and before its own end. */
void turn_spinner_begins(void);
/* If no other thread spins any more, wakes the owners of the offered turns, because they
 * must do their work themselves from now on. */
void turn_spinner_ends(void);
bool turn_has_spinner(void);

#endif
