/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many unacknowledged packets a requester may have: what the path holds, which is delay
 * times bandwidth, twice, and on top of it what keeps both ends busy on a path without delay.
 * It is measured: from a packet that asks for an acknowledgement until that comes. A loss
 * halves the limit, which then grows again slowly, so that many senders into one receiver
 * do not overflow its buffer for ever.
 *
 * On a busy machine a thread of either end gets no processor for milliseconds. The window then is
 * used up, no acknowledgement comes, and at last those of all packets come together; on a path
 * that is slow they come one behind the other. Such a stall doubles the window, so that the other
 * end has work for as long; it returns while measurements show none. Pure.
 */
#ifndef ENGINE_RC_WINDOW_H
#define ENGINE_RC_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct rc_window {
	uint32_t size;       /* packets now; least <= size <= limit */
	uint32_t least, usual, most;
	uint32_t limit;      /* `most`, but for losses */
	bool closed;         /* it was used up, and little of it is free again */
	bool timed;          /* the members below hold a packet that asks */
	uint32_t psn;        /* its PSN */
	uint32_t from;       /* the oldest unacknowledged PSN when it left */
	uint64_t since_ns;   /* when that was */
	uint64_t delay_ns;   /* the shortest time until such an acknowledgement; 0: unknown */
	/* Stalls. */
	uint32_t stalled;    /* packets on top, for stalls */
	uint64_t advanced_ns; /* when the last packets were acknowledged */
	uint64_t gap_ns;     /* no acknowledgement came for so long, and now they come; 0: none such */
	uint32_t gap_psn;    /* the PSN behind all packets that had left then */
	uint64_t resumed_ns; /* when they began to come */
};

/* `least`: never fewer. `usual`: on a path without delay; `most`: never more; each is at least
 * the one before it. */
void rc_window_open(struct rc_window *w, uint32_t least, uint32_t usual, uint32_t most);

/* A packet left for the first time that asks for an acknowledgement. */
static inline void rc_window_asked(struct rc_window *w, uint32_t psn, uint32_t unacked,
				   uint64_t now_ns)
{
	if (w->timed)
		return;
	w->timed = true;
	w->psn = psn;
	w->from = unacked;
	w->since_ns = now_ns;
}

/* All packets before `unacked` are acknowledged; those before `top` have left. To be called before
 * `closed` is changed. */
void rc_window_advanced(struct rc_window *w, uint32_t unacked, uint32_t top, uint64_t now_ns);
/* Packets are sent again, so the next acknowledgement may be of either. */
static inline void rc_window_repeat(struct rc_window *w)
{
	w->timed = false;
	w->gap_ns = 0;
}
/* The same because one was lost. */
void rc_window_lost(struct rc_window *w);

#endif
