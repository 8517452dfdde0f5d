/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Suspects pitfalls of on-demand paging from an adapter's counters, without packets. Each interval
 * of the counters has a kind; the gravest is the verdict. Counters are of a whole port, so they can
 * name no connection, and a confidence is never high.
 *
 * Pure: numbers with their times in, a verdict out; no clock. The rules are those of busbar-trace(1).
 */
#ifndef ANALYZER_COUNTERS_H
#define ANALYZER_COUNTERS_H

#include "analyzer/result.h"

enum analyzer_counter {
	ANALYZER_COUNT_TIMEOUTS,   /* of requests that this side sent */
	ANALYZER_COUNT_RNR_NAKS,   /* received */
	ANALYZER_COUNT_SEQUENCE,   /* NAKs for a lost packet, received */
	ANALYZER_COUNT_GAPS,       /* packets that were missing in what was received */
	ANALYZER_COUNT_REPEATS,    /* requests that were sent or received again */
	ANALYZER_COUNT_REQUESTS,   /* requests that were completed or received */
	ANALYZER_COUNT_GIVEN_UP,   /* requests whose retries were used up */
	ANALYZER_COUNT_PAGE_FAULTS,
	ANALYZER_COUNT_BYTES,      /* of the port, both directions */
	ANALYZER_COUNT_DAMAGED,    /* packets that the port dropped or found damaged */
	ANALYZER_COUNTS,
};

/* How much each counter has grown in an interval. */
struct analyzer_interval {
	int64_t begin_ns, end_ns;
	uint64_t grown[ANALYZER_COUNTS];
	uint32_t known;            /* bits 1 << enum analyzer_counter; the others are 0 */
};

/* Zero at the start. */
struct analyzer_counters {
	uint64_t grown[ANALYZER_COUNTS];       /* in all intervals */
	uint64_t intervals[ANALYZER_NONE + 1]; /* of each kind */
	uint32_t known;
	int64_t rnr_ns, fault_ns, loss_ns;     /* the end of the last interval with one */
	bool any_rnr, any_fault, any_loss;
	uint64_t rnr_before;       /* RNR NAKs of the interval before, whose repeats may come in this one */
	int64_t quiet_ns;          /* how long the port has had next to no bytes */
	int64_t quiet_max_ns;      /* the longest such time before a timeout behind an RNR NAK */
	uint64_t stalls;           /* timeouts that are taken for damming */
	enum analyzer_side side;   /* of the last of them */
};

/* The kind of the interval; intervals come in the order of their times. */
enum analyzer_kind analyzer_counters_add(struct analyzer_counters *c, const struct analyzer_interval *i);
/* The gravest kind of all intervals. */
enum analyzer_kind analyzer_counters_verdict(const struct analyzer_counters *c);
enum analyzer_confidence analyzer_counters_confidence(const struct analyzer_counters *c,
						      enum analyzer_kind kind);
/* Can the kind not be found, or not be told from others, with the counters that are known? Why:
 * a text, or NULL if it can. For the pitfalls. */
const char *analyzer_counters_doubt(uint32_t known, enum analyzer_kind kind);

#endif
