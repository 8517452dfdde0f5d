/* SPDX-License-Identifier: BSD-2-Clause */
/* The sending half of a connection; see requester.h. */
#include "engine/rc/requester.h"

#include <string.h>

/* Is it completed by a response, not by an acknowledgement? */
static bool is_read(const struct rc_wqe *e)
{
	return e->op >= RC_READ || (e->flags & RC_WORD);
}

static bool is_atomic(const struct rc_wqe *e)
{
	return e->op == RC_COMPARE_SWAP || e->op == RC_FETCH_ADD;
}

static struct work_done done(const struct rc_requester *rq)
{
	return (struct work_done){ rq->tail, IBV_WC_SUCCESS };
}

void rc_requester_open(struct rc_requester *rq, const struct rc_requester_params *p)
{
	memset(rq, 0, sizeof(*rq));
	rq->p = *p;
	rq->post_psn = rq->send_psn = rq->unacked = rq->top_psn = rq->asked_psn =
		p->psn & RC_PSN_MASK;
	rq->retries = p->retry_cnt;
	rq->rnr_retries = p->rnr_retry;
	rq->burst = p->burst;
	rc_pace_open(&rq->pace, p->line_bps);
	rc_window_open(&rq->window, p->window, p->window_usual, p->window_most);
}

/* When the packets that have left are sent again, if no answer comes. */
static uint64_t timeout_at(const struct rc_requester *rq, uint64_t now_ns)
{
	return now_ns + (rq->burst ? rq->p.burst_ns / rq->p.burst : rq->p.timeout_ns);
}

/* Number of request packets of the entry: a READ has one, whatever its length. */
static uint32_t requests_of(const struct rc_requester *rq, const struct rc_wqe *e)
{
	return is_read(e) ? 1 : rc_packets(e->length, rq->p.mtu);
}

void rc_post(struct rc_requester *rq)
{
	struct rc_wqe *e = rc_entry(rq, rq->head);
	uint32_t psns = e->op > RC_READ ? 1 : rc_packets(e->length, rq->p.mtu);

	e->first_psn = rq->post_psn;
	e->last_psn = rc_psn_add(rq->post_psn, psns - 1);
	e->requests = rq->post_requests;
	e->ssn = ++rq->post_ssn & RC_PSN_MASK;
	rq->post_psn = rc_psn_add(rq->post_psn, psns);
	rq->post_requests += requests_of(rq, e);
	rq->head++;
}

/* Request packets of all entries before the packet `psn` of entry `e`. */
static uint32_t requests_before(const struct rc_wqe *e, uint32_t psn)
{
	return e->requests +
	       (is_read(e) ? 0 : (psn - e->first_psn) & RC_PSN_MASK);
}

/* Number of unacknowledged request packets before the next packet. */
static uint32_t outstanding(const struct rc_requester *rq, const struct rc_wqe *next)
{
	if (rq->tail == rq->next && rq->unacked == rq->send_psn)
		return 0;
	return requests_before(next, rq->send_psn) -
	       requests_before(rc_entry(rq, rq->tail), rq->unacked);
}

void rc_load(const struct rc_requester *rq, uint32_t *unacked, uint32_t *waiting)
{
	const struct rc_wqe *e = rc_entry(rq, rq->next);

	*unacked = *waiting = 0;
	if (rq->next == rq->head)
		return;
	*unacked = outstanding(rq, e);
	*waiting = rq->post_requests - requests_before(e, rq->send_psn);
}

/* May the entry's first packet, or a READ, be sent now? */
static bool may_begin(const struct rc_requester *rq, const struct rc_wqe *e)
{
	if ((e->flags & RC_FENCE) && rq->reads)
		return false;
	if (is_read(e) && rq->reads >= rq->p.max_rd_atomic)
		return false;
	/* Without credit one message may be sent, which brings new credit (9.7.7.2.5). */
	if (rq->limited && (e->op == RC_SEND || (e->flags & RC_IMM)) &&
	    rc_psn_diff(e->ssn, rq->limit_ssn) > 0)
		return rq->tail == rq->next;
	return true;
}

/* Has a READ room beside what is outstanding? The window is that of the peer's buffer, and its
 * response comes into ours, which is supposed to be as large. */
static bool response_fits(const struct rc_requester *rq, const struct rc_wqe *e)
{
	return e->op != RC_READ || rq->send_psn == rq->unacked ||
	       rc_psn_diff(e->last_psn, rq->unacked) < (int32_t)rq->window.limit;
}

/* Is the next packet the first one of those that are sent again? */
static bool is_first_again(const struct rc_requester *rq)
{
	return rq->send_psn == rq->unacked && rq->top_psn != rq->unacked;
}

/* How many packets from `psn` on, which is the next one, may be sent that do not ask for an
 * acknowledgement: of each half of a window one asks, so that the window advances, and in any
 * case one of the least that it may become. */
static uint32_t may_be_silent(const struct rc_requester *rq, uint32_t psn)
{
	uint32_t half = (rq->window.size + 1) / 2;
	uint32_t period = half < rq->window.least ? half : rq->window.least;
	uint32_t silent = (uint32_t)rc_psn_diff(psn, rq->asked_psn);

	return silent + 1 < period ? period - 1 - silent : 0;
}

static void describe(const struct rc_requester *rq, const struct rc_wqe *e,
		     struct rc_tx *tx)
{
	struct rc_packet *p = &tx->packet;
	uint64_t at = (uint64_t)((rq->send_psn - e->first_psn) & RC_PSN_MASK) *
		      rq->p.mtu;

	*tx = (struct rc_tx){ .index = rq->next, .at = (uint32_t)at };
	p->op = e->op;
	p->psn = rq->send_psn;
	if (is_read(e)) {
		p->flags = RC_FIRST | RC_LAST | RC_ACK_REQ;
		p->rkey = e->rkey;
		/* If a part of the response has come: only the rest. */
		p->remote_addr = e->remote_addr + at;
		p->length = is_atomic(e) ? 8 : e->length - (uint32_t)at;
		p->compare_add = e->compare_add;
		p->swap = e->swap;
		p->flush = e->flush;
		if (e->flags & RC_WORD) {
			p->flags |= RC_WORD;
			p->bytes = e->length;
		}
		return;
	}
	p->bytes = e->length - (uint32_t)at;
	if (p->bytes > rq->p.mtu)
		p->bytes = rq->p.mtu;
	if (rq->send_psn == e->first_psn) {
		p->flags |= RC_FIRST;
		if (e->op == RC_WRITE) {
			p->rkey = e->rkey;
			p->remote_addr = e->remote_addr;
			p->length = e->length;
		}
	}
	if (rq->send_psn == e->last_psn) {
		p->flags |= RC_LAST |
			    (e->flags & (RC_IMM | RC_INVALIDATE | RC_SOLICITED));
		p->imm = e->imm;
	}
	/* What is sent again asks at once: perhaps only an acknowledgement was lost. So do slow
	 * packets, or the timeout would come before the next one that asks. */
	if (rq->p.reliable &&
	    ((p->flags & RC_LAST) || is_first_again(rq) || rc_pace_is_slow(&rq->pace) ||
	     !may_be_silent(rq, rq->send_psn)))
		p->flags |= RC_ACK_REQ;
}

/* How many packets behind that of `tx`, which may be sent now, are middle ones that do not ask
 * for an acknowledgement either. */
static uint32_t more_of(const struct rc_requester *rq, const struct rc_wqe *e,
			const struct rc_packet *p)
{
	uint32_t more, may;

	if (p->flags || is_read(e) || rq->pace.active)
		return 0;
	more = ((e->last_psn - p->psn) & RC_PSN_MASK) - 1;
	if (!rq->p.reliable)
		return more;
	may = may_be_silent(rq, p->psn) - 1;
	more = more < may ? more : may;
	may = rq->window.size - 1 - outstanding(rq, e);
	more = more < may ? more : may;
	may = (uint32_t)(RC_PACKETS_MAX - 1 - rc_psn_diff(p->psn, rq->unacked));
	return more < may ? more : may;
}

bool rc_next(const struct rc_requester *rq, uint32_t limit, uint64_t now_ns,
	     struct rc_tx *tx)
{
	const struct rc_wqe *e;

	if (rq->failed || rq->next == rq->head || now_ns < rq->rnr_until_ns ||
	    rc_pace_waits(&rq->pace, now_ns))
		return false;
	e = rc_entry(rq, rq->next);
	/* A message that has begun is completed, even beyond `limit`. */
	if (rq->send_psn == e->first_psn && (int32_t)(rq->next - limit) >= 0)
		return false;
	if (rq->p.reliable) {
		if ((rq->send_psn == e->first_psn || is_read(e)) && !may_begin(rq, e))
			return false;
		if (rq->window.closed || outstanding(rq, e) >= rq->window.size ||
		    !response_fits(rq, e))
			return false;
		/* Unacknowledged PSNs must stay comparable. */
		if (rc_psn_diff(rq->send_psn, rq->unacked) >= RC_PACKETS_MAX)
			return false;
	}
	describe(rq, e, tx);
	tx->packet.more = more_of(rq, e, &tx->packet);
	return true;
}

struct work_done rc_sent(struct rc_requester *rq, const struct rc_tx *tx, uint64_t now_ns)
{
	const struct rc_wqe *e = rc_entry(rq, rq->next);

	rq->rnr_until_ns = 0;
	rc_pace_sent(&rq->pace, tx->packet.bytes, now_ns);
	rq->pace_at_ns = rc_pace_waits(&rq->pace, now_ns) ? rq->pace.next_ns : 0;
	if ((tx->packet.flags & RC_ACK_REQ) && rq->send_psn == rq->top_psn)
		rc_window_asked(&rq->window, tx->packet.psn, rq->unacked, now_ns);
	rq->window.closed = rq->p.reliable && outstanding(rq, e) + 1 + tx->packet.more >=
						      rq->window.size;
	rq->send_psn = is_read(e) ? rc_psn_add(e->last_psn, 1) :
				    rc_psn_add(rq->send_psn, 1 + tx->packet.more);
	if (tx->packet.flags & RC_ACK_REQ)
		rq->asked_psn = rq->send_psn;
	if (tx->packet.flags & RC_LAST) {
		rq->next++;
		rq->reads += is_read(e);
	}
	if (rc_psn_diff(rq->send_psn, rq->top_psn) > 0 || rq->top_psn == rq->unacked)
		rq->top_psn = rq->send_psn;
	if (!rq->p.reliable) {
		rq->unacked = rq->top_psn = rq->send_psn;
		rq->tail = rq->next;
	} else if (!rq->timeout_at_ns && rq->p.timeout_ns) {
		rq->timeout_at_ns = timeout_at(rq, now_ns);
	}
	return done(rq);
}

/* The entry with the packet `psn`, which must not be before `unacked`. */
static uint32_t find(const struct rc_requester *rq, uint32_t psn)
{
	uint32_t i = rq->tail;

	while (i != rq->head && rc_psn_diff(psn, rc_entry(rq, i)->last_psn) > 0)
		i++;
	return i;
}

/* Continues sending at `psn`, which is unacknowledged. */
static void go_back(struct rc_requester *rq, uint32_t psn)
{
	rq->next = find(rq, psn);
	rq->send_psn = rq->asked_psn = psn;
	rq->reads = 0;
	for (uint32_t i = rq->tail; i != rq->next; i++)
		rq->reads += is_read(rc_entry(rq, i));
	rq->timeout_at_ns = 0;
	rc_window_repeat(&rq->window);
	rq->window.closed = false;
	rq->gone_back++;
}

static struct work_done fail(struct rc_requester *rq, enum ibv_wc_status status)
{
	rq->failed = true;
	rq->timeout_at_ns = rq->rnr_until_ns = rq->pace_at_ns = 0;
	return (struct work_done){ rq->tail, status };
}

/* A window that was used up opens when a quarter of it is free, so that trains are not cut to what
 * each acknowledgement makes free; or when no packet on its way asks for one. */
static void open_window(struct rc_requester *rq)
{
	uint32_t size = rq->window.size;

	if (rq->window.closed &&
	    (rq->next == rq->head || rc_psn_diff(rq->unacked, rq->asked_psn) >= 0 ||
	     outstanding(rq, rc_entry(rq, rq->next)) <= size - (size + 3) / 4))
		rq->window.closed = false;
}

/* All packets before `psn` are acknowledged. */
static void advance(struct rc_requester *rq, uint32_t psn, uint64_t now_ns)
{
	if (psn == rq->unacked)
		return;
	rq->unacked = psn;
	rc_window_advanced(&rq->window, psn, rq->top_psn, now_ns);
	rq->went_back = rq->obeyed = false;
	rq->retries = rq->p.retry_cnt;
	rq->rnr_retries = rq->p.rnr_retry;
	rq->burst = rq->p.burst;
	/* After going back an answer may acknowledge packets that were to be sent again. */
	if (rc_psn_diff(psn, rq->send_psn) > 0) {
		rq->send_psn = rq->asked_psn = psn;
		rq->next = find(rq, psn);
		rq->reads = 0;
		for (uint32_t i = rq->tail; i != rq->next; i++)
			rq->reads += is_read(rc_entry(rq, i));
	}
	while (rq->tail != rq->next &&
	       rc_psn_diff(psn, rc_entry(rq, rq->tail)->last_psn) > 0) {
		rq->reads -= is_read(rc_entry(rq, rq->tail));
		rq->tail++;
	}
	rq->timeout_at_ns = rq->unacked == rq->send_psn || !rq->p.timeout_ns ?
				    0 : timeout_at(rq, now_ns);
	open_window(rq);
}

/* True: a READ or atomic before `psn` has no response, or not all of it; `*missing` is
 * its first missing packet. An acknowledgement alone does not complete it. */
static bool missing_answer(const struct rc_requester *rq, uint32_t psn, uint32_t *missing)
{
	for (uint32_t i = rq->tail; i != rq->head; i++) {
		const struct rc_wqe *e = rc_entry(rq, i);

		if (rc_psn_diff(e->first_psn, psn) >= 0)
			return false;
		if (!is_read(e))
			continue;
		*missing = rc_psn_diff(rq->unacked, e->first_psn) > 0 ? rq->unacked :
									e->first_psn;
		return rc_psn_diff(*missing, psn) < 0;
	}
	return false;
}

/* A response was lost: goes back to it, but not twice before another answer or the
 * timeout. */
static struct work_done implied_nak(struct rc_requester *rq, uint32_t missing,
				    uint64_t now_ns)
{
	advance(rq, missing, now_ns);
	if (rq->went_back)
		return done(rq);
	if (!rq->retries)
		return fail(rq, IBV_WC_RETRY_EXC_ERR);
	rq->retries--;
	rc_window_lost(&rq->window);
	go_back(rq, missing);
	rq->went_back = true;
	return done(rq);
}

/* Was the packet sent, and is it unacknowledged? */
static bool is_awaited(const struct rc_requester *rq, uint32_t psn)
{
	return rc_psn_diff(psn, rq->unacked) >= 0 && rc_psn_diff(psn, rq->top_psn) < 0;
}

/* How many packets of the run behind the first one are parts of the same response. */
static uint32_t more_wanted(const struct rc_requester *rq, const struct rc_wqe *e,
			    const struct rc_packet *packet, const struct rc_place *place)
{
	uint32_t awaited = (uint32_t)rc_psn_diff(rq->top_psn, packet->psn) - 1;
	uint32_t whole = (e->length - place->at) / rq->p.mtu;
	uint32_t more = packet->more < awaited ? packet->more : awaited;

	/* The run has no last packet: that one has other flags. */
	if (packet->flags || place->bytes != rq->p.mtu)
		return 0;
	return more < whole - 1 ? more : whole - 1;
}

void rc_reply_look(const struct rc_requester *rq, const struct rc_packet *packet,
		   struct rc_place *place)
{
	const struct rc_wqe *e;
	uint32_t index, missing;

	*place = (struct rc_place){ 0 };
	if (rq->failed || packet->op < RC_READ_RESPONSE ||
	    packet->op > RC_ATOMIC_RESPONSE || !is_awaited(rq, packet->psn))
		return;
	index = find(rq, packet->psn);
	if (index == rq->head || missing_answer(rq, packet->psn, &missing))
		return;
	e = rc_entry(rq, index);
	if (!is_read(e) || (packet->op == RC_ATOMIC_RESPONSE) != is_atomic(e))
		return;
	place->index = index;
	place->at = ((packet->psn - e->first_psn) & RC_PSN_MASK) * rq->p.mtu;
	if (is_atomic(e)) {
		place->bytes = 8;
		place->wanted = true;
		return;
	}
	if (e->op == RC_READ)
		place->bytes = e->length - place->at;
	if (place->bytes > rq->p.mtu)
		place->bytes = rq->p.mtu;
	place->wanted = packet->bytes == place->bytes;
	if (packet->more && place->wanted)
		place->more = more_wanted(rq, e, packet, place);
}

static struct work_done take_response(struct rc_requester *rq,
				      const struct rc_packet *packet,
				      enum ibv_wc_status copied, uint64_t now_ns)
{
	struct rc_place place;
	uint32_t missing;

	if (!is_awaited(rq, packet->psn))
		return done(rq);
	if (missing_answer(rq, packet->psn, &missing))
		return implied_nak(rq, missing, now_ns);
	rc_reply_look(rq, packet, &place);
	if (place.index == rq->head)
		return done(rq);
	advance(rq, packet->psn, now_ns);
	if (!place.wanted)
		return fail(rq, IBV_WC_BAD_RESP_ERR);
	if (copied != IBV_WC_SUCCESS)
		return fail(rq, copied);
	advance(rq, rc_psn_add(packet->psn, 1 + place.more), now_ns);
	return done(rq);
}

static uint64_t rnr_wait_ns(const struct rc_requester *rq, uint8_t code)
{
	uint64_t ns = rc_rnr_ns(code);

	return rq->p.rnr_permille ? ns / 1000 * rq->p.rnr_permille : ns;
}

static struct work_done take_rnr(struct rc_requester *rq, const struct rc_packet *packet,
				 uint64_t now_ns)
{
	if (!rq->rnr_retries)
		return fail(rq, IBV_WC_RNR_RETRY_EXC_ERR);
	if (rq->p.rnr_retry != RC_RNR_FOR_EVER)
		rq->rnr_retries--;
	go_back(rq, packet->psn);
	rq->rnr_until_ns = now_ns + rnr_wait_ns(rq, packet->syndrome & RC_SYN_VALUE);
	/* It says that the packet has arrived: a gap there is a new one. */
	rq->obeyed = false;
	return done(rq);
}

/* A responder sends one sequence NAK and no other one until the expected packet has
 * arrived (9.7.5). So a second one without progress in between is a copy of the first.
 * To go back for it too would take another one of the retries: with copies of packets
 * a connection could use up all of them although its peer answers. */
static struct work_done take_sequence(struct rc_requester *rq,
				      const struct rc_packet *packet)
{
	if (rq->obeyed)
		return done(rq);
	if (!rq->retries)
		return fail(rq, IBV_WC_RETRY_EXC_ERR);
	rq->retries--;
	rc_window_lost(&rq->window);
	go_back(rq, packet->psn);
	rq->obeyed = true;
	return done(rq);
}

/* The status of a NAK that ends the connection; SUCCESS: it is none. */
static enum ibv_wc_status fatal(uint8_t syndrome)
{
	switch (syndrome) {
	case RC_SYN_INVALID: return IBV_WC_REM_INV_REQ_ERR;
	case RC_SYN_ACCESS: return IBV_WC_REM_ACCESS_ERR;
	case RC_SYN_OPERATION: return IBV_WC_REM_OP_ERR;
	default: return IBV_WC_SUCCESS;
	}
}

/* Has the READ with this packet been answered in part? A responder that cannot read on
 * may name the request's own PSN (Linux's rxe does) instead of the response's. */
static bool is_half_answered(const struct rc_requester *rq, uint32_t psn)
{
	const struct rc_wqe *e = rc_entry(rq, rq->tail);

	return rq->tail != rq->head && e->op == RC_READ &&
	       rc_psn_diff(psn, e->first_psn) >= 0 && rc_psn_diff(psn, rq->unacked) < 0;
}

static struct work_done take_nak(struct rc_requester *rq, const struct rc_packet *packet,
				 uint64_t now_ns)
{
	enum ibv_wc_status status = fatal(packet->syndrome);
	uint32_t missing;

	if (status != IBV_WC_SUCCESS && is_half_answered(rq, packet->psn))
		return fail(rq, status);
	if (!is_awaited(rq, packet->psn))
		return done(rq);
	if (missing_answer(rq, packet->psn, &missing))
		return implied_nak(rq, missing, now_ns);
	advance(rq, packet->psn, now_ns);
	/* It ends the connection whether its packet was to be sent again or not: the
	 * responder answers nothing any more. */
	if (status != IBV_WC_SUCCESS)
		return fail(rq, status);
	/* A repeated or late NAK: after going back, its packet was not sent again yet. */
	if (rc_psn_diff(packet->psn, rq->send_psn) >= 0)
		return done(rq);
	if ((packet->syndrome & RC_SYN_KIND) == RC_SYN_RNR)
		return take_rnr(rq, packet, now_ns);
	return packet->syndrome == RC_SYN_SEQUENCE ? take_sequence(rq, packet) : done(rq);
}

/* A credit counts from the message that its packet acknowledges (9.7.7.2), so a late
 * copy of an older acknowledgement says nothing about the receives that are posted now.
 * An acknowledgement that only brings new credit repeats the last PSN. */
static void take_credit(struct rc_requester *rq, const struct rc_packet *packet)
{
	unsigned code = packet->syndrome & RC_SYN_VALUE;

	if (rc_psn_diff(packet->psn, rq->unacked) < -1 ||
	    rc_psn_diff(packet->psn, rq->top_psn) >= 0)
		return;
	rq->limited = code != RC_CREDITS_UNLIMITED;
	/* Of table 46 the codes 0 to 30 stand for 0, 1, 2, 3, 4, 6, 8, 12, ... */
	if (rq->limited)
		rq->limit_ssn = rc_psn_add(
			packet->msn, code < 2 ? code :
				     (code & 1 ? 3u : 2u) << (code / 2 - 1));
}

struct work_done rc_reply(struct rc_requester *rq, const struct rc_packet *packet,
			  enum ibv_wc_status copied, uint64_t now_ns)
{
	uint32_t missing;

	if (packet->op == RC_CNP)
		rc_pace_cut(&rq->pace, now_ns);
	if (rq->failed || !rq->p.reliable || packet->op < RC_ACK ||
	    packet->op > RC_ATOMIC_RESPONSE)
		return done(rq);
	if (packet->op != RC_ACK) {
		/* The middle ones of a READ have no AETH. */
		if (packet->flags & (RC_FIRST | RC_LAST) &&
		    (packet->syndrome & RC_SYN_KIND) == RC_SYN_ACK)
			take_credit(rq, packet);
		return take_response(rq, packet, copied, now_ns);
	}
	if ((packet->syndrome & RC_SYN_KIND) != RC_SYN_ACK)
		return take_nak(rq, packet, now_ns);
	take_credit(rq, packet);
	if (!is_awaited(rq, packet->psn))
		return done(rq);
	if (missing_answer(rq, rc_psn_add(packet->psn, 1), &missing))
		return implied_nak(rq, missing, now_ns);
	advance(rq, rc_psn_add(packet->psn, 1), now_ns);
	return done(rq);
}

void rc_hold(struct rc_requester *rq, uint64_t until_ns)
{
	go_back(rq, rq->unacked);
	rq->rnr_until_ns = until_ns;
}

void rc_release(struct rc_requester *rq)
{
	rq->rnr_until_ns = 0;
}

uint64_t rc_deadline(const struct rc_requester *rq)
{
	if (rq->rnr_until_ns)
		return rq->rnr_until_ns;
	if (rq->pace_at_ns && rq->next != rq->head &&
	    (!rq->timeout_at_ns || rq->pace_at_ns < rq->timeout_at_ns))
		return rq->pace_at_ns;
	return rq->timeout_at_ns;
}

/* One of the burst is sent. */
static void count_burst(struct rc_requester *rq)
{
	if (--rq->burst == 0)
		rq->retries = rq->retries > 2 ? rq->retries - 2 : 0;
}

struct work_done rc_timer(struct rc_requester *rq, uint64_t now_ns)
{
	if (rq->rnr_until_ns) {
		if (now_ns >= rq->rnr_until_ns)
			rq->rnr_until_ns = 0;
		return done(rq);
	}
	if (now_ns >= rq->pace_at_ns)
		rq->pace_at_ns = 0;
	if (!rq->timeout_at_ns || now_ns < rq->timeout_at_ns)
		return done(rq);
	rq->timeouts++;
	if (rq->burst)
		count_burst(rq);
	else if (!rq->retries)
		return fail(rq, IBV_WC_RETRY_EXC_ERR);
	else
		rq->retries--;
	rc_window_lost(&rq->window);
	go_back(rq, rq->unacked);
	rq->went_back = rq->obeyed = false;
	return done(rq);
}
