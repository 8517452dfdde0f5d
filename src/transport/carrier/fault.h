/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A filter that treats packets as a bad network does (impair.h), in each direction by
 * parameters of its own that may change at any time. What it holds back it copies;
 * where no parameter is set, no judge is asked and nothing is held back, units pass through
 * as they are, trains too. Otherwise trains are split.
 *
 * A unit with CARRIER_LOST is lost. What it takes and loses counts as taken. It never returns -EAGAIN by itself. A packet that
 * is too long for the carrier below is lost where it was held back; from then on all of its
 * length or more, without CARRIER_FRAGMENTS, are refused at once (-EMSGSIZE).
 */
#ifndef TRANSPORT_CARRIER_FAULT_H
#define TRANSPORT_CARRIER_FAULT_H

#include "transport/carrier/carrier.h"
#include "transport/carrier/impair.h"
#include "util/clock_source.h"

/* What happens to one packet besides what the parameters of its direction say. All zero:
 * nothing. */
struct carrier_fault_verdict {
	bool drop, duplicate;
	bool corrupt;      /* one bit changes, always the same one */
	bool mark;         /* ECN: congestion experienced */
	uint64_t delay_ns; /* later packets overtake it */
};

struct carrier_fault_params {
	struct clock_source clock;
	uint64_t seed;     /* for both directions */
	size_t held_bytes; /* in each direction; beyond it packets are lost. 0: 16 MiB */
	/* The class of a packet (IMPAIR_CLASSES - 1 at most, else 0), for example by the
	 * opcode in its first bytes. Called by emit and poll, with a lock of the filter held:
	 * it looks at the packet and does nothing else. NULL: all are of class 0. */
	unsigned (*classify)(void *arg, const struct carrier_unit *packet);
	void *classify_arg;
	/* While carrier_fault_judge() says so: decides about each packet by itself; *verdict is
	 * zero before. `now_ns` is the time of `clock`. Called by emit and poll, with a lock of
	 * the filter held: it takes no lock that is held across calls of carriers, and calls
	 * none. The packet lies in one piece. Both directions may call at a time. NULL: there is no judge. */
	void (*judge)(void *arg, enum carrier_direction direction,
		      const struct carrier_unit *packet, uint64_t now_ns,
		      struct carrier_fault_verdict *verdict);
	void *judge_arg;
};

/* Over `below`, which is the filter's when this succeeds. 0 or -ENOMEM. */
int carrier_fault_open(struct carrier *below, const struct carrier_fault_params *params,
		       struct carrier **out);

/* From now on; what is held back already stays so. `directions` and `classes` are bit
 * masks. Any thread. */
void carrier_fault_set(struct carrier *c, unsigned directions, unsigned classes,
		       const struct impair_params *params);

/* From now on, is `judge` asked about each packet? No at first. Any thread. */
void carrier_fault_judge(struct carrier *c, bool on);

/* The random numbers of both directions begin anew. Any thread. */
void carrier_fault_seed(struct carrier *c, uint64_t seed);
/* Does everything pass as it is: no parameter is set, no judge is asked, and nothing is held
 * back? Any thread. */
bool carrier_fault_passes(struct carrier *c);

/* Any thread. */
void carrier_fault_count(struct carrier *c, enum carrier_direction direction,
			 unsigned class, struct impair_counters *out);

#endif
