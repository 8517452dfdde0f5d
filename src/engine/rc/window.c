/* SPDX-License-Identifier: BSD-2-Clause */
/* How many packets may be unacknowledged; see window.h. */
#include "engine/rc/window.h"

#include <string.h>

#include "engine/rc/rules.h"

/* With each measurement the limit that a loss has lowered grows by this part of `least`. */
#define GROW_PART 4
/* A gap between acknowledgements that a thread without a processor may have caused. */
#define STALL_NS UINT64_C(500000)
/* All that was on its way at a gap is acknowledged in this part of the gap: it was a stall. */
#define BURST_PART 4
/* Each measurement takes this part of what stalls have added. */
#define RETURN_PART 64

static uint32_t least_of(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

static uint32_t most_of(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

void rc_window_open(struct rc_window *w, uint32_t least, uint32_t usual, uint32_t most)
{
	memset(w, 0, sizeof(*w));
	w->least = least;
	w->usual = most_of(usual, least);
	w->most = w->limit = most_of(most, w->usual);
	w->size = w->usual;
}

static void measure(struct rc_window *w, uint32_t packets, uint64_t took_ns)
{
	uint64_t carried;

	took_ns += !took_ns;
	if (!w->delay_ns || took_ns < w->delay_ns)
		w->delay_ns = took_ns;
	/* In `took_ns` so many packets have come through, some of it was spent in queues. */
	carried = packets * w->delay_ns / took_ns;
	w->limit = least_of(w->limit + w->least / GROW_PART, w->most);
	w->stalled -= least_of(w->stalled, w->stalled / RETURN_PART + 1);
	w->size = least_of(w->usual + 2 * (uint32_t)carried + w->stalled, w->limit);
}

/* Looks for the two ends of a gap, and judges it. */
static void look_for_stall(struct rc_window *w, uint32_t unacked, uint32_t top, uint64_t now_ns)
{
	uint64_t from = w->advanced_ns > w->since_ns ? w->advanced_ns : w->since_ns;

	if (w->closed && now_ns - from >= STALL_NS) {
		w->gap_ns = now_ns - from;
		w->gap_psn = top;
		w->resumed_ns = now_ns;
	}
	if (w->gap_ns && rc_psn_diff(unacked, w->gap_psn) >= 0) {
		if (now_ns - w->resumed_ns <= w->gap_ns / BURST_PART) {
			w->stalled = least_of(2 * w->size, w->limit);
			w->size = w->stalled;
		}
		w->gap_ns = 0;
	}
	w->advanced_ns = now_ns;
}

void rc_window_advanced(struct rc_window *w, uint32_t unacked, uint32_t top, uint64_t now_ns)
{
	look_for_stall(w, unacked, top, now_ns);
	if (!w->timed || rc_psn_diff(unacked, w->psn) <= 0)
		return;
	w->timed = false;
	measure(w, (uint32_t)rc_psn_diff(unacked, w->from), now_ns - w->since_ns);
}

void rc_window_lost(struct rc_window *w)
{
	rc_window_repeat(w);
	w->limit = most_of(w->size / 2, w->least);
	w->size = least_of(w->size, w->limit);
	w->stalled = 0;
}
