/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile peer of a connection: any packets in any order, between work that is posted,
 * time that passes and answers that leave. Whatever comes, the engine points at no byte
 * outside of a message, completes each work entry once and in order, stores no more
 * requests than it has granted, and ends.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rc/requester.h"
#include "engine/rc/responder.h"

#define MUTATE_BYTES "\0\1\2\3\4\5\6\7\x08\x09\x10\x1f\x20\x40\x60\x61\x62\x63\x7f\x80\xff"
#include "drive.h"
#include "tape.h"

#define check(cond)                                                               \
	do {                                                                      \
		if (!(cond)) {                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond); \
			abort();                                                  \
		}                                                                 \
	} while (0)

enum { ENTRIES = 8, MTU = 256, LENGTH_MAX = 1 << 20, TURNS_MAX = 4096 };

struct connection {
	struct rc_requester rq;
	struct rc_responder rs;
	struct rc_wqe ring[ENTRIES];
	uint32_t completed, msn;
	uint64_t now_ns;
	bool ended;
};

/* Most are near `base`, some are anywhere. */
static uint32_t next_psn(struct tape *t, uint32_t base)
{
	uint8_t b = next_byte(t);

	if (b == 0xff)
		return (next_word(t) << 8 | next_byte(t)) & RC_PSN_MASK;
	return rc_psn_add(base, b < 0x80 ? b : RC_PSN_MASK + 1u - (b & 0x7f));
}

static uint32_t next_length(struct tape *t)
{
	uint8_t b = next_byte(t);

	switch (b & 3) {
	case 0: return b;
	case 1: return MTU * (b >> 2 & 7);
	case 2: return next_word(t) << 4;
	default: return b == 0xff ? UINT32_MAX - b : 8;
	}
}

static bool is_read(const struct rc_wqe *e)
{
	return e->op >= RC_READ || (e->flags & RC_WORD);
}

static void check_requester(const struct connection *c)
{
	const struct rc_requester *rq = &c->rq;
	uint32_t reads = 0;

	check(rq->next - rq->tail <= rq->head - rq->tail);
	check(rq->head - rq->tail <= ENTRIES);
	for (uint32_t i = rq->tail; i != rq->next; i++)
		reads += is_read(rc_entry(rq, i));
	check(rq->reads == reads);
	check(!rq->p.reliable || reads <= rq->p.max_rd_atomic);
	check(rc_psn_diff(rq->send_psn, rq->unacked) >= 0);
	check(rc_psn_diff(rq->top_psn, rq->send_psn) >= 0);
	if (rq->next != rq->head && !rq->failed) {
		const struct rc_wqe *e = rc_entry(rq, rq->next);

		check(rc_psn_diff(rq->send_psn, e->first_psn) >= 0);
		check(rc_psn_diff(rq->send_psn, e->last_psn) <= 0);
	}
}

static void take_done(struct connection *c, struct work_done d)
{
	check(!c->ended || (d.upto == c->completed && d.status == IBV_WC_SUCCESS));
	check(d.upto == c->rq.tail && (int32_t)(d.upto - c->completed) >= 0);
	c->completed = d.upto;
	if (d.status != IBV_WC_SUCCESS) {
		check(d.upto != c->rq.head && c->rq.failed);
		c->ended = true;
	}
	check_requester(c);
}

static void post(struct connection *c, struct tape *t)
{
	struct rc_wqe *e = &c->ring[c->rq.head % ENTRIES];
	uint8_t b = next_byte(t);

	if (c->ended || c->rq.head - c->rq.tail == ENTRIES)
		return;
	*e = (struct rc_wqe){ .op = b % (c->rq.p.reliable ? RC_FLUSH + 1 : RC_READ),
			      .flags = b & (RC_FENCE | RC_IMM | RC_SOLICITED),
			      .length = next_length(t) % LENGTH_MAX };
	if (e->op == RC_WRITE && c->rq.p.reliable && (b & 0x80)) {
		e->flags = RC_WORD;
		e->length = sizeof(uint64_t);
	}
	if (e->op == RC_COMPARE_SWAP || e->op == RC_FETCH_ADD)
		e->length = 8;
	rc_post(&c->rq);
	check_requester(c);
}

static void send(struct connection *c, unsigned most)
{
	struct rc_tx tx;

	while (most-- && rc_next(&c->rq, c->rq.head, c->now_ns, &tx)) {
		const struct rc_wqe *e = &c->ring[tx.index % ENTRIES];

		check(tx.index - c->rq.tail < c->rq.head - c->rq.tail);
		check(tx.packet.bytes <= MTU);
		check(!tx.packet.bytes ||
		      tx.at + (uint64_t)tx.packet.bytes * (1 + tx.packet.more) <= e->length);
		check(!tx.packet.more || !tx.packet.flags);
		tx.packet.more %= 1 + most;
		check(tx.packet.psn <= RC_PSN_MASK);
		take_done(c, rc_sent(&c->rq, &tx, c->now_ns));
	}
}

static void reply(struct connection *c, struct tape *t)
{
	struct rc_packet p = {
		.op = (uint8_t)(RC_ACK + next_byte(t) % 5), .flags = next_byte(t),
		.syndrome = next_byte(t) & 0x7f, .psn = next_psn(t, c->rq.unacked),
		.msn = next_word(t), .bytes = next_length(t),
	};
	struct rc_place place;
	uint8_t b = next_byte(t);

	p.more = p.flags ? 0 : b >> 5;

	/* Often the length that is expected. */
	rc_reply_look(&c->rq, &p, &place);
	if (b & 1)
		p.bytes = place.bytes;
	rc_reply_look(&c->rq, &p, &place);
	if (place.wanted) {
		const struct rc_wqe *e = &c->ring[place.index % ENTRIES];

		check(place.index - c->rq.tail < c->rq.head - c->rq.tail);
		check((uint64_t)place.at + (uint64_t)place.bytes * (1 + place.more) <= e->length ||
		      (!place.bytes && !place.at));
		check(place.more <= p.more);
	}
	take_done(c, rc_reply(&c->rq, &p,
			      b == 0xff ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS, c->now_ns));
}

static void check_responder(const struct connection *c)
{
	const struct rc_responder *rs = &c->rs;

	check(rs->resources_taken - rs->resources_answered <= rs->p.max_rd_atomic);
	check(rs->expected_psn <= RC_PSN_MASK && rs->msn <= RC_PSN_MASK);
}

/* What a peer that keeps to the rules could send next. */
static void make_good(const struct connection *c, struct rc_packet *p, uint8_t b)
{
	const struct rc_responder *rs = &c->rs;
	bool begun = rs->message != RC_ACK;

	p->psn = rs->expected_psn;
	p->op = begun ? rs->message : p->op % (RC_FLUSH + 1);
	p->flags = (p->flags & (RC_ACK_REQ | RC_IMM)) | (begun ? 0 : RC_FIRST);
	if (b & 4 || p->op >= RC_READ)
		p->flags |= RC_LAST;
	p->bytes = p->flags & RC_LAST ? 8 : MTU;
	if (p->op >= RC_READ)
		p->bytes = 0;
	else if (!begun && (p->flags & RC_LAST))
		p->length = p->bytes;
	else if (begun && p->op == RC_WRITE && (p->flags & RC_LAST))
		p->bytes = rs->length - rs->at;
	else if (!begun)
		p->length = MTU * (2 + (b >> 5));
	if (p->op == RC_WRITE && !begun && (p->flags & RC_LAST) && (b & 8))
		p->flags = RC_FIRST | RC_LAST | RC_WORD;
}

/* One of the requests that are stored, or the rest of it, once more. */
static void make_again(const struct connection *c, struct rc_packet *p, uint8_t b)
{
	const struct rc_resource *r =
		&c->rs.resources[(c->rs.resources_taken - 1 - (b >> 5)) % RC_RESOURCES_MAX];
	uint32_t packets = (r->last_psn - r->first_psn) & RC_PSN_MASK;
	uint32_t skip = b >> 2 & 7;

	if (skip > packets)
		skip = packets;
	*p = (struct rc_packet){
		.op = r->op, .flags = RC_FIRST | RC_LAST | (r->op == RC_WRITE ? RC_WORD : 0),
		.psn = rc_psn_add(r->first_psn, skip), .rkey = r->rkey,
		.remote_addr = r->remote_addr + (uint64_t)skip * MTU,
		.length = r->length - skip * MTU, .bytes = r->op == RC_WRITE ? 8 : 0,
	};
}

static void request(struct connection *c, struct tape *t)
{
	struct rc_packet p = {
		.op = next_byte(t) % (RC_CNP + 1), .flags = next_byte(t),
		.psn = next_psn(t, c->rs.expected_psn), .length = next_length(t),
		.bytes = next_length(t), .rkey = next_byte(t) & 1,
		.remote_addr = next_byte(t),
	};
	uint8_t mode = next_byte(t), b = next_byte(t);
	enum rc_answer answer = b < 0xe0 ? RC_OK : (enum rc_answer)(b % (RC_NOT_NOW + 1));
	struct rc_look look;
	struct rc_taken taken;

	if (mode & 1)
		make_good(c, &p, mode);
	else if (mode & 2)
		make_again(c, &p, mode);
	/* A medium drops longer ones. */
	p.bytes %= 4097;
	p.more = p.flags ? 0 : b & 7;
	rc_look(&c->rs, &p, &look);
	if (look.verdict == RC_EXPECTED) {
		check(!c->rs.failed && p.bytes <= MTU);
		if (look.op == RC_WRITE)
			check((uint64_t)look.at + (uint64_t)p.bytes * (1 + look.more) <=
			      look.length);
		check(look.more <= p.more);
		if (look.needs & WORK_NEED_ATOMIC)
			check(look.op == RC_COMPARE_SWAP || look.op == RC_FETCH_ADD);
	}
	taken = rc_take(&c->rs, &p, &look, answer, b, c->now_ns);
	check(!taken.complete || (look.needs & WORK_NEED_COMPLETE));
	check(!taken.fail || c->rs.failed);
	check_responder(c);
}

/* `most` 0: all of them. */
static void respond(struct connection *c, uint8_t most, uint8_t fetched)
{
	unsigned turns = 0;
	struct rc_response r;

	while (rc_respond_next(&c->rs, most != 1, c->now_ns, &r)) {
		const struct rc_resource *s =
			&c->rs.resources[c->rs.resources_answered % RC_RESOURCES_MAX];

		if (most && turns == most)
			break;
		check(turns++ < TURNS_MAX * (unsigned)RC_RESOURCES_MAX * 4);
		check(r.packet.bytes <= MTU && r.packet.psn <= RC_PSN_MASK);
		if (r.packet.op == RC_READ_RESPONSE)
			check(r.remote_addr - s->remote_addr + r.packet.bytes <= s->length ||
			      !r.packet.bytes);
		rc_responded(&c->rs, &r, fetched == 0xff && r.packet.op == RC_READ_RESPONSE ?
						 RC_NO_ACCESS : RC_OK);
		check_responder(c);
	}
}

static void pass_time(struct connection *c, uint8_t b)
{
	uint64_t due = rc_deadline(&c->rq), answer = rc_respond_deadline(&c->rs);

	if ((b & 1) && due > c->now_ns)
		c->now_ns = due;
	else if ((b & 2) && answer > c->now_ns)
		c->now_ns = answer;
	else
		c->now_ns += (uint64_t)b << (b & 15);
	take_done(c, rc_timer(&c->rq, c->now_ns));
}

static void open_connection(struct connection *c, struct tape *t)
{
	uint8_t b = next_byte(t);
	const struct rc_requester_params q = {
		.reliable = b & 3, .mtu = MTU, .psn = RC_PSN_MASK - next_byte(t),
		.window = 1 + next_byte(t) % 80, .max_rd_atomic = 1 + (b >> 4),
		.retry_cnt = b >> 2 & 7, .rnr_retry = b >> 5,
		.timeout_ns = next_byte(t) * UINT64_C(5000), .line_bps = 1 + next_word(t),
		.ring.entries = c->ring, .ring.stride = sizeof(c->ring[0]), .ring.mask = ENTRIES - 1,
	};
	const struct rc_responder_params s = {
		.reliable = q.reliable, .mtu = MTU, .psn = RC_PSN_MASK - next_byte(t),
		.max_rd_atomic = next_byte(t) % (RC_RESOURCES_MAX + 1),
		.ack_delay_ns = (b & 1) * UINT64_C(20000), .line_bps = 1 + next_word(t),
	};

	memset(c, 0, sizeof(*c));
	c->now_ns = 1;
	rc_requester_open(&c->rq, &q);
	rc_responder_open(&c->rs, &s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct connection c;
	struct tape t = { data, data + size };

	open_connection(&c, &t);
	while (t.at < t.end) {
		uint8_t b = next_byte(&t);

		switch (b & 7) {
		case 0: post(&c, &t); break;
		case 1: send(&c, 1 + (b >> 3)); break;
		case 2:
		case 3: reply(&c, &t); break;
		case 4:
		case 5: request(&c, &t); break;
		case 6: respond(&c, b >> 3, b >> 3 == 31 ? next_byte(&t) : 0); break;
		default:
			if (b & 8)
				rc_marked(&c.rs, c.now_ns);
			if (b & 16)
				rc_slow(&c.rs, c.now_ns);
			pass_time(&c, next_byte(&t));
		}
	}
	send(&c, TURNS_MAX);
	respond(&c, 0, 0);
	return 0;
}

#ifndef FUZZER
static size_t make(uint8_t *bytes, size_t capacity)
{
	size_t size = random_below(capacity);

	for (size_t i = 0; i < size; i++)
		bytes[i] = (uint8_t)random_below(random_below(3) ? 256 : 8);
	return mutate_times(bytes, size, capacity, random_below(8));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 100000, 400, make);
}
#endif
