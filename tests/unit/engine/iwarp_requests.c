/* SPDX-License-Identifier: BSD-2-Clause */
/* The send queue and the responses of iWARP: what is sent when, and completes when. */
#include <arpa/inet.h>

#include "iwarp_kit.h"

/* ---- the send queue ---- */

static void a_send_is_cut_into_segments(void)
{
	struct iwarp_segment s;

	open_end(true);
	post(WORK_SEND, WORK_SOLICITED | WORK_INVALIDATE, 250);
	for (uint32_t at = 0, n; at < 250; at += n) {
		s = send_one();
		n = 250 - at < 110 ? 250 - at : 110;
		check(s.opcode == IWARP_SEND_SE_INVALIDATE && s.msn == 1 && s.mo == at &&
			      s.bytes == n && s.last == (at + n == 250) &&
			      s.invalidate_stag == 0x01020304, "a segment of MULPDU");
	}
	post(WORK_SEND, 0, 0);
	s = send_one();
	check(s.opcode == IWARP_SEND && s.msn == 2 && !s.mo && !s.bytes && s.last, "and the next");
}

static void a_write_is_cut_into_segments(void)
{
	struct iwarp_segment s;

	open_end(true);
	post(WORK_WRITE, 0, 115);
	s = send_one();
	check(s.opcode == IWARP_WRITE && s.stag == 7 && s.to == 0x1000 && s.bytes == 114 && !s.last,
	      "the first");
	expect_done(0, IBV_WC_SUCCESS, "it is not complete");
	s = send_one();
	check(s.to == 0x1000 + 114 && s.bytes == 1 && s.last, "the last");
	expect_done(1, IBV_WC_SUCCESS, "it is complete");
}

static void immediate_data_follow_their_write(void)
{
	struct iwarp_segment s;

	open_end(true);
	for (uint32_t length = 0; length < 200; length += 150) {
		post(WORK_WRITE, WORK_IMM | WORK_SOLICITED, length);
		for (s = send_one(); !s.last; s = send_one())
			check(s.opcode == IWARP_WRITE, "a WRITE");
		check(s.opcode == IWARP_WRITE, "a WRITE");
		s = send_one();
		check(s.opcode == IWARP_IMMEDIATE_SE &&
			      htonl((uint32_t)(s.immediate >> 32)) == 0x01020304, "its data");
		expect_done(c.rq.head, IBV_WC_SUCCESS, "complete with both");
	}
	check(s.msn == 2, "each is a message");
}

static void immediate_data_complete_a_receive(void)
{
	struct iwarp_arrival a;

	open_end(true);
	arrive(write_segment(100, false));
	arrive(write_segment(23, true));
	a = arrive(immediate(1));
	check(a.look.needs == (WORK_NEED_RECEIVE | WORK_NEED_COMPLETE), "a receive is needed");
	check(last.receive.complete && last.receive.immediate && last.receive.bytes == 123 &&
		      ntohl(last.receive.imm) == 0x01020304, "with the length of the WRITE");
	arrive(immediate(2));
	check(last.receive.complete && last.receive.bytes == 0, "or of none");
	arrive(write_segment(100, true));
	arrive(send_segment(3, 0, 5, true));
	arrive(immediate(4));
	check(last.receive.bytes == 0, "which came just before");
}

static void what_cannot_be_sent_is_known_before(void)
{
	static const struct {
		uint8_t op, flags;
		uint32_t length;
		bool extended, plain, without_ord;
	} rows[] = {
		{ WORK_SEND, WORK_INVALIDATE | WORK_SOLICITED | WORK_FENCE, 9, true, true, true },
		{ WORK_SEND, WORK_IMM, 9, false, false, false },
		{ WORK_WRITE, 0, 9, true, true, true },
		{ WORK_WRITE, WORK_IMM, 9, true, false, true },
		{ WORK_WRITE, WORK_INVALIDATE, 9, false, false, false },
		{ WORK_WRITE, WORK_WORD, 8, false, false, false },
		{ WORK_READ, WORK_FENCE, 9, true, true, false },
		{ WORK_READ, WORK_INVALIDATE, 9, false, false, false },
		{ WORK_FETCH_ADD, 0, 8, true, false, false },
		{ WORK_COMPARE_SWAP, 0, 8, true, false, false },
		{ WORK_COMPARE_SWAP, 0, 4, false, false, false },
		{ WORK_FLUSH, 0, 0, false, false, false },
	};

	open_end(true);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const struct iwarp_wqe e = { .op = rows[i].op, .flags = rows[i].flags,
					     .length = rows[i].length };
		struct iwarp_requester rq = c.rq;

		check(iwarp_request_possible(&rq, &e) == rows[i].extended, "with RFC 7306");
		rq.p.extended = false;
		check(iwarp_request_possible(&rq, &e) == rows[i].plain, "without");
		rq.p.extended = true;
		rq.p.ord = 0;
		check(iwarp_request_possible(&rq, &e) == rows[i].without_ord, "without READs");
	}
}

static void reads_wait_for_ord(void)
{
	open_end(true);
	for (unsigned i = 0; i < 3; i++)
		post(i == 1 ? WORK_FETCH_ADD : WORK_READ, 0, 8);
	check(send_one().msn == 1 && send_one().msn == 2, "two");
	check(!can_send(), "not three");
	arrive(read_response(1, 0, 3, false));
	check(!can_send(), "half of a response is none");
	arrive(read_response(1, 3, 5, true));
	expect_done(1, IBV_WC_SUCCESS, "one is answered");
	check(send_one().msn == 3, "then the third");
	arrive(atomic_response(1, 2));
	expect_done(2, IBV_WC_SUCCESS, "the atomic");
	arrive(read_response(3, 0, 8, true));
	expect_done(3, IBV_WC_SUCCESS, "all");
}

static void a_fence_waits_for_reads(void)
{
	open_end(true);
	post(WORK_READ, 0, 8);
	post(WORK_SEND, WORK_FENCE, 8);
	post(WORK_SEND, 0, 8);
	send_one();
	check(!can_send(), "it waits, and what follows it");
	arrive(read_response(1, 0, 8, true));
	check(send_one().opcode == IWARP_SEND && send_one().opcode == IWARP_SEND, "then not");
	post(WORK_WRITE, WORK_FENCE, 8);
	check(can_send(), "nor without READs");
}

static void completions_are_in_order_and_of_what_tcp_has_taken(void)
{
	uint64_t end;

	open_end(true);
	post(WORK_SEND, 0, 8);
	post(WORK_READ, 0, 8);
	post(WORK_WRITE, 0, 8);
	frame();
	end = c.framer.position;
	frame();
	frame();
	check(!can_send(), "three are framed");
	last = iwarp_took(&c, end - 1);
	expect_done(0, IBV_WC_SUCCESS, "a byte is missing");
	last = iwarp_took(&c, 1);
	expect_done(1, IBV_WC_SUCCESS, "the SEND");
	took_all();
	expect_done(1, IBV_WC_SUCCESS, "the WRITE waits for the READ before it");
	arrive(read_response(1, 0, 8, true));
	expect_done(3, IBV_WC_SUCCESS, "both");
}

static void the_limit_lets_begun_messages_end(void)
{
	struct iwarp_tx tx;

	open_end(true);
	post(WORK_SEND, 0, 200);
	post(WORK_SEND, 0, 8);
	check(!iwarp_next(&c, 0, &tx), "none begins");
	send_one();
	check(iwarp_next(&c, 0, &tx) && tx.at == 110, "one that has begun goes on");
	send_one();
	check(!iwarp_next(&c, 1, &tx) && iwarp_next(&c, 2, &tx), "the next does not begin");
}

static void the_longest_segment_may_change(void)
{
	open_end(true);
	post(WORK_SEND, 0, 200);
	iwarp_set_mulpdu(&c, 64);
	check(send_one().bytes == 46, "a short one");
	iwarp_set_mulpdu(&c, 128);
	check(send_one().bytes == 110 && send_one().bytes == 44, "and longer ones");
}

/* ---- payload that cannot be read or placed ---- */

static void refuse_next(enum ibv_wc_status status)
{
	struct iwarp_tx tx;

	check(iwarp_next(&c, c.rq.head, &tx), "there is a segment");
	last = iwarp_unreadable(&c, &tx, status, IWARP_NO_STAG);
}

static void a_message_without_memory_waits_for_those_before_it(void)
{
	open_end(true);
	post(WORK_READ, 0, 8);
	post(WORK_SEND, 0, 8);
	send_one();
	refuse_next(IBV_WC_LOC_PROT_ERR);
	check(!last.fail, "the READ may yet be answered");
	check(!can_send(), "nothing is sent meanwhile");
	arrive(read_response(1, 0, 8, true));
	check(last.fail, "then it fails");
	expect_done(1, IBV_WC_LOC_PROT_ERR, "with its own status, behind the READ");
	expect_terminate(IWARP_RDMAP_CATASTROPHIC);
	open_end(true);
	post(WORK_SEND, 0, 8);
	refuse_next(IBV_WC_LOC_PROT_ERR);
	check(last.fail, "at once, if it is the oldest");
	expect_done(0, IBV_WC_LOC_PROT_ERR, "with its own status");
}

static void half_a_message_cannot_wait(void)
{
	open_end(true);
	post(WORK_READ, 0, 8);
	post(WORK_SEND, 0, 200);
	send_one();
	send_one();
	arrive(read_request(1, 10));
	refuse_next(IBV_WC_LOC_PROT_ERR);
	check(last.fail, "it fails");
	expect_done(0, IBV_WC_WR_FLUSH_ERR, "and what was before it is flushed");
	/* A response within a message would be no message. */
	expect_terminate(IWARP_RDMAP_CATASTROPHIC);
}

static void a_read_without_memory_fails(void)
{
	struct iwarp_segment s = read_response(1, 0, 8, true);
	struct iwarp_arrival a;

	open_end(true);
	post(WORK_READ, 0, 8);
	post(WORK_READ, 0, 8);
	send_one();
	check(iwarp_arrived(&c, &s, &a) && !a.look.error && a.place.bytes == 8, "its response");
	last = iwarp_carried_out(&c, &s, &a, IWARP_DONE, 0, IBV_WC_LOC_PROT_ERR);
	check(last.fail, "it fails");
	expect_done(0, IBV_WC_LOC_PROT_ERR, "with its own status");
	expect_terminate(IWARP_RDMAP_CATASTROPHIC);
}

static void a_response_without_memory_ends_the_connection(void)
{
	open_end(true);
	arrive(read_request(1, 200));
	arrive(read_request(2, 200));
	send_one();
	post(WORK_SEND, 0, 8);
	check(can_send(), "the response goes on");
	refuse_next(IBV_WC_SUCCESS);
	check(last.fail, "it fails");
	expect_done(0, IBV_WC_WR_FLUSH_ERR, "and the own entries are flushed");
	check(!iwarp_respond_is_midway(&c.rs), "no response is under way");
	expect_terminate(IWARP_RDMAP_STAG);
}

/* ---- both kinds of messages ---- */

static void responses_and_requests_take_turns_at_borders(void)
{
	static const uint8_t want[] = {
		IWARP_SEND, IWARP_SEND, IWARP_READ_RESPONSE, IWARP_READ_RESPONSE, IWARP_WRITE,
		IWARP_IMMEDIATE, IWARP_ATOMIC_RESPONSE, IWARP_SEND,
	};

	open_end(true);
	arrive(read_request(1, 200));
	arrive(atomic_request(2));
	post(WORK_SEND, 0, 200);
	post(WORK_WRITE, WORK_IMM, 8);
	post(WORK_SEND, 0, 8);
	for (size_t i = 0; i < sizeof(want); i++)
		check(send_one().opcode == want[i], "in turns");
	check(!can_send(), "all");
}

static void responses_have_what_was_asked_for(void)
{
	struct iwarp_segment s;
	struct iwarp_tx tx;

	open_end(true);
	arrive(read_request(1, 200));
	arrive(atomic_request(2));
	check(iwarp_next(&c, 0, &tx) && tx.source == IWARP_FROM_MEMORY && tx.stag == 4 &&
		      tx.to == 0x400, "from here");
	s = send_one();
	check(s.stag == 41 && s.to == 0x300 && s.bytes == 114 && !s.last, "to there");
	check(iwarp_next(&c, 0, &tx) && tx.to == 0x400 + 114, "goes on");
	s = send_one();
	check(s.to == 0x300 + 114 && s.bytes == 86 && s.last, "ends");
	s = send_one();
	check(s.opcode == IWARP_ATOMIC_RESPONSE && s.msn == 1 && s.atomic_response.request == 5 &&
		      s.atomic_response.original == 9, "an atomic");
	arrive(read_request(3, 1));
	arrive(read_request(4, 1));
	check(!last.fail, "answered ones make room");
}

int main(void)
{
	a_send_is_cut_into_segments();
	a_write_is_cut_into_segments();
	immediate_data_follow_their_write();
	immediate_data_complete_a_receive();
	what_cannot_be_sent_is_known_before();
	reads_wait_for_ord();
	a_fence_waits_for_reads();
	completions_are_in_order_and_of_what_tcp_has_taken();
	the_limit_lets_begun_messages_end();
	the_longest_segment_may_change();
	a_message_without_memory_waits_for_those_before_it();
	half_a_message_cannot_wait();
	a_read_without_memory_fails();
	a_response_without_memory_ends_the_connection();
	responses_and_requests_take_turns_at_borders();
	responses_have_what_was_asked_for();
	return 0;
}
