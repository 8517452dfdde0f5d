/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What was sent and what came back, of one case. No clock inside.
 *
 * The sender notes when each sample went out, the receiver asks for that by its
 * sequence number: so the round trip is right whatever a format on the way makes
 * of timestamps, and also when the wall clock is set meanwhile. One thread each;
 * no lock between them.
 */
#ifndef GATEWAY_NODE_TEST_RTT_TALLY_H
#define GATEWAY_NODE_TEST_RTT_TALLY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/container_of.h"
#include "util/hist.h"

/* Samples that may be under way; a power of two. What comes back later than
 * this many samples counts as lost. */
#define TALLY_WINDOW 65536u

struct tally {
	/* The sender's. */
	cache_aligned uint64_t first;       /* sequence number of the first */
	_Atomic uint64_t sent;
	/* The receiver's. */
	cache_aligned _Atomic uint64_t received;
	uint64_t repeated, late, foreign;   /* came back, but do not count */
	struct hist round_trip_ns;          /* from when they went out */
	struct hist planned_ns;             /* from when they were to go out */
	_Atomic uint64_t sent_ns[TALLY_WINDOW];
	_Atomic uint64_t late_ns[TALLY_WINDOW];
	_Atomic uint8_t back[TALLY_WINDOW]; /* has come back */
};

/* Neither side is active. The first sample will be `first`. */
void tally_begin(struct tally *t, uint64_t first);

/* The next sample goes out, with sequence number first + sent, `late_ns` later than
 * planned. */
void tally_send(struct tally *t, uint64_t now_ns, uint64_t late_ns);

/*
 * A sample came back at `now_ns`. True with its round trip when it counts; else
 * it is of no concern (the sequence number was never sent in this case), came
 * twice, or too late.
 */
bool tally_receive(struct tally *t, uint64_t sequence, uint64_t now_ns,
		   uint64_t *round_trip_ns);

static inline uint64_t tally_sent(const struct tally *t)
{
	return atomic_load_explicit(&t->sent, memory_order_acquire);
}

static inline uint64_t tally_received(const struct tally *t)
{
	return atomic_load_explicit(&t->received, memory_order_acquire);
}

#endif
