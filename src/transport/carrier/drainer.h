/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One at a time, and nobody waits: who finds another one inside leaves word, and the
 * one inside looks once more before it is gone. So work that was there before a call of
 * drainer_enter() is done by somebody behind that call.
 */
#ifndef TRANSPORT_CARRIER_DRAINER_H
#define TRANSPORT_CARRIER_DRAINER_H

#include <stdatomic.h>
#include <stdbool.h>

struct drainer {
	atomic_bool inside, missed;
};

/* False: another one is inside, and will look again. */
static inline bool drainer_enter(struct drainer *d)
{
	if (!atomic_exchange(&d->inside, true))
		return true;
	/* It leaves before it looks at `missed`: either it sees ours, or we get in. */
	atomic_store(&d->missed, true);
	return !atomic_exchange(&d->inside, true);
}

/* True: look again, by drainer_enter(). */
static inline bool drainer_leave(struct drainer *d)
{
	atomic_store(&d->inside, false);
	return atomic_load_explicit(&d->missed, memory_order_seq_cst) &&
	       atomic_exchange(&d->missed, false);
}

#endif
