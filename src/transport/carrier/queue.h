/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A carrier inside one process: a bounded queue in memory. What is emitted is delivered
 * by a later poll of the same carrier, in order, with the fields of the unit as they
 * were emitted; addresses are not looked at. It loses nothing unless told to.
 *
 * Units are copied once, into a ring of bytes, so that small ones stay in few cache
 * lines. Emitting threads take turns only for reserving room, not for copying.
 */
#ifndef TRANSPORT_CARRIER_QUEUE_H
#define TRANSPORT_CARRIER_QUEUE_H

#include <stdint.h>

#include "transport/carrier/carrier.h"

enum carrier_when_full {
	CARRIER_FULL_AGAIN, /* emit returns -EAGAIN; writable() follows */
	CARRIER_FULL_DROP,  /* emit takes it and drops it, as a network does */
};

struct carrier_queue_params {
	size_t bytes;   /* of the ring, rounded up to a power of two; 0: 256 KiB.
			 * A unit takes up to a quarter of it, with 128 bytes of its own */
	enum carrier_when_full when_full;
	/* The queue is not empty any more: called by an emitting thread, which may hold
	 * locks of queue pairs, so it must neither block nor call the carrier. At least
	 * once for units that come behind a poll that returned less than its budget, and
	 * before the first poll; not for each unit. Also at the end of a poll that has
	 * used up its budget while another thread polled in vain. NULL: the owner polls
	 * anyhow. */
	void (*wake)(void *arg);
	void *wake_arg;
};

struct carrier_queue_counters {
	uint64_t units, bytes;     /* delivered */
	uint64_t dropped;          /* units, by CARRIER_FULL_DROP */
	uint64_t refused;          /* emit calls that ended with too little room */
};

/* 0, -EINVAL (a ring below 4 KiB or above 1 GiB), -ENOMEM. */
int carrier_queue_open(const struct carrier_queue_params *params, struct carrier **out);

/* Any thread; each number is right by itself. */
void carrier_queue_count(struct carrier *c, struct carrier_queue_counters *out);

#endif
