/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Why a request is sent again; see trigger.h. The causes are asked from the surest to the
 * least sure: an RNR NAK or sequence NAK for this request; a go-back that runs already; an
 * answer that the requester dropped; a gap that only a timeout leaves.
 */
#include "analyzer/trigger.h"

#include "analyzer/pending.h"
#include "engine/rc/rules.h"

static bool within(const struct analyzer_request *q, uint32_t psn)
{
	return (uint32_t)rc_psn_diff(psn, q->psn) < (q->span ? q->span : 1);
}

/* A sequence NAK that no resend has followed yet. */
static bool by_sequence(const struct analyzer_flow *f, const struct analyzer_request *q)
{
	return f->sequence.valid && f->sequence.when_ns >= q->last_ns;
}

static bool by_rnr(struct analyzer_flow *f, const struct analyzer_request *q)
{
	const struct analyzer_pending *p = analyzer_pending_now(f);

	return p && p->side == ANALYZER_SERVER && p->open_ns >= q->last_ns;
}

/* The requester waits for the delay of an RNR NAK from the NAK on. */
static struct analyzer_cause rnr(struct analyzer_flow *f, int64_t now_ns)
{
	return (struct analyzer_cause){ .trigger = ANALYZER_BY_RNR,
					.lost_ns = now_ns - analyzer_pending_now(f)->open_ns };
}

static bool by_burst(const struct analyzer_flow *f, const struct analyzer_request *q, int64_t now_ns)
{
	const struct analyzer_burst *b = &f->burst;

	return b->any && now_ns - b->last_ns < ANALYZER_BURST_NS && q->last_ns <= b->begin_ns &&
	       rc_psn_diff(q->psn, b->psn) > 0;
}

/* The requester has the answer, or had it: the capture shows it. */
static struct analyzer_cause answered(const struct analyzer_request *q, int64_t now_ns)
{
	int64_t wait_ns = now_ns - q->answer_ns, gap_ns = now_ns - q->last_ns;

	if (!analyzer_wants_data(q->opcode) || gap_ns >= ANALYZER_DISCARD_NS_MAX)
		return (struct analyzer_cause){
			.trigger = gap_ns >= ANALYZER_TIMEOUT_NS_MIN ? ANALYZER_BY_TIMEOUT :
								       ANALYZER_BY_UNKNOWN,
			.lost_ns = gap_ns };
	return (struct analyzer_cause){
		.trigger = gap_ns >= ANALYZER_DISCARD_NS_MIN ? ANALYZER_BY_DISCARD : ANALYZER_BY_GAP,
		.lost_ns = wait_ns };
}

struct analyzer_cause analyzer_trigger_of(struct analyzer_flow *f, const struct analyzer_request *q,
					  int64_t now_ns)
{
	int64_t gap_ns = now_ns - q->last_ns;

	if (by_rnr(f, q) && q->psn == analyzer_pending_now(f)->psn)
		return rnr(f, now_ns);
	if (by_sequence(f, q) && within(q, f->sequence.psn))
		return (struct analyzer_cause){ .trigger = ANALYZER_BY_SEQUENCE, .lost_ns = gap_ns };
	if (by_burst(f, q, now_ns))
		return (struct analyzer_cause){ .trigger = f->burst.trigger, .follows = true };
	/* The resend of the request that the NAK names was not captured. */
	if (by_rnr(f, q) && rc_psn_diff(q->psn, analyzer_pending_now(f)->psn) > 0)
		return rnr(f, now_ns);
	if (by_sequence(f, q) && rc_psn_diff(q->psn, f->sequence.psn) > 0)
		return (struct analyzer_cause){ .trigger = ANALYZER_BY_SEQUENCE, .lost_ns = gap_ns };
	if (q->answers_since)
		return answered(q, now_ns);
	if (gap_ns >= ANALYZER_TIMEOUT_NS_MIN)
		return (struct analyzer_cause){ .trigger = ANALYZER_BY_TIMEOUT, .lost_ns = gap_ns };
	/* An answer to a later READ tells the requester that this one's was lost. */
	if (analyzer_wants_data(q->opcode) && f->answered_any &&
	    rc_psn_diff(f->answered_psn, q->psn) > 0)
		return (struct analyzer_cause){ .trigger = ANALYZER_BY_GAP, .lost_ns = gap_ns };
	return (struct analyzer_cause){ .trigger = ANALYZER_BY_UNKNOWN, .lost_ns = gap_ns };
}
