/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counts threads that copy by a key, for a thread that withdraws the key. A thread that copies
 * counts itself in before it looks at the key, and out when the copy is done. A thread that has
 * withdrawn a key waits until those that were counted then are out; a thread that counts itself
 * in later does not find the key. There are two counts, so that the one that is waited for only
 * falls.
 */
#ifndef HCA_COPIES_H
#define HCA_COPIES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "util/fence.h"

struct hca_copies {
	atomic_uint under_way[2], phase;
};

/* Around each look at a key and the copy that follows. Between the two calls the thread waits for
 * leaf locks only. The returned number is for hca_copy_end(). */
static inline unsigned hca_copy_begin(struct hca_copies *c)
{
	unsigned turn = atomic_load_explicit(&c->phase, memory_order_relaxed) & 1;

	atomic_fetch_add(&c->under_way[turn], 1);
	/* The count is visible before the key is looked at. */
	fence_behind_exchange();
	return turn;
}

static inline void hca_copy_end(struct hca_copies *c, unsigned turn)
{
	atomic_fetch_sub_explicit(&c->under_way[turn], 1, memory_order_release);
}

/* Waits until the threads that copy now have finished. */
void hca_copies_wait(struct hca_copies *c);
/* Does any thread copy? Does not wait. */
bool hca_copies_any(struct hca_copies *c);
/* In a forked child: none does. */
void hca_copies_forked(struct hca_copies *c);

#endif
