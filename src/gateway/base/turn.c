/* SPDX-License-Identifier: BSD-2-Clause */
/* Work that others do for a thread that sleeps; see turn.h. */
#include "gateway/base/turn.h"

#include <stddef.h>

#include "util/container_of.h"

#define OFFERED_MAX 16
/* A turn may lead to another one, of a path behind it; so deep at most. */
#define DEPTH_MAX 4

static struct turn_slot offered[OFFERED_MAX];
static atomic_uint offered_count, spinners;
static _Thread_local unsigned depth;
static _Thread_local bool spins; /* it is one of `spinners` */

void turn_close(struct turn *t)
{
	for (unsigned tries = 0;;) {
		unsigned open = TURN_OPEN;

		if (atomic_compare_exchange_weak_explicit(
			    &t->state, &open, TURN_OWN, memory_order_acquire,
			    memory_order_relaxed))
			return;
		spin_wait(++tries);
	}
}

void turn_offer(struct turn_slot *slot, struct turn *t)
{
	spin_lock(&slot->lock);
	atomic_store_explicit(&slot->turn, t, memory_order_relaxed);
	spin_unlock(&slot->lock);
}

void turn_withdraw(struct turn_slot *slot)
{
	turn_offer(slot, NULL);
}

/* The turn of the slot, taken; NULL: there is none, or it is not open. The lock keeps
 * it where it is until it is taken. */
static struct turn *take(struct turn_slot *slot)
{
	unsigned open = TURN_OPEN;
	struct turn *t;

	spin_lock(&slot->lock);
	t = atomic_load_explicit(&slot->turn, memory_order_relaxed);
	if (t && !atomic_compare_exchange_strong_explicit(
			 &t->state, &open, TURN_TAKEN, memory_order_acquire,
			 memory_order_relaxed))
		t = NULL;
	spin_unlock(&slot->lock);
	return t;
}

bool turn_run(struct turn_slot *slot)
{
	struct turn *t = NULL;
	bool done;

	if (likely(!atomic_load_explicit(&slot->turn, memory_order_relaxed)) ||
	    depth == DEPTH_MAX)
		return false;
	t = take(slot);
	if (!t)
		return false;
	depth++;
	done = t->run(t);
	depth--;
	turn_open(t);
	return done;
}

bool turn_offer_to_spinners(struct turn *t)
{
	for (size_t i = 0; i < OFFERED_MAX; i++) {
		struct turn *none = NULL;

		if (!atomic_compare_exchange_strong(&offered[i].turn, &none, t))
			continue;
		atomic_fetch_add(&offered_count, 1);
		return true;
	}
	return false;
}

void turn_withdraw_from_spinners(struct turn *t)
{
	for (size_t i = 0; i < OFFERED_MAX; i++) {
		if (atomic_load(&offered[i].turn) != t)
			continue;
		turn_withdraw(&offered[i]);
		atomic_fetch_sub(&offered_count, 1);
		return;
	}
}

bool turn_is_offered_to_spinners(void)
{
	return atomic_load_explicit(&offered_count, memory_order_relaxed);
}

bool turn_run_offered(void)
{
	if (likely(!turn_is_offered_to_spinners()))
		return false;
	for (size_t i = 0; i < OFFERED_MAX; i++)
		turn_run(&offered[i]);
	return true;
}

void turn_spinner_begins(void)
{
	if (likely(spins))
		return;
	spins = true;
	atomic_fetch_add(&spinners, 1);
}

void turn_spinner_ends(void)
{
	if (likely(!spins))
		return;
	spins = false;
	if (atomic_fetch_sub(&spinners, 1) != 1 ||
	    !atomic_load(&offered_count))
		return;
	for (size_t i = 0; i < OFFERED_MAX; i++) {
		struct turn *t;

		spin_lock(&offered[i].lock);
		t = atomic_load(&offered[i].turn);
		if (t)
			t->wake(t);
		spin_unlock(&offered[i].lock);
	}
}

bool turn_has_spinner(void)
{
	return atomic_load_explicit(&spinners, memory_order_seq_cst) > (spins ? 1 : 0);
}
