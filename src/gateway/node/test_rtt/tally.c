/* SPDX-License-Identifier: BSD-2-Clause */
/* Counting what comes back; see tally.h. */
#include "gateway/node/test_rtt/tally.h"

#include <string.h>

_Static_assert((TALLY_WINDOW & (TALLY_WINDOW - 1)) == 0,
	       "the window is a power of two");

void tally_begin(struct tally *t, uint64_t first)
{
	t->first = first;
	atomic_store(&t->sent, 0);
	atomic_store(&t->received, 0);
	t->repeated = t->late = t->foreign = 0;
	hist_init(&t->round_trip_ns);
	hist_init(&t->planned_ns);
}

void tally_send(struct tally *t, uint64_t now_ns, uint64_t late_ns)
{
	uint64_t n = atomic_load_explicit(&t->sent, memory_order_relaxed);
	unsigned slot = (unsigned)n & (TALLY_WINDOW - 1);

	atomic_store_explicit(&t->sent_ns[slot], now_ns, memory_order_relaxed);
	atomic_store_explicit(&t->late_ns[slot], late_ns, memory_order_relaxed);
	atomic_store_explicit(&t->back[slot], 0, memory_order_relaxed);
	atomic_store_explicit(&t->sent, n + 1, memory_order_release);
}

bool tally_receive(struct tally *t, uint64_t sequence, uint64_t now_ns,
		   uint64_t *round_trip_ns)
{
	uint64_t n = sequence - t->first, sent_ns, late_ns, took;
	unsigned slot = (unsigned)n & (TALLY_WINDOW - 1);

	if (unlikely(n >= tally_sent(t))) {
		t->foreign++;
		return false;
	}
	sent_ns = atomic_load_explicit(&t->sent_ns[slot], memory_order_acquire);
	late_ns = atomic_load_explicit(&t->late_ns[slot], memory_order_acquire);
	/* Looked at behind that: the sender may have taken the slot again, and
	 * is one ahead of what it says. */
	if (unlikely(tally_sent(t) - n >= TALLY_WINDOW - 1)) {
		t->late++;
		return false;
	}
	if (unlikely(atomic_load_explicit(&t->back[slot],
					  memory_order_relaxed))) {
		t->repeated++;
		return false;
	}
	atomic_store_explicit(&t->back[slot], 1, memory_order_relaxed);
	took = now_ns > sent_ns ? now_ns - sent_ns : 0;
	hist_record(&t->round_trip_ns, took);
	hist_record(&t->planned_ns, took + late_ns);
	atomic_store_explicit(&t->received, tally_received(t) + 1,
			      memory_order_release);
	*round_trip_ns = took;
	return true;
}
