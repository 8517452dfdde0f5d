/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of the responder that a simulation meets too seldom to show, or that only other
 * implementations of the protocol rely on. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rc/responder.h"

enum { PSN = 0xfffffe, MTU = 256 };

static struct rc_responder rs;

static void check(bool good, const char *what)
{
	if (good)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

static void open_responder(uint8_t max_rd_atomic, uint64_t ack_delay_ns)
{
	const struct rc_responder_params p = {
		.reliable = true, .mtu = MTU, .psn = PSN, .max_rd_atomic = max_rd_atomic,
		.min_rnr_timer = 1, .ack_delay_ns = ack_delay_ns,
	};

	rc_responder_open(&rs, &p);
}

static uint8_t take(struct rc_packet p, enum rc_answer answer, uint64_t now_ns)
{
	struct rc_look look;

	rc_look(&rs, &p, &look);
	rc_take(&rs, &p, &look, answer, 7, now_ns);
	return look.verdict;
}

/* A request of one packet, the `number`th from PSN on. */
static struct rc_packet request(uint8_t op, unsigned number, uint32_t length)
{
	return (struct rc_packet){
		.op = op, .flags = RC_FIRST | RC_LAST | RC_ACK_REQ,
		.psn = rc_psn_add(PSN, number), .rkey = 1, .length = length,
		.bytes = op == RC_SEND || op == RC_WRITE ? length : 0,
	};
}

static bool answer(bool early, uint64_t now_ns, struct rc_packet *p)
{
	struct rc_response r;

	if (!rc_respond_next(&rs, early, now_ns, &r))
		return false;
	r.packet.more = 0; /* one by one */
	*p = r.packet;
	rc_responded(&rs, &r, RC_OK);
	return true;
}

/* The next answer is this one; there are `count` of them. */
static void expect(uint8_t op, unsigned number, unsigned count)
{
	struct rc_packet p;

	for (unsigned i = 0; i < count; i++) {
		check(answer(true, 1, &p), "there is an answer");
		check(p.op == op, "of the right kind");
		check(p.psn == rc_psn_add(PSN, number + i), "with the right PSN");
	}
}

static void expect_nothing(void)
{
	struct rc_packet p;

	check(!answer(true, UINT64_MAX, &p), "there is no answer");
}

static void one_request_more_than_granted_is_refused(void)
{
	struct rc_packet p;

	for (uint8_t granted = 0; granted <= RC_RESOURCES_MAX; granted++) {
		open_responder(granted, 0);
		for (unsigned i = 0; i < granted; i++)
			check(take(request(i & 1 ? RC_READ : RC_FETCH_ADD, i, 8), RC_OK, 1) ==
				      RC_EXPECTED, "as many as were granted are taken");
		check(take(request(RC_READ, granted, 8), RC_OK, 1) == RC_WRONG,
		      "one more is not");
		for (unsigned i = 0; i < granted; i++)
			expect(i & 1 ? RC_READ_RESPONSE : RC_ATOMIC_RESPONSE, i, 1);
		check(answer(true, 1, &p) && p.op == RC_ACK &&
			      p.syndrome == RC_SYN_INVALID, "a NAK, invalid request");
	}
}

static void an_answered_request_makes_room_for_one(void)
{
	open_responder(1, 0);
	for (unsigned i = 0; i < 5; i++) {
		check(take(request(RC_READ, i, 8), RC_OK, 1) == RC_EXPECTED, "taken");
		expect(RC_READ_RESPONSE, i, 1);
	}
	/* Repeating an answer takes no room. */
	check(take(request(RC_READ, 4, 8), RC_OK, 1) == RC_AGAIN, "again");
	check(take(request(RC_READ, 5, 8), RC_OK, 1) == RC_EXPECTED, "and a new one");
	expect(RC_READ_RESPONSE, 5, 1);
	expect_nothing();
}

static void a_word_and_a_flush_are_answered_like_a_read_of_nothing(void)
{
	struct rc_packet word = request(RC_WRITE, 0, 8), p;
	struct rc_look look;

	word.flags |= RC_WORD;
	open_responder(2, 0);
	rc_look(&rs, &word, &look);
	check(look.verdict == RC_EXPECTED && look.needs == WORK_NEED_PLACE, "to be placed");
	take(word, RC_OK, 1);
	p = request(RC_FLUSH, 1, 100);
	p.flush = RC_FLUSH_GLOBAL;
	rc_look(&rs, &p, &look);
	check(look.verdict == RC_EXPECTED && look.needs == WORK_NEED_FLUSH &&
		      look.op == RC_FLUSH && look.length == 100, "to be flushed");
	take(p, RC_OK, 1);
	for (unsigned i = 0; i < 2; i++) {
		check(answer(true, 1, &p) && p.op == RC_READ_RESPONSE && !p.bytes &&
			      p.flags == (RC_FIRST | RC_LAST) && p.msn == i + 1 &&
			      p.psn == rc_psn_add(PSN, i), "an answer of no bytes");
	}
	expect_nothing();
	check(take(word, RC_OK, 1) == RC_AGAIN, "it is not carried out twice");
	expect(RC_READ_RESPONSE, 0, 1);
	expect_nothing();
	check(take(request(RC_FLUSH, 2, 0), RC_OK, 1) == RC_EXPECTED, "a third");
	check(take(request(RC_FLUSH, 3, 0), RC_OK, 1) == RC_EXPECTED, "a fourth");
	word.psn = rc_psn_add(PSN, 4);
	check(take(word, RC_OK, 1) == RC_WRONG, "they count for max_rd_atomic");
}

static void a_word_has_eight_bytes(void)
{
	struct rc_packet word = request(RC_WRITE, 0, 4);

	word.flags |= RC_WORD;
	open_responder(2, 0);
	check(take(word, RC_OK, 1) == RC_WRONG, "four bytes are no word");
	open_responder(2, 0);
	word.length = 8;
	check(take(word, RC_OK, 1) == RC_WRONG, "whatever its header says");
}

static void only_the_request_that_is_repeated_is_answered_again(void)
{
	struct rc_packet p;

	open_responder(4, 0);
	take(request(RC_READ, 0, 3 * MTU), RC_OK, 1); /* PSNs 0 to 2 */
	take(request(RC_FETCH_ADD, 3, 8), RC_OK, 1);
	take(request(RC_READ, 4, 2 * MTU), RC_OK, 1); /* 4 and 5 */
	expect(RC_READ_RESPONSE, 0, 3);
	expect(RC_ATOMIC_RESPONSE, 3, 1);
	expect(RC_READ_RESPONSE, 4, 1);
	/* The rest of the first one, from its second packet on. */
	p = request(RC_READ, 1, 2 * MTU);
	p.remote_addr = MTU;
	check(take(p, RC_OK, 1) == RC_AGAIN, "a rest of it");
	check(answer(true, 1, &p) && p.flags == RC_FIRST && p.psn == rc_psn_add(PSN, 1),
	      "an answer to a rest begins with a first packet");
	check(answer(true, 1, &p) && p.flags == RC_LAST, "and has a last one");
	expect(RC_READ_RESPONSE, 5, 1);
	expect_nothing();
	p = request(RC_READ, 2, MTU);
	p.remote_addr = 2 * MTU;
	take(p, RC_OK, 1);
	check(answer(true, 1, &p) && p.flags == (RC_FIRST | RC_LAST),
	      "an only one if there is one");
	expect_nothing();
}

static void a_response_acknowledges_by_itself(void)
{
	open_responder(2, 20000);
	take(request(RC_SEND, 0, 10), RC_OK, 1);
	take(request(RC_READ, 1, 10), RC_OK, 1);
	expect(RC_READ_RESPONSE, 1, 1);
	expect_nothing();
	take(request(RC_READ, 2, 10), RC_OK, 1);
	take(request(RC_SEND, 3, 10), RC_OK, 1);
	expect(RC_READ_RESPONSE, 2, 1);
	expect(RC_ACK, 3, 1);
	expect_nothing();
}

static void an_acknowledgement_waits_for_more(void)
{
	struct rc_packet p;

	open_responder(1, 20000);
	take(request(RC_SEND, 0, 10), RC_OK, 1000);
	check(!answer(false, 1000, &p), "not in the turn of the request");
	check(rc_respond_deadline(&rs) == 21000, "but after a while");
	take(request(RC_SEND, 1, 10), RC_OK, 5000);
	check(!answer(false, 20999, &p), "a later one does not prolong that");
	check(answer(false, 21000, &p) && p.op == RC_ACK && p.psn == rc_psn_add(PSN, 1),
	      "one for both");
	check(!rc_respond_deadline(&rs), "nothing is owed");
	take(request(RC_SEND, 2, 10), RC_OK, 30000);
	expect(RC_ACK, 2, 1); /* early */
	take(request(RC_SEND, 1, 10), RC_OK, 40000);
	check(answer(false, 40000, &p) && p.psn == rc_psn_add(PSN, 2),
	      "for a repeated request it does not wait");
	take(request(RC_SEND, 4, 10), RC_OK, 50000);
	check(answer(false, 50000, &p) && p.syndrome == RC_SYN_SEQUENCE,
	      "nor does a NAK");
}

static void marked_packets_bring_a_cnp_now_and_then(void)
{
	struct rc_packet p;

	open_responder(1, 20000);
	take(request(RC_SEND, 0, 10), RC_OK, 1000);
	rc_marked(&rs, 1000);
	rc_marked(&rs, 1001);
	check(rc_respond_deadline(&rs) && rc_respond_deadline(&rs) <= 1000, "at once");
	check(answer(false, 1001, &p) && p.op == RC_CNP, "a CNP leaves at once");
	check(!answer(false, 1001, &p), "one of them");
	rc_marked(&rs, 50999);
	check(!rs.marks.owed, "not too often");
	rc_marked(&rs, 51000);
	expect(RC_CNP, RC_PSN_MASK + 1u - PSN, 1);
	expect(RC_ACK, 0, 1);
	expect_nothing();
}

static void responses_have_a_pace(void)
{
	uint64_t now = 1000000;
	struct rc_packet p;
	unsigned sent = 0;

	open_responder(1, 0);
	rs.pace.line_bps = 8000000000; /* a byte in a nanosecond */
	rc_slow(&rs, now);
	take(request(RC_READ, 0, 100 * MTU), RC_OK, now);
	take(request(RC_SEND, 100, 10), RC_OK, now);
	for (unsigned i = 0; i < 50; i++) {
		while (answer(true, now, &p))
			sent++;
		check(rc_respond_deadline(&rs) > now, "it says when it goes on");
		now = rc_respond_deadline(&rs);
	}
	check(sent >= 50 && sent <= 52, "half of the rate of the line");
	check(now >= 1000000 + 49 * 2 * (MTU + RC_PACE_HEADERS), "in that time");
}

/* Answers that found no room in the carrier are the same the next time, however many of
 * them were taken back. */
static void answers_that_did_not_leave_come_again(void)
{
	static struct rc_respond_mark mark;
	static struct rc_packet first[16];

	for (unsigned back = 1; back <= 10; back++) {
		struct rc_packet p;
		unsigned n = 0;

		open_responder(RC_RESOURCES_MAX, 0);
		for (unsigned i = 0; i < 5; i++)
			check(take(request(RC_READ, i, 8), RC_OK, 1) == RC_EXPECTED, "read");
		expect(RC_READ_RESPONSE, 0, 1);
		rc_marked(&rs, 1);
		check(take(request(RC_READ, 5, 3 * MTU), RC_OK, 1) == RC_EXPECTED, "read");
		check(take(request(RC_SEND, 8, 8), RC_OK, 1) == RC_EXPECTED, "send");
		rc_respond_mark(&rs, &mark);
		while (n < back && answer(true, 1, &first[n]))
			n++;
		rc_respond_undo(&rs, &mark);
		for (unsigned i = 0; i < n; i++)
			check(answer(true, 1, &p) && !memcmp(&p, &first[i], sizeof(p)),
			      "the same answer again");
		while (answer(true, 1, &p))
			n++;
		check(n == 9, "a CNP, 4 + 3 packets of responses, an ACK");
		expect_nothing();
	}
}

static void unreliable_ones_know_no_words(void)
{
	struct rc_packet word = request(RC_WRITE, 0, 8);

	open_responder(1, 0);
	rs.p.reliable = false;
	word.flags |= RC_WORD;
	check(take(word, RC_OK, 1) == RC_IGNORED, "a word");
	check(take(request(RC_FLUSH, 0, 8), RC_OK, 1) == RC_IGNORED, "a flush");
	rc_marked(&rs, 1);
	expect(RC_CNP, RC_PSN_MASK + 1u - PSN, 1);
	expect_nothing();
}

/* Takes packet `number` of a message, which has packets of MTU bytes, with `more` behind it. Returns
 * how many were taken. */
static uint32_t take_more(uint8_t op, uint32_t number, uint32_t more)
{
	struct rc_packet p = {
		.op = op, .flags = number ? 0 : RC_FIRST, .psn = rc_psn_add(PSN, number),
		.bytes = MTU, .more = more, .length = number ? 0 : 10 * MTU,
	};
	struct rc_look look;

	rc_look(&rs, &p, &look);
	if (look.verdict != RC_EXPECTED)
		return 0;
	check(look.at == number * MTU, "where it belongs");
	rc_take(&rs, &p, &look, RC_OK, 0, 1);
	return 1 + look.more;
}

static void a_run_counts_as_its_packets(void)
{
	struct rc_responder one_by_one;

	for (unsigned n = 0; n < 8; n++) {
		uint8_t op = n & 1 ? RC_WRITE : RC_SEND;
		bool reliable = n & 2;

		open_responder(1, 0);
		rs.p.reliable = reliable;
		for (uint32_t i = 0; i < 8; i++)
			check(take_more(op, i, 0) == 1, "a packet");
		one_by_one = rs;
		open_responder(1, 0);
		rs.p.reliable = reliable;
		check(take_more(op, 0, 5) == 1, "the first one has a flag");
		check(take_more(op, 1, 2) == 3, "a run");
		check(take_more(op, 4, 3) == 4, "another one");
		check(!memcmp(&rs, &one_by_one, sizeof(rs)), "the same state");
		check(take_more(op, 9, 3) == 0, "one of them is missing");
		if (reliable)
			check(take_more(op, 4, 3) == 0, "copies");
		check(take_more(op, 8, 9) == (op == RC_WRITE ? 1 : 10),
		      "the last packet of a WRITE has a flag");
	}
}

static void a_response_is_a_run(void)
{
	struct rc_response r;

	open_responder(1, 0);
	take(request(RC_READ, 0, 10 * MTU - 1), RC_OK, 1);
	check(rc_respond_next(&rs, true, 1, &r) && r.packet.flags == RC_FIRST && !r.packet.more,
	      "the first packet");
	rc_responded(&rs, &r, RC_OK);
	check(rc_respond_next(&rs, true, 1, &r) && !r.packet.flags && r.packet.more == 7,
	      "those between");
	r.packet.more = 4;
	rc_responded(&rs, &r, RC_OK);
	check(rc_respond_next(&rs, true, 1, &r) && r.packet.psn == rc_psn_add(PSN, 6) &&
		      r.remote_addr == 6 * MTU && r.packet.more == 2, "as many as are left");
	rc_responded(&rs, &r, RC_OK);
	check(rc_respond_next(&rs, true, 1, &r) && r.packet.flags == RC_LAST &&
		      r.packet.bytes == MTU - 1, "the last one");
	rc_responded(&rs, &r, RC_OK);
	expect_nothing();
}

int main(void)
{
	a_run_counts_as_its_packets();
	a_response_is_a_run();
	one_request_more_than_granted_is_refused();
	an_answered_request_makes_room_for_one();
	a_word_and_a_flush_are_answered_like_a_read_of_nothing();
	a_word_has_eight_bytes();
	only_the_request_that_is_repeated_is_answered_again();
	a_response_acknowledges_by_itself();
	an_acknowledgement_waits_for_more();
	marked_packets_bring_a_cnp_now_and_then();
	responses_have_a_pace();
	answers_that_did_not_leave_come_again();
	unreliable_ones_know_no_words();
	return 0;
}
