/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plans attempts to reach a peer that is absent. The first waits are short, because a peer
 * that was just started or restarted is ready soon; later waits grow up to an interval.
 * A random part keeps several nodes from trying at the same time.
 *
 * It reads no clock and has no thread: the caller passes the time.
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

/* Whether the planned attempt is due; if so, forgets the plan. */
static inline bool backoff_is_due(struct backoff *b, uint64_t now_ns)
{
	if (!b->at_ns || now_ns < b->at_ns)
		return false;
	b->at_ns = 0;
	return true;
}

/* The peer was reached: after the next loss the waits begin with the first one again. */
static inline void backoff_reset(struct backoff *b)
{
	*b = (struct backoff){ 0 };
}

#endif
