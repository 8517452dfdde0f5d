/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * When to try again to reach a peer that is not there: soon at first, since a peer that
 * was just started or restarted is there in a moment, then less and less often up to an
 * interval; and not in step with others that wait for the same peer.
 *
 * Keeps no clock and no thread: who uses it says what time it is.
 */
#ifndef GATEWAY_PART_BACKOFF_H
#define GATEWAY_PART_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

#define BACKOFF_FIRST_NS 10000000 /* 10 ms */

struct backoff {
	uint64_t at_ns;   /* the next attempt; 0: none is planned */
	uint64_t wait_ns; /* the last wait, without its random part; 0: none yet */
};

/* Plans the next attempt after one that failed. `interval_ns` is the longest wait;
 * the real one differs from it by a quarter at most. */
void backoff_plan(struct backoff *b, uint64_t interval_ns, uint64_t now_ns);

/* Is it time? Once: the attempt is planned no more. */
static inline bool backoff_is_due(struct backoff *b, uint64_t now_ns)
{
	if (!b->at_ns || now_ns < b->at_ns)
		return false;
	b->at_ns = 0;
	return true;
}

/* The peer has been reached: the next loss begins with the first wait. */
static inline void backoff_reset(struct backoff *b)
{
	*b = (struct backoff){ 0 };
}

#endif
