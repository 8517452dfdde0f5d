/* SPDX-License-Identifier: BSD-2-Clause */
/* A request packet of a flow; see request.h. */
#include "analyzer/request.h"

#include "analyzer/finding.h"
#include "analyzer/pending.h"
#include "analyzer/trigger.h"
#include "engine/rc/rules.h"

/* A PSN that is further away belongs to another connection with the same QP number. */
#define PSN_JUMP (1 << 20)
#define FLOOD_SENDS 4

void analyzer_request_retire(struct analyzer_shared *all, struct analyzer_flow *f,
			     const struct analyzer_request *q)
{
	if (!q->sends)
		return;
	if (analyzer_operation(q->opcode) == IB_READ_REQUEST)
		analyzer_pages_done(&all->pages, q);
	/* Later requests were answered, so this one was; or the capture lacks the answer. */
	if (!q->open && !q->answers && analyzer_wants_data(q->opcode))
		f->result.answers_missing++;
}

/* PSNs of the answers of a READ; 0: not known. */
static uint32_t span_of(const struct analyzer_flow *f, const struct analyzer_packet *p)
{
	uint32_t length = p->ib.reth.length;

	if (analyzer_operation(p->ib.opcode) != IB_READ_REQUEST)
		return 1;
	if (!(p->ib.headers & IB_HAS_RETH))
		return 0;
	if (length <= 256)
		return 1;
	return f->mtu ? (length + f->mtu - 1) / f->mtu : 0;
}

/* PSNs between the newest request and this one that no packet had. */
static void count_missing(struct analyzer_flow *f, uint32_t psn)
{
	struct analyzer_request *newest = analyzer_requests_newest(&f->requests);
	int32_t behind = newest ? rc_psn_diff(psn, newest->psn) : 0;

	if (behind <= 0)
		return;
	if (!newest->span)
		newest->span = (uint32_t)behind;
	if ((uint32_t)behind > newest->span)
		f->result.requests_missing += (uint32_t)behind - newest->span;
}

static void describe(struct analyzer_flow *f, struct analyzer_request *q, const struct analyzer_packet *p)
{
	q->opcode = p->ib.opcode;
	q->span = span_of(f, p);
	q->open = true;
	q->sends = 1;
	q->first_ns = q->last_ns = p->when_ns;
	q->first_packet = q->last_packet = p->number;
	if (p->ib.headers & IB_HAS_RETH) {
		q->has_address = true;
		q->va = p->ib.reth.va;
		q->length = p->ib.reth.length;
		q->rkey = p->ib.reth.rkey;
	}
}

static void fresh(struct analyzer_shared *all, struct analyzer_flow *f, const struct analyzer_packet *p)
{
	struct analyzer_request *q, forgotten;
	uint32_t window = analyzer_pending_window(f, p->ib.psn, p->when_ns);

	count_missing(f, p->ib.psn);
	q = analyzer_requests_add(&f->requests, p->ib.psn, &all->budget, &forgotten);
	f->result.forgotten += forgotten.sends && forgotten.open;
	analyzer_request_retire(all, f, &forgotten);
	if (!q)
		return;
	describe(f, q, p);
	q->pending = window;
	f->result.requests++;
	f->result.writes += analyzer_is_write(q->opcode);
	f->result.good_bytes += p->ib.bytes;
	if (analyzer_operation(q->opcode) == IB_READ_REQUEST)
		f->result.good_bytes += q->length;
}

static void count_inflation(struct analyzer_result *r, double factor)
{
	unsigned bin = ANALYZER_INFLATIONS - 1;

	if (factor < 0) /* the clock of the capture was set back */
		return;
	if (factor < bin)
		bin = (unsigned)factor;
	r->inflation[bin]++;
	r->inflation_sum += factor;
	if (!r->rnr_waits++ || factor < r->inflation_min)
		r->inflation_min = factor;
	if (factor > r->inflation_max)
		r->inflation_max = factor;
}

/* The resend behind an RNR NAK. If it is of a later request, the resend of the refused one
 * was not captured, and the wait is not known. */
static void after_rnr(struct analyzer_flow *f, const struct analyzer_request *q,
		      const struct analyzer_packet *p)
{
	struct analyzer_pending *pending = analyzer_pending_now(f);

	if (!pending)
		return;
	if (q->psn == pending->psn && pending->nominal_ns)
		count_inflation(&f->result, (double)(p->when_ns - pending->open_ns) /
						    (double)pending->nominal_ns);
	analyzer_pending_close(pending, p->when_ns, p->number);
	analyzer_ladder_note(f->ladder, p->number, ANALYZER_RUNG_CLOSES);
}

/* The requester dropped an answer; only the resend shows that. */
static void after_discard(struct analyzer_shared *all, struct analyzer_flow *f,
			  struct analyzer_request *q, const struct analyzer_packet *p)
{
	struct analyzer_pending *pending = analyzer_pending_open(f, q, ANALYZER_CLIENT, q->answer_ns,
								 q->answer_packet);

	pending->answer_ns = q->answer_ns;
	analyzer_pending_close(pending, p->when_ns, p->number);
	analyzer_ladder_note(f->ladder, q->answer_packet,
			     ANALYZER_RUNG_DISCARDED | ANALYZER_RUNG_OPENS);
	analyzer_ladder_note(f->ladder, p->number, ANALYZER_RUNG_CLOSES);
	if (analyzer_operation(q->opcode) != IB_READ_REQUEST)
		return;
	analyzer_pages_discard(&all->pages, q);
	if (++q->discards < FLOOD_SENDS - 1)
		return;
	if (q->discards == FLOOD_SENDS - 1) {
		if (!f->result.flood_requests++) {
			f->result.flood_begin_ns = q->first_ns;
			f->result.flood_packet = p->number;
		}
		f->result.flood_resends += q->discards - 1;
	}
	f->result.flood_resends++;
	f->result.flood_bytes += q->length;
	f->result.flood_end_ns = p->when_ns;
}

/* No NAK is visible. The wait is that of a pending period, which may have been one. */
static void after_unknown(struct analyzer_flow *f, const struct analyzer_request *q,
			  const struct analyzer_packet *p)
{
	struct analyzer_pending *pending;

	if (p->when_ns - q->last_ns < ANALYZER_DISCARD_NS_MIN)
		return;
	pending = analyzer_pending_open(f, q, ANALYZER_SIDE_UNKNOWN, q->last_ns, q->last_packet);
	analyzer_pending_close(pending, p->when_ns, p->number);
}

static void after_timeout(struct analyzer_flow *f, const struct analyzer_request *q,
			  const struct analyzer_packet *p, struct analyzer_cause *cause)
{
	enum analyzer_kind kind;

	f->burst.finding = analyzer_finding_timeout(f, q, p->when_ns, p->number, &kind);
	f->result.timeouts++;
	if (kind == ANALYZER_DAMMING)
		cause->trigger = ANALYZER_BY_DAMMING;
	if (!q->answers)
		analyzer_ladder_note(f->ladder, q->last_packet, ANALYZER_RUNG_LOST);
	analyzer_ladder_end(f->ladder);
}

/* The first of a go-back. */
static void lead(struct analyzer_shared *all, struct analyzer_flow *f, struct analyzer_request *q,
		 const struct analyzer_packet *p, struct analyzer_cause *cause)
{
	f->burst = (struct analyzer_burst){ .any = true, .finding = -1, .begin_ns = p->when_ns };
	switch (cause->trigger) {
	case ANALYZER_BY_RNR: after_rnr(f, q, p); break;
	case ANALYZER_BY_SEQUENCE: f->sequence.valid = false; break;
	case ANALYZER_BY_DISCARD: after_discard(all, f, q, p); break;
	case ANALYZER_BY_TIMEOUT: after_timeout(f, q, p, cause); break;
	case ANALYZER_BY_UNKNOWN: after_unknown(f, q, p); break;
	default: break;
	}
	f->burst.trigger = cause->trigger;
	f->result.lost_ns[cause->trigger] += cause->lost_ns > 0 ? cause->lost_ns : 0;
}

static void follow(struct analyzer_flow *f, const struct analyzer_request *q)
{
	if (f->burst.finding < 0)
		return;
	f->result.finding[f->burst.finding].stuck++;
	if (!q->answers)
		analyzer_ladder_note(f->ladder, q->last_packet, ANALYZER_RUNG_LOST);
}

static void count_writes(struct analyzer_flow *f, struct analyzer_request *q,
			 enum analyzer_trigger trigger)
{
	if (trigger != ANALYZER_BY_RNR || !analyzer_is_write(q->opcode))
		return;
	f->result.write_resends++;
	f->result.write_distinct += !q->sent_by_rnr;
	q->sent_by_rnr = true;
}

static void again(struct analyzer_shared *all, struct analyzer_flow *f, struct analyzer_request *q,
		  const struct analyzer_packet *p)
{
	struct analyzer_cause cause = analyzer_trigger_of(f, q, p->when_ns);

	if (cause.follows)
		follow(f, q);
	else
		lead(all, f, q, p, &cause);
	f->burst.psn = q->psn;
	f->burst.last_ns = p->when_ns;
	f->result.resends[cause.trigger]++;
	analyzer_ladder_again(f->ladder, p->number, cause.trigger);
	count_writes(f, q, cause.trigger);
	q->sends++;
	q->answers_since = 0;
	q->last_ns = p->when_ns;
	q->last_packet = p->number;
}

/* The QP number has come into use again, or the capture lacks very much. */
static void restart(struct analyzer_shared *all, struct analyzer_flow *f)
{
	for (uint32_t i = 0; i < f->requests.count; i++)
		analyzer_request_retire(all, f, analyzer_request_at(&f->requests, i));
	analyzer_requests_free(&f->requests, &all->budget);
	f->sequence.valid = f->burst.any = f->answered_any = false;
	if (analyzer_pending_now(f))
		analyzer_pending_close(analyzer_pending_now(f), 0, 0);
}

/* The request that the packet repeats; NULL: it is a new one. A requester may ask for the rest
 * of a READ, from a later PSN and address on. */
static struct analyzer_request *repeated(struct analyzer_flow *f, const struct analyzer_packet *p)
{
	struct analyzer_request *q = analyzer_requests_find(&f->requests, p->ib.psn);

	if (!q || q->psn == p->ib.psn)
		return q;
	if (analyzer_operation(p->ib.opcode) != IB_READ_REQUEST || !(p->ib.headers & IB_HAS_RETH))
		return NULL;
	return p->ib.reth.va > q->va && p->ib.reth.va + p->ib.reth.length == q->va + q->length ? q : NULL;
}

void analyzer_request_packet(struct analyzer_shared *all, struct analyzer_flow *f,
			     const struct analyzer_packet *p)
{
	const struct analyzer_request *newest = analyzer_requests_newest(&f->requests);
	int32_t behind = newest ? rc_psn_diff(p->ib.psn, newest->psn) : 0;
	struct analyzer_request *q;

	if (behind > PSN_JUMP || behind < -PSN_JUMP)
		restart(all, f);
	q = repeated(f, p);
	if (p->ib.bytes > f->mtu && (analyzer_operation(p->ib.opcode) == IB_SEND_FIRST ||
				     analyzer_operation(p->ib.opcode) == IB_WRITE_FIRST))
		f->mtu = p->ib.bytes;
	f->result.request_packets++;
	analyzer_ladder_add(f->ladder, p, false);
	if (q)
		again(all, f, q, p);
	else if (f->requests.count && rc_psn_diff(analyzer_request_at(&f->requests, 0)->psn,
							 p->ib.psn) > 0 && behind < 0)
		f->result.resends[ANALYZER_BY_UNKNOWN]++; /* older than what is kept */
	else
		fresh(all, f, p);
}
