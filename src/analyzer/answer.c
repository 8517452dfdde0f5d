/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers to the requests of a flow (IBTA volume 1, 9.7.5); see answer.h. */
#include "analyzer/answer.h"

#include "analyzer/finding.h"
#include "analyzer/pending.h"
#include "analyzer/requests.h"
#include "engine/rc/packet.h"
#include "engine/rc/rules.h"

/* RC_SYN_ACK, RC_SYN_RNR, KIND_NAK, or a reserved kind. */
#define KIND_NAK RC_SYN_SEQUENCE

static unsigned kind_of(const struct analyzer_packet *p)
{
	if (analyzer_operation(p->ib.opcode) != IB_ACKNOWLEDGE || !(p->ib.headers & IB_HAS_AETH))
		return RC_SYN_ACK;
	return p->ib.aeth.syndrome & ~(unsigned)RC_SYN_VALUE;
}

const struct analyzer_request *analyzer_answer_fits(const struct analyzer_flow *f,
						    const struct analyzer_packet *p)
{
	const struct analyzer_request *q = analyzer_requests_find(&f->requests, p->ib.psn);
	uint8_t op = analyzer_operation(p->ib.opcode);

	if (!q || !q->open || q->last_ns > p->when_ns)
		return NULL;
	if (kind_of(p) != RC_SYN_ACK)
		return q;
	if (op == IB_ACKNOWLEDGE)
		return analyzer_wants_data(q->opcode) ? NULL : q;
	if (op == IB_ATOMIC_ACKNOWLEDGE)
		return analyzer_operation(q->opcode) == IB_COMPARE_SWAP ||
				       analyzer_operation(q->opcode) == IB_FETCH_ADD ? q : NULL;
	if (analyzer_operation(q->opcode) != IB_READ_REQUEST)
		return NULL;
	return op != IB_READ_RESPONSE_ONLY || !q->has_address || q->length == p->ib.bytes ? q : NULL;
}

/* Requests before `psn` have been carried out; with `itself`, the one with it, too. */
static void acknowledge(struct analyzer_flow *f, const struct analyzer_packet *p, bool itself)
{
	struct analyzer_request *q;

	while ((q = analyzer_requests_open(&f->requests))) {
		int32_t behind = rc_psn_diff(p->ib.psn, q->psn);

		if (behind < 0 || (behind == 0 && !itself))
			return;
		q->open = false;
		if (!analyzer_wants_data(q->opcode)) {
			q->answers++;
			q->answers_since++;
			q->answer_ns = p->when_ns;
			q->answer_packet = p->number;
		}
	}
}

static void note_answer(struct analyzer_flow *f, struct analyzer_request *q,
			const struct analyzer_packet *p)
{
	struct analyzer_pending *pending = analyzer_pending_by_id(f, f->pending_last);

	q->answers++;
	q->answers_since++;
	q->answer_ns = p->when_ns;
	q->answer_packet = p->number;
	if (!f->answered_any || rc_psn_diff(q->psn, f->answered_psn) > 0)
		f->answered_psn = q->psn;
	f->answered_any = true;
	if (pending && pending->psn == q->psn)
		pending->answer_ns = p->when_ns;
}

static void data(struct analyzer_flow *f, struct analyzer_request *q, const struct analyzer_packet *p)
{
	uint8_t op = analyzer_operation(p->ib.opcode);
	const struct analyzer_pending *pending = analyzer_pending_now(f);

	if (op == IB_READ_RESPONSE_FIRST && p->ib.bytes) {
		f->mtu = p->ib.bytes;
		if (!q->span)
			q->span = (q->length + f->mtu - 1) / f->mtu;
	}
	acknowledge(f, p, false);
	/* A requester that waits on an RNR NAK drops what comes. */
	if (pending && pending->side == ANALYZER_SERVER && pending->psn == q->psn)
		analyzer_ladder_note(f->ladder, p->number, ANALYZER_RUNG_DISCARDED);
	note_answer(f, q, p);
	if (op == IB_READ_RESPONSE_ONLY || op == IB_READ_RESPONSE_LAST || op == IB_ATOMIC_ACKNOWLEDGE)
		q->open = false;
	analyzer_finding_answered(f, q->psn, p->number);
}

static void receiver_not_ready(struct analyzer_flow *f, struct analyzer_request *q,
			       const struct analyzer_packet *p)
{
	struct analyzer_result *r = &f->result;
	struct analyzer_pending *pending;

	acknowledge(f, p, false);
	pending = analyzer_pending_open(f, q, ANALYZER_SERVER, p->when_ns, p->number);
	pending->nominal_ns = r->rnr_nominal_ns = analyzer_rnr_ns(p->ib.aeth.syndrome);
	r->rnr_naks++;
	if (analyzer_takes_receive(q->opcode) && p->when_ns - q->last_ns < ANALYZER_RECEIVE_NS_MAX)
		r->rnr_receives++;
	else
		r->rnr_faults++;
	if (analyzer_is_write(q->opcode) && !r->write_naks++)
		r->write_packet = p->number;
	analyzer_ladder_note(f->ladder, p->number, ANALYZER_RUNG_OPENS);
}

static void sequence_error(struct analyzer_flow *f, struct analyzer_request *q,
			   const struct analyzer_packet *p)
{
	acknowledge(f, p, false);
	f->result.sequence_naks++;
	f->sequence = (struct analyzer_nak){ .valid = true, .psn = p->ib.psn, .when_ns = p->when_ns };
	if (!q || !analyzer_finding_recovered(f, q, p->when_ns, p->number))
		return;
	analyzer_ladder_note(f->ladder, q->last_packet, ANALYZER_RUNG_LOST);
	analyzer_ladder_end(f->ladder);
}

static bool plain(struct analyzer_flow *f, struct analyzer_request *q, const struct analyzer_packet *p)
{
	switch (kind_of(p)) {
	case RC_SYN_RNR:
		if (q)
			receiver_not_ready(f, q, p);
		return q;
	case KIND_NAK:
		if (p->ib.aeth.syndrome == RC_SYN_SEQUENCE) {
			sequence_error(f, q, p);
			return true;
		}
		f->result.refusals++;
		f->result.refusal = p->ib.aeth.syndrome & RC_SYN_VALUE;
		return q;
	default:
		acknowledge(f, p, true);
		analyzer_finding_answered(f, p->ib.psn, p->number);
		return q;
	}
}

bool analyzer_answer_packet(struct analyzer_flow *f, const struct analyzer_packet *p)
{
	struct analyzer_request *q = analyzer_requests_find(&f->requests, p->ib.psn);
	const struct analyzer_request *newest = analyzer_requests_newest(&f->requests);

	f->result.answers++;
	analyzer_ladder_add(f->ladder, p, true);
	if (analyzer_operation(p->ib.opcode) == IB_ACKNOWLEDGE) {
		if (plain(f, q, p))
			return true;
	} else if (q && analyzer_wants_data(q->opcode)) {
		data(f, q, p);
		return true;
	}
	/* An old answer again is harmless; one to a request that is not there yet is not. */
	if (newest && rc_psn_diff(p->ib.psn, newest->psn) <= 0 &&
	    rc_psn_diff(p->ib.psn, analyzer_request_at(&f->requests, 0)->psn) < 0)
		return true;
	f->result.answers_unmatched++;
	return false;
}
