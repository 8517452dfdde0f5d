/* SPDX-License-Identifier: BSD-2-Clause */
/* Pitfalls suspected from counters; see counters.h. */
#include "analyzer/counters.h"

/* A timeout is counted so long after the pending period that it follows: 0.43 to 2.1 s were
 * measured. */
#define BEHIND_NS INT64_C(3000000000)
#define REPEATS_MIN 64
#define REPEATS_EACH 4         /* of a request */
#define REPEATS_TIMEOUT 4096   /* of a timeout: those of the requests behind it are not counted */
#define AMPLIFIED_NAKS 4
#define QUIET_BYTES_PER_S 65536
#define QUIET_NS_MIN (300 * INT64_C(1000000)) /* shorter than any timeout of an adapter */

#define BIT(counter) (1u << ANALYZER_COUNT_##counter)

static uint64_t of(const struct analyzer_interval *i, enum analyzer_counter counter)
{
	return i->grown[counter];
}

/* Requests that were not repetitions. Some adapters count repetitions as requests, some do not. */
static uint64_t fresh_requests(const struct analyzer_interval *i)
{
	uint64_t requests = of(i, ANALYZER_COUNT_REQUESTS), repeats = of(i, ANALYZER_COUNT_REPEATS);

	return requests >= repeats ? requests - repeats : requests;
}

static bool are_repeated(const struct analyzer_interval *i)
{
	uint64_t repeats = of(i, ANALYZER_COUNT_REPEATS);

	return i->known & BIT(REQUESTS) && repeats >= REPEATS_MIN &&
	       repeats / REPEATS_EACH > fresh_requests(i) &&
	       repeats / REPEATS_TIMEOUT >= of(i, ANALYZER_COUNT_TIMEOUTS);
}

static bool is_lossy(const struct analyzer_interval *i)
{
	return of(i, ANALYZER_COUNT_SEQUENCE) || of(i, ANALYZER_COUNT_GAPS) ||
	       of(i, ANALYZER_COUNT_DAMAGED);
}

/* Has it happened in this interval, or a little before? */
static bool is_near(bool any, int64_t when_ns, const struct analyzer_interval *i)
{
	return any && i->begin_ns - when_ns <= BEHIND_NS;
}

static void remember(struct analyzer_counters *c, const struct analyzer_interval *i)
{
	c->known |= i->known;
	for (int k = 0; k < ANALYZER_COUNTS; k++)
		c->grown[k] += i->grown[k];
	if (of(i, ANALYZER_COUNT_RNR_NAKS)) {
		c->any_rnr = true;
		c->rnr_ns = i->end_ns;
	}
	if (of(i, ANALYZER_COUNT_PAGE_FAULTS)) {
		c->any_fault = true;
		c->fault_ns = i->end_ns;
	}
	if (is_lossy(i)) {
		c->any_loss = true;
		c->loss_ns = i->end_ns;
	}
}

static enum analyzer_kind timed_out(struct analyzer_counters *c, const struct analyzer_interval *i)
{
	bool rnr = is_near(c->any_rnr, c->rnr_ns, i), fault = is_near(c->any_fault, c->fault_ns, i);

	if (is_near(c->any_loss, c->loss_ns, i))
		return ANALYZER_LOSS;
	/* Requests that were given up met no peer. */
	if ((!rnr && !fault) || of(i, ANALYZER_COUNT_GIVEN_UP))
		return ANALYZER_TIMEOUT;
	c->stalls += of(i, ANALYZER_COUNT_TIMEOUTS);
	c->side = rnr ? ANALYZER_SERVER : ANALYZER_CLIENT;
	if (c->quiet_ns > c->quiet_max_ns)
		c->quiet_max_ns = c->quiet_ns;
	return ANALYZER_DAMMING;
}

static enum analyzer_kind kind_of(struct analyzer_counters *c, const struct analyzer_interval *i)
{
	if (is_lossy(i))
		return ANALYZER_LOSS;
	if (are_repeated(i))
		return of(i, ANALYZER_COUNT_RNR_NAKS) + c->rnr_before >= AMPLIFIED_NAKS ?
			       ANALYZER_WRITE_AMPLIFICATION : ANALYZER_READ_FLOOD;
	if (of(i, ANALYZER_COUNT_TIMEOUTS))
		return timed_out(c, i);
	if (of(i, ANALYZER_COUNT_PAGE_FAULTS))
		return ANALYZER_PAGE_FAULT;
	return of(i, ANALYZER_COUNT_RNR_NAKS) ? ANALYZER_RNR : ANALYZER_NONE;
}

/* After the kind: the interval with the timeout has the bytes of what was sent again. */
static void measure_quiet(struct analyzer_counters *c, const struct analyzer_interval *i)
{
	int64_t length_ns = i->end_ns - i->begin_ns;
	double limit = (double)length_ns / 1e9 * QUIET_BYTES_PER_S;

	if (i->known & BIT(BYTES) && (double)of(i, ANALYZER_COUNT_BYTES) <= limit)
		c->quiet_ns += length_ns;
	else
		c->quiet_ns = 0;
}

enum analyzer_kind analyzer_counters_add(struct analyzer_counters *c, const struct analyzer_interval *i)
{
	enum analyzer_kind kind;

	remember(c, i);
	kind = kind_of(c, i);
	measure_quiet(c, i);
	c->rnr_before = of(i, ANALYZER_COUNT_RNR_NAKS);
	c->intervals[kind]++;
	return kind;
}

enum analyzer_kind analyzer_counters_verdict(const struct analyzer_counters *c)
{
	for (int kind = 0; kind < ANALYZER_NONE; kind++)
		if (c->intervals[kind])
			return (enum analyzer_kind)kind;
	return ANALYZER_NONE;
}

enum analyzer_confidence analyzer_counters_confidence(const struct analyzer_counters *c,
						      enum analyzer_kind kind)
{
	switch (kind) {
	case ANALYZER_DAMMING:
		return c->quiet_max_ns >= QUIET_NS_MIN && c->known & BIT(SEQUENCE) ? ANALYZER_MEDIUM :
										     ANALYZER_LOW;
	case ANALYZER_READ_FLOOD:
		return c->known & BIT(RNR_NAKS) && c->known & BIT(SEQUENCE) ? ANALYZER_MEDIUM :
									     ANALYZER_LOW;
	case ANALYZER_WRITE_AMPLIFICATION:
	case ANALYZER_LOSS:
		return ANALYZER_MEDIUM;
	default:
		return ANALYZER_LOW;
	}
}

const char *analyzer_counters_doubt(uint32_t known, enum analyzer_kind kind)
{
	switch (kind) {
	case ANALYZER_DAMMING:
		if (!(known & BIT(TIMEOUTS)))
			return "without a counter of timeouts no stall is seen";
		return known & (BIT(RNR_NAKS) | BIT(PAGE_FAULTS)) ? NULL :
			       "without a counter of RNR NAKs or page faults it looks like another timeout";
	case ANALYZER_READ_FLOOD:
		return known & BIT(REPEATS) && known & BIT(REQUESTS) ? NULL :
			       "counters of requests and of repeated requests are needed";
	case ANALYZER_WRITE_AMPLIFICATION:
		if (!(known & BIT(RNR_NAKS)))
			return "without a counter of RNR NAKs it looks like a READ flood";
		return analyzer_counters_doubt(known, ANALYZER_READ_FLOOD);
	case ANALYZER_TIMEOUT:
		return known & BIT(TIMEOUTS) ? NULL : "there is no counter of timeouts";
	default:
		return NULL;
	}
}
