/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiving half of a connection; see responder.h. */
#include "engine/rc/responder.h"

#include <string.h>

#define NO_MESSAGE RC_ACK
#define MESSAGE_MAX (UINT32_C(1) << 31)

void rc_responder_open(struct rc_responder *rs, const struct rc_responder_params *p)
{
	memset(rs, 0, sizeof(*rs));
	rs->p = *p;
	rs->expected_psn = p->psn & RC_PSN_MASK;
	rs->message = NO_MESSAGE;
	rc_pace_open(&rs->pace, p->line_bps);
}

static const struct rc_resource *resource(const struct rc_responder *rs, uint32_t i)
{
	return &rs->resources[i % RC_RESOURCES_MAX];
}

/* Is it answered by a response, which is stored to be repeated? */
static bool is_read(const struct rc_packet *p)
{
	return (p->op >= RC_READ && p->op <= RC_FLUSH) ||
	       (p->op == RC_WRITE && (p->flags & RC_WORD));
}

static bool is_atomic(uint8_t op)
{
	return op == RC_COMPARE_SWAP || op == RC_FETCH_ADD;
}

static bool is_complete(const struct rc_resource *r)
{
	return rc_psn_diff(r->next_psn, r->last_psn) > 0;
}

/* The stored READ or atomic with the packet `psn`. False: it is no longer stored. */
static bool find(const struct rc_responder *rs, uint32_t psn, uint32_t *index)
{
	for (uint32_t n = 1; n <= rs->p.max_rd_atomic && n <= rs->resources_taken; n++) {
		const struct rc_resource *r = resource(rs, rs->resources_taken - n);

		if (rc_psn_diff(psn, r->first_psn) >= 0 &&
		    rc_psn_diff(psn, r->last_psn) <= 0) {
			*index = rs->resources_taken - n;
			return true;
		}
	}
	return false;
}

/* A repeated READ must be a rest of the original one: same key, same end. */
static bool is_part(const struct rc_responder *rs, const struct rc_resource *r,
		    const struct rc_packet *p)
{
	uint64_t at = (uint64_t)((p->psn - r->first_psn) & RC_PSN_MASK) * rs->p.mtu;

	if (p->op != r->op)
		return false;
	return p->op != RC_READ ||
	       (at + p->length == r->length &&
		p->remote_addr == r->remote_addr + at && p->rkey == r->rkey);
}

static void look_again(const struct rc_responder *rs, const struct rc_packet *p,
		       struct rc_look *look)
{
	uint32_t index;

	look->verdict = rs->p.reliable ? RC_AGAIN : RC_IGNORED;
	if (!is_read(p))
		return;
	if (!find(rs, p->psn, &index) || !is_part(rs, resource(rs, index), p))
		look->verdict = RC_IGNORED;
}

/* Number of READs and atomics that were never answered. */
static uint32_t waiting_first_time(const struct rc_responder *rs)
{
	uint32_t n = 0;

	for (uint32_t i = rs->resources_answered; i != rs->resources_taken; i++)
		n += !resource(rs, i)->told;
	return n;
}

/* Does the packet continue the current message, or begin one, with valid lengths? */
static bool is_in_place(const struct rc_responder *rs, const struct rc_packet *p)
{
	bool first = p->flags & RC_FIRST, last = p->flags & RC_LAST;
	uint64_t end;

	if (p->op > RC_FLUSH || first != (rs->message == NO_MESSAGE))
		return false;
	if (is_read(p) && p->op == RC_WRITE)
		return first && last && p->bytes == 8 && p->length == 8 &&
		       !(p->flags & RC_IMM);
	if (is_read(p))
		return first && last && !p->bytes && p->length <= MESSAGE_MAX;
	if (!first && p->op != rs->message)
		return false;
	if (p->bytes > rs->p.mtu || (!last && p->bytes != rs->p.mtu) ||
	    (!first && last && !p->bytes))
		return false;
	end = (first ? 0 : (uint64_t)rs->at) + p->bytes;
	if (p->op == RC_WRITE) {
		uint32_t length = first ? p->length : rs->length;

		if (length > MESSAGE_MAX)
			return false;
		return last ? end == length : end < length;
	}
	return end <= MESSAGE_MAX;
}

/* How many packets of the run behind the first one, which is in place, are in place too: the
 * last packet of the message is not among them. */
static uint32_t more_in_place(const struct rc_responder *rs, const struct rc_packet *p)
{
	uint64_t end = (uint64_t)rs->at + p->bytes, room;

	if (!p->more || p->flags || p->op > RC_WRITE)
		return 0;
	room = (p->op == RC_WRITE ? rs->length - 1 - end : MESSAGE_MAX - end) / rs->p.mtu;
	return p->more < room ? p->more : (uint32_t)room;
}

static void look_request(const struct rc_responder *rs, const struct rc_packet *p,
			 struct rc_look *look)
{
	bool first = p->flags & RC_FIRST, last = p->flags & RC_LAST;

	look->op = p->op;
	look->at = first ? 0 : rs->at;
	look->rkey = first ? p->rkey : rs->rkey;
	look->length = first ? p->length : rs->length;
	look->remote_addr = (first ? p->remote_addr : rs->remote_addr) + look->at;
	if (p->op == RC_READ)
		look->needs = WORK_NEED_READ;
	else if (p->op == RC_FLUSH)
		look->needs = WORK_NEED_FLUSH;
	else if (is_atomic(p->op))
		look->needs = WORK_NEED_ATOMIC;
	else if (p->bytes)
		look->needs = WORK_NEED_PLACE;
	if (p->op == RC_SEND && first && !rs->claimed)
		look->needs |= WORK_NEED_RECEIVE;
	if (p->op == RC_WRITE && last && (p->flags & RC_IMM) && !rs->claimed)
		look->needs |= WORK_NEED_RECEIVE;
	if (last && (p->op == RC_SEND || (p->op == RC_WRITE && (p->flags & RC_IMM))))
		look->needs |= WORK_NEED_COMPLETE;
	if (last && p->op == RC_SEND && (p->flags & RC_INVALIDATE))
		look->needs |= WORK_NEED_INVALIDATE;
	look->more = more_in_place(rs, p);
}

/* UC: a message of which a packet is missing is dropped as a whole. */
static void look_unreliable(const struct rc_responder *rs, const struct rc_packet *p,
			    struct rc_look *look)
{
	struct rc_responder fresh;

	look->verdict = RC_IGNORED;
	if (is_read(p) || p->op > RC_WRITE)
		return;
	if (!(p->flags & RC_FIRST)) {
		if (rs->skipping || p->psn != rs->expected_psn || !is_in_place(rs, p))
			return;
		look->verdict = RC_EXPECTED;
		look_request(rs, p, look);
		return;
	}
	/* A first packet drops a message that is incomplete. */
	fresh = *rs;
	fresh.message = NO_MESSAGE;
	fresh.at = 0;
	if (!is_in_place(&fresh, p))
		return;
	look->verdict = RC_EXPECTED;
	look_request(&fresh, p, look);
}

void rc_look(const struct rc_responder *rs, const struct rc_packet *packet,
	     struct rc_look *look)
{
	int32_t ahead = rc_psn_diff(packet->psn, rs->expected_psn);

	*look = (struct rc_look){ .verdict = RC_IGNORED };
	if (rs->failed || packet->op >= RC_ACK)
		return;
	if (!rs->p.reliable) {
		look_unreliable(rs, packet, look);
	} else if (ahead < 0) {
		look_again(rs, packet, look);
	} else if (ahead > 0) {
		look->verdict = RC_GAP;
	} else if (!is_in_place(rs, packet) ||
		   (is_read(packet) && !rs->p.max_rd_atomic)) {
		look->verdict = RC_WRONG;
	} else if (is_read(packet) && waiting_first_time(rs) >= rs->p.max_rd_atomic) {
		look->verdict = RC_WRONG;
	} else {
		look->verdict = RC_EXPECTED;
		look_request(rs, packet, look);
	}
}

static void owe(struct rc_responder *rs, uint8_t syndrome, uint32_t psn, uint64_t due_ns)
{
	bool is_nak = rs->owed && rs->syndrome & RC_SYN_KIND;

	/* An acknowledgement does not replace a NAK that waits to be sent. */
	if (is_nak && !(syndrome & RC_SYN_KIND))
		return;
	if (rs->owed && !is_nak && !(syndrome & RC_SYN_KIND) && rs->due_ns < due_ns)
		due_ns = rs->due_ns;
	rs->owed = true;
	rs->syndrome = syndrome;
	rs->nak_psn = psn;
	rs->due_ns = due_ns;
}

static void owe_ack(struct rc_responder *rs, uint64_t due_ns)
{
	if (rs->p.reliable)
		owe(rs, RC_SYN_ACK | RC_CREDITS_UNLIMITED, 0, due_ns);
}

/* RC: NAK, and the connection fails. UC: the message is dropped. */
static struct rc_taken refuse(struct rc_responder *rs, uint8_t syndrome)
{
	if (!rs->p.reliable) {
		rs->skipping = true;
		rs->message = NO_MESSAGE;
		return (struct rc_taken){ 0 };
	}
	owe(rs, syndrome, rs->expected_psn, 0);
	rs->failed = true;
	return (struct rc_taken){ .fail = true };
}

static struct rc_taken take_again(struct rc_responder *rs, const struct rc_packet *p,
				  enum rc_answer answer, uint64_t now_ns)
{
	struct rc_resource *r;
	uint32_t index;

	if (!is_read(p)) {
		owe_ack(rs, now_ns);
		return (struct rc_taken){ 0 };
	}
	if (answer != RC_OK || !find(rs, p->psn, &index))
		return (struct rc_taken){ 0 };
	r = &rs->resources[index % RC_RESOURCES_MAX];
	/* Its response has not been sent from there on, and will be. */
	if ((int32_t)(index - rs->resources_answered) >= 0 &&
	    rc_psn_diff(r->next_psn, p->psn) <= 0)
		return (struct rc_taken){ 0 };
	/* Only this one: the peer asks for the later ones as well, as it goes back. The
	 * response to a rest begins with a first packet, as that of any READ. */
	r->next_psn = r->begin_psn = p->psn;
	if ((int32_t)(rs->resources_answered - index) > 0)
		rs->resources_answered = index;
	return (struct rc_taken){ 0 };
}

static void skip_complete(struct rc_responder *rs)
{
	while (rs->resources_answered != rs->resources_taken &&
	       is_complete(resource(rs, rs->resources_answered)))
		rs->resources_answered++;
}

static void take_read(struct rc_responder *rs, const struct rc_packet *p, uint64_t old)
{
	struct rc_resource *r =
		&rs->resources[rs->resources_taken++ % RC_RESOURCES_MAX];
	uint32_t packets = p->op == RC_READ ? rc_packets(p->length, rs->p.mtu) : 1;

	rs->msn = rc_psn_add(rs->msn, 1);
	*r = (struct rc_resource){
		.op = p->op, .first_psn = p->psn, .next_psn = p->psn,
		.begin_psn = p->psn,
		.last_psn = rc_psn_add(p->psn, packets - 1), .msn = rs->msn,
		.rkey = p->rkey, .length = p->op == RC_READ ? p->length : 0,
		.remote_addr = p->remote_addr, .old_value = old,
	};
	rs->expected_psn = rc_psn_add(r->last_psn, 1);
	/* A peer that sends new READs has received the responses to be repeated. */
	if (rs->resources_taken - rs->resources_answered > rs->p.max_rd_atomic)
		rs->resources_answered = rs->resources_taken - rs->p.max_rd_atomic;
	skip_complete(rs);
}

static struct rc_taken take_bytes(struct rc_responder *rs, const struct rc_packet *p,
				  const struct rc_look *look)
{
	struct rc_taken taken = { 0 };

	if (p->flags & RC_FIRST) {
		rs->message = p->op;
		rs->rkey = p->rkey;
		rs->length = p->length;
		rs->remote_addr = p->remote_addr;
		rs->at = 0;
		rs->skipping = false;
	}
	rs->at += p->bytes * (1 + look->more);
	if (look->needs & WORK_NEED_RECEIVE)
		rs->claimed = true;
	rs->expected_psn = rc_psn_add(p->psn, 1 + look->more);
	if (!(p->flags & RC_LAST))
		return taken;
	rs->msn = rc_psn_add(rs->msn, 1);
	rs->message = NO_MESSAGE;
	taken.complete = look->needs & WORK_NEED_COMPLETE;
	taken.bytes = rs->at;
	if (taken.complete)
		rs->claimed = false;
	return taken;
}

static struct rc_taken take_expected(struct rc_responder *rs, const struct rc_packet *p,
				     const struct rc_look *look, uint64_t old,
				     uint64_t now_ns)
{
	struct rc_taken taken = { 0 };

	rs->told_sequence = false;
	/* This packet closes the gap: a NAK that waits to be sent is obsolete. */
	if (rs->owed && (rs->syndrome & RC_SYN_KIND))
		rs->owed = false;
	if (is_read(p))
		take_read(rs, p, old);
	else
		taken = take_bytes(rs, p, look);
	/* A response acknowledges by itself. */
	if ((p->flags & RC_ACK_REQ) && !is_read(p))
		owe_ack(rs, now_ns + rs->p.ack_delay_ns);
	return taken;
}

void rc_rnr(struct rc_responder *rs, uint64_t now_ns)
{
	owe(rs, RC_SYN_RNR | (rs->p.min_rnr_timer & RC_SYN_VALUE), rs->expected_psn, now_ns);
}

struct rc_taken rc_take(struct rc_responder *rs, const struct rc_packet *packet,
			const struct rc_look *look, enum rc_answer answer,
			uint64_t old, uint64_t now_ns)
{
	const struct rc_taken nothing = { 0 };

	if (answer == RC_NOT_NOW)
		return nothing;
	switch ((enum rc_verdict)look->verdict) {
	case RC_IGNORED:
		if (!rs->p.reliable)
			rs->skipping = true;
		return nothing;
	case RC_AGAIN:
		return take_again(rs, packet, answer, now_ns);
	case RC_GAP:
		if (!rs->told_sequence)
			owe(rs, RC_SYN_SEQUENCE, rs->expected_psn, now_ns);
		rs->told_sequence = true;
		return nothing;
	case RC_WRONG:
		return refuse(rs, RC_SYN_INVALID);
	case RC_EXPECTED:
		break;
	}
	switch (answer) {
	case RC_NO_RECEIVE:
		if (!rs->p.reliable)
			return refuse(rs, 0);
		rc_rnr(rs, now_ns);
		/* Packets after it are out of sequence; no sequence NAK is sent. */
		rs->told_sequence = true;
		return nothing;
	case RC_NOT_THERE:
		rs->told_sequence = true;
		return nothing;
	case RC_NO_ACCESS: return refuse(rs, RC_SYN_ACCESS);
	case RC_NO_OPERATION: return refuse(rs, RC_SYN_OPERATION);
	case RC_NOT_VALID: return refuse(rs, RC_SYN_INVALID);
	default: return take_expected(rs, packet, look, old, now_ns);
	}
}

static void describe_read(const struct rc_responder *rs, const struct rc_resource *r,
			  struct rc_response *out)
{
	uint32_t at = ((r->next_psn - r->first_psn) & RC_PSN_MASK) * rs->p.mtu;
	struct rc_packet *p = &out->packet;

	p->op = RC_READ_RESPONSE;
	p->psn = r->next_psn;
	p->bytes = r->length - at < rs->p.mtu ? r->length - at : rs->p.mtu;
	p->flags = (r->next_psn == r->begin_psn ? RC_FIRST : 0) |
		   (r->next_psn == r->last_psn ? RC_LAST : 0);
	if (!p->flags && !rs->pace.active)
		p->more = ((r->last_psn - r->next_psn) & RC_PSN_MASK) - 1;
	out->rkey = r->rkey;
	out->remote_addr = r->remote_addr + at;
}

bool rc_respond_next(const struct rc_responder *rs, bool early, uint64_t now_ns,
		     struct rc_response *response)
{
	struct rc_packet *p = &response->packet;

	*response = (struct rc_response){
		.packet = { .syndrome = RC_SYN_ACK | RC_CREDITS_UNLIMITED },
		.when_ns = now_ns,
	};
	if (rs->marks.owed) {
		p->op = RC_CNP;
		p->flags = RC_FIRST | RC_LAST;
		return true;
	}
	if (rs->resources_answered != rs->resources_taken) {
		const struct rc_resource *r = resource(rs, rs->resources_answered);

		if (rc_pace_waits(&rs->pace, now_ns))
			return false;
		p->msn = r->msn;
		if (!is_atomic(r->op)) {
			describe_read(rs, r, response);
		} else {
			p->op = RC_ATOMIC_RESPONSE;
			p->psn = r->first_psn;
			p->compare_add = r->old_value;
			p->flags = RC_FIRST | RC_LAST;
		}
		return true;
	}
	if (!rs->owed || (!early && now_ns < rs->due_ns))
		return false;
	p->op = RC_ACK;
	p->flags = RC_FIRST | RC_LAST;
	p->syndrome = rs->syndrome;
	p->msn = rs->msn;
	p->psn = rs->syndrome & RC_SYN_KIND ? rs->nak_psn :
					      rc_psn_add(rs->expected_psn, RC_PSN_MASK);
	return true;
}

/* A response acknowledges what was before it, and itself. */
static void forget_ack(struct rc_responder *rs, uint32_t psn)
{
	if (rs->owed && !(rs->syndrome & RC_SYN_KIND) &&
	    rc_psn_add(psn, 1) == rs->expected_psn)
		rs->owed = false;
}

struct rc_taken rc_responded(struct rc_responder *rs,
			     const struct rc_response *response,
			     enum rc_answer fetched)
{
	struct rc_resource *r =
		&rs->resources[rs->resources_answered % RC_RESOURCES_MAX];

	if (response->packet.op == RC_ACK || response->packet.op == RC_CNP) {
		if (response->packet.op == RC_ACK)
			rs->owed = false;
		else
			rs->marks.owed = false;
		return (struct rc_taken){ 0 };
	}
	if (fetched == RC_NOT_NOW)
		return (struct rc_taken){ 0 };
	if (fetched != RC_OK) {
		/* The memory to be read is no longer accessible: the connection fails. */
		rs->resources_answered = rs->resources_taken;
		owe(rs, fetched == RC_NO_ACCESS ? RC_SYN_ACCESS : RC_SYN_OPERATION,
		    response->packet.psn, 0);
		rs->failed = true;
		return (struct rc_taken){ .fail = true };
	}
	rc_pace_sent(&rs->pace, response->packet.bytes, response->when_ns);
	forget_ack(rs, rc_psn_add(response->packet.psn, response->packet.more));
	r->next_psn = rc_psn_add(r->next_psn, 1 + response->packet.more);
	r->told |= is_complete(r);
	skip_complete(rs);
	return (struct rc_taken){ 0 };
}

/* Most responders owe no response but an acknowledgement: nothing of `resources` then. */
void rc_respond_mark(const struct rc_responder *rs, struct rc_respond_mark *m)
{
	m->answered = rs->resources_answered;
	m->owed = rs->owed;
	m->cnp_owed = rs->marks.owed;
	m->pace = rs->pace;
	for (uint32_t i = m->answered; i != rs->resources_taken; i++)
		m->resources[i - m->answered] = *resource(rs, i);
}

void rc_respond_undo(struct rc_responder *rs, const struct rc_respond_mark *m)
{
	rs->resources_answered = m->answered;
	rs->owed = m->owed;
	rs->marks.owed = m->cnp_owed;
	rs->pace = m->pace;
	for (uint32_t i = m->answered; i != rs->resources_taken; i++)
		rs->resources[i % RC_RESOURCES_MAX] = m->resources[i - m->answered];
}

uint64_t rc_respond_deadline(const struct rc_responder *rs)
{
	if (rs->marks.owed)
		return 1;
	if (rs->resources_answered != rs->resources_taken)
		return rs->pace.active && rs->pace.next_ns ? rs->pace.next_ns : 1;
	/* A NAK that ends the connection is due from the beginning of time. */
	return !rs->owed ? 0 : rs->due_ns ? rs->due_ns : 1;
}
