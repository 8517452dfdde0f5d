/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A section that one thread executes at a time and for which no thread waits. A thread
 * that finds another one inside sets a flag, and that one looks for work once more. So
 * work that existed before a call of drainer_enter() is done by some thread after it.
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
