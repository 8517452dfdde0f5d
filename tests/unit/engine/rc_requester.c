/* SPDX-License-Identifier: BSD-2-Clause */
/* Rules of the requester that a simulation meets too seldom to show. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/rc/requester.h"

enum { ENTRIES = 16, PSN = 0xfffffe };

static struct rc_wqe ring[ENTRIES];

static void check(bool good, const char *what)
{
	if (good)
		return;
	printf("failed: %s\n", what);
	exit(1);
}

static void open_requester(struct rc_requester *rq, unsigned sends)
{
	struct rc_requester_params p = {
		.reliable = true, .mtu = 256, .psn = PSN, .window = 64,
		.max_rd_atomic = 1, .retry_cnt = 7, .rnr_retry = 7,
		.timeout_ns = 1000000, .ring.entries = ring, .ring.stride = sizeof(ring[0]),
		.ring.mask = ENTRIES - 1,
	};

	rc_requester_open(rq, &p);
	for (unsigned i = 0; i < sends; i++) {
		ring[i] = (struct rc_wqe){ .op = RC_SEND, .length = 10 };
		rc_post(rq);
	}
}

static unsigned send_all(struct rc_requester *rq)
{
	struct rc_tx tx;
	unsigned n = 0;

	while (rc_next(rq, rq->head, 1, &tx)) {
		rc_sent(rq, &tx, 1);
		n += 1 + tx.packet.more;
	}
	return n;
}

/* The acknowledgement of message `number`, 0 for the first; `code` of credit. */
static struct work_done acknowledge(struct rc_requester *rq, unsigned number, uint8_t code)
{
	struct rc_packet p = {
		.op = RC_ACK, .psn = rc_psn_add(PSN, number), .msn = number + 1,
		.syndrome = RC_SYN_ACK | code,
	};

	return rc_reply(rq, &p, IBV_WC_SUCCESS, 2);
}

static void gap_at(struct rc_requester *rq, unsigned number)
{
	struct rc_packet p = {
		.op = RC_ACK, .psn = rc_psn_add(PSN, number), .msn = number,
		.syndrome = RC_SYN_SEQUENCE,
	};

	check(rc_reply(rq, &p, IBV_WC_SUCCESS, 2).status == IBV_WC_SUCCESS, "a gap");
}

static void credit_limits_what_is_sent(void)
{
	struct rc_requester rq;

	open_requester(&rq, 10);
	check(send_all(&rq) == 10, "without a limit all are sent");
	open_requester(&rq, 2);
	check(send_all(&rq) == 2, "both are sent");
	check(acknowledge(&rq, 1, 3).upto == 2, "both complete");
	for (unsigned i = 0; i < 8; i++)
		rc_post(&rq);
	check(send_all(&rq) == 3, "as many as there are receives");
	check(acknowledge(&rq, 1, 5).upto == 2, "a credit alone completes nothing");
	check(send_all(&rq) == 3, "a credit alone counts: 6 behind the second");
	check(acknowledge(&rq, 7, 0).upto == 8, "those complete");
	check(send_all(&rq) == 1, "without credit one goes, to learn of more");
	check(acknowledge(&rq, 8, RC_CREDITS_UNLIMITED).upto == 9, "it completes");
	check(send_all(&rq) == 1, "the limit is gone");
}

static struct work_done respond(struct rc_requester *rq, uint8_t op, unsigned number,
				uint32_t bytes)
{
	struct rc_packet p = {
		.op = op, .psn = rc_psn_add(PSN, number), .bytes = bytes,
		.flags = RC_FIRST | RC_LAST, .syndrome = RC_CREDITS_UNLIMITED,
	};

	return rc_reply(rq, &p, IBV_WC_SUCCESS, 2);
}

static void words_and_flushes_wait_for_a_response(void)
{
	struct rc_requester rq;
	struct rc_place place;
	struct rc_tx tx;

	open_requester(&rq, 0);
	ring[0] = (struct rc_wqe){ .op = RC_WRITE, .flags = RC_WORD, .length = 8, .rkey = 3 };
	ring[1] = (struct rc_wqe){ .op = RC_FLUSH, .flush = RC_FLUSH_GLOBAL, .length = 100 };
	ring[2] = (struct rc_wqe){ .op = RC_WRITE, .length = 8 };
	for (unsigned i = 0; i < 3; i++)
		rc_post(&rq);
	check(rc_next(&rq, rq.head, 1, &tx) && (tx.packet.flags & RC_WORD) &&
		      tx.packet.bytes == 8 && tx.packet.length == 8 && tx.packet.rkey == 3,
	      "the packet of a word is marked");
	rc_sent(&rq, &tx, 1);
	check(!rc_next(&rq, rq.head, 1, &tx), "it counts for max_rd_atomic");
	check(acknowledge(&rq, 0, RC_CREDITS_UNLIMITED).upto == 0,
	      "an acknowledgement does not complete it");
	check(send_all(&rq) == 1, "so it is sent again");
	rc_reply_look(&rq, &(struct rc_packet){ .op = RC_READ_RESPONSE, .psn = PSN }, &place);
	check(place.wanted && !place.bytes, "nothing is to be placed");
	check(respond(&rq, RC_READ_RESPONSE, 0, 0).upto == 1, "a response does");
	check(rc_next(&rq, rq.head, 1, &tx) && tx.packet.op == RC_FLUSH &&
		      tx.packet.flush == RC_FLUSH_GLOBAL && tx.packet.length == 100 &&
		      !tx.packet.bytes, "a flush");
	rc_sent(&rq, &tx, 1);
	check(rc_next(&rq, rq.head, 1, &tx) && !(tx.packet.flags & RC_WORD),
	      "another WRITE is not marked");
	rc_sent(&rq, &tx, 1);
	check(respond(&rq, RC_READ_RESPONSE, 1, 4).status == IBV_WC_BAD_RESP_ERR,
	      "a response to a flush has no bytes");
}

static struct work_done refuse(struct rc_requester *rq, unsigned number, uint8_t syndrome)
{
	struct rc_packet p = {
		.op = RC_ACK, .psn = rc_psn_add(PSN, number), .syndrome = syndrome,
	};

	return rc_reply(rq, &p, IBV_WC_SUCCESS, 2);
}

/* The responder answers nothing any more: without this NAK only retries would end it. */
static void a_fatal_nak_counts_also_when_its_packet_is_to_be_sent_again(void)
{
	struct rc_requester rq;

	open_requester(&rq, 2);
	check(send_all(&rq) == 2, "both are sent");
	check(rc_timer(&rq, 5000000).status == IBV_WC_SUCCESS, "time is over");
	check(refuse(&rq, 0, RC_SYN_ACCESS).status == IBV_WC_REM_ACCESS_ERR, "the NAK");
	open_requester(&rq, 2);
	check(send_all(&rq) == 2, "both are sent");
	check(refuse(&rq, 1, RC_SYN_RNR | 1).upto == 1, "not ready");
	check(refuse(&rq, 1, RC_SYN_INVALID).status == IBV_WC_REM_INV_REQ_ERR,
	      "and not in order");
	open_requester(&rq, 1);
	check(send_all(&rq) == 1, "one is sent");
	check(refuse(&rq, 1, RC_SYN_ACCESS).status == IBV_WC_SUCCESS,
	      "not one of what was not sent");
}

/* Linux's rxe sends the NAK with the PSN of the request. */
static void a_nak_ends_a_read_that_is_half_answered(void)
{
	struct rc_requester rq;
	struct rc_packet first = {
		.op = RC_READ_RESPONSE, .psn = PSN, .bytes = 256, .flags = RC_FIRST,
		.syndrome = RC_CREDITS_UNLIMITED,
	};

	open_requester(&rq, 0);
	ring[0] = (struct rc_wqe){ .op = RC_READ, .length = 1000 };
	rc_post(&rq);
	check(send_all(&rq) == 1, "it is sent");
	check(rc_reply(&rq, &first, IBV_WC_SUCCESS, 2).status == IBV_WC_SUCCESS, "a part");
	check(refuse(&rq, 0, RC_SYN_SEQUENCE).status == IBV_WC_SUCCESS, "not any NAK");
	check(refuse(&rq, 0, RC_SYN_ACCESS).status == IBV_WC_REM_ACCESS_ERR, "a fatal one");
}

static void what_is_sent_again_asks_for_an_acknowledgement(void)
{
	struct rc_requester rq;
	struct rc_tx tx;

	open_requester(&rq, 0);
	ring[0] = (struct rc_wqe){ .op = RC_SEND, .length = 2560 };
	rc_post(&rq);
	for (unsigned i = 0; i < 10; i++) {
		check(rc_next(&rq, rq.head, 1, &tx), "a packet");
		check(!(tx.packet.flags & RC_ACK_REQ) == (i < 9), "the last one asks");
		check(tx.packet.more == (i > 0 && i < 9 ? 8 - i : 0), "those between are alike");
		tx.packet.more = 0;
		rc_sent(&rq, &tx, 1);
	}
	gap_at(&rq, 4);
	check(rc_next(&rq, rq.head, 1, &tx) && (tx.packet.flags & RC_ACK_REQ),
	      "the first one that is sent again asks");
	rc_sent(&rq, &tx, 1);
	check(rc_next(&rq, rq.head, 1, &tx) && !(tx.packet.flags & RC_ACK_REQ),
	      "the next one does not");
}

static void a_response_brings_credit(void)
{
	struct rc_requester rq;
	struct rc_packet p = {
		.op = RC_ATOMIC_RESPONSE, .psn = PSN, .msn = 1,
		.flags = RC_FIRST | RC_LAST, .syndrome = RC_SYN_ACK | 2,
	};

	open_requester(&rq, 0);
	ring[0] = (struct rc_wqe){ .op = RC_FETCH_ADD, .length = 8 };
	rc_post(&rq);
	check(send_all(&rq) == 1, "an atomic");
	check(rc_reply(&rq, &p, IBV_WC_SUCCESS, 2).upto == 1, "it completes");
	for (unsigned i = 1; i < 6; i++) {
		ring[i] = (struct rc_wqe){ .op = RC_SEND, .length = 10 };
		rc_post(&rq);
	}
	check(send_all(&rq) == 2, "as many as there are receives");
}

static void a_cnp_makes_it_slower(void)
{
	struct rc_requester rq;
	struct rc_packet cnp = { .op = RC_CNP, .flags = RC_FIRST | RC_LAST };
	uint64_t due;
	struct rc_tx tx;

	open_requester(&rq, 4);
	rq.pace.line_bps = 8000000000; /* a byte in a nanosecond */
	check(rc_reply(&rq, &cnp, IBV_WC_SUCCESS, 1000).upto == 0, "it completes nothing");
	check(rc_next(&rq, rq.head, 1000, &tx), "one may go");
	rc_sent(&rq, &tx, 1000);
	check(!rc_next(&rq, rq.head, 1001, &tx), "then there is a wait");
	due = rc_deadline(&rq);
	check(due >= 1000 + 2 * RC_PACE_HEADERS && due < 1300, "which has an end");
	check(rc_timer(&rq, due).status == IBV_WC_SUCCESS, "which is no timeout");
	check(rc_next(&rq, rq.head, due, &tx), "the next one");
	rc_sent(&rq, &tx, due);
	for (unsigned i = 0; i < 2; i++) {
		due = rc_deadline(&rq);
		rc_timer(&rq, due);
		check(rc_next(&rq, rq.head, due, &tx), "the others");
		rc_sent(&rq, &tx, due);
	}
	check(rc_deadline(&rq) == 1000 + rq.p.timeout_ns, "now only answers are awaited");
}

static void slow_packets_ask_for_an_acknowledgement(void)
{
	struct rc_requester rq;
	uint64_t now = 1000;
	struct rc_tx tx;

	open_requester(&rq, 0);
	for (unsigned i = 0; i < 20; i++, now += RC_PACE_CNP_NS)
		rc_reply(&rq, &(struct rc_packet){ .op = RC_CNP }, IBV_WC_SUCCESS, now);
	ring[0] = (struct rc_wqe){ .op = RC_SEND, .length = 2560 };
	rc_post(&rq);
	for (unsigned i = 0; i < 10; i++, now = rc_deadline(&rq)) {
		rc_timer(&rq, now);
		check(rc_next(&rq, rq.head, now, &tx) && (tx.packet.flags & RC_ACK_REQ),
		      "each asks");
		rc_sent(&rq, &tx, now);
	}
}

static void unreliable_ones_have_a_pace_too(void)
{
	struct rc_requester rq;
	struct rc_packet cnp = { .op = RC_CNP };

	open_requester(&rq, 4);
	rq.p.reliable = false;
	rc_reply(&rq, &cnp, IBV_WC_SUCCESS, 1);
	check(send_all(&rq) == 1, "one at a time");
	check(rc_deadline(&rq) > 1, "the next one later");
}

static void a_late_acknowledgement_takes_no_credit_away(void)
{
	struct rc_requester rq;

	open_requester(&rq, 4);
	check(send_all(&rq) == 4, "all are sent");
	check(acknowledge(&rq, 3, 4).upto == 4, "all complete");
	for (unsigned i = 0; i < 4; i++)
		rc_post(&rq);
	check(acknowledge(&rq, 0, 0).upto == 4, "an old one completes nothing");
	check(send_all(&rq) == 4, "the newest credit counts");
	check(acknowledge(&rq, 9, 0).upto == 4, "nor does one of what was not sent");
	rc_post(&rq);
	check(send_all(&rq) == 0, "which brings no credit either");
}

static void a_copy_of_a_nak_costs_no_retry(void)
{
	struct rc_requester rq;

	open_requester(&rq, 8);
	check(send_all(&rq) == 8, "all are sent");
	gap_at(&rq, 2);
	check(send_all(&rq) == 6, "from the gap on again");
	for (unsigned i = 0; i < 20; i++)
		gap_at(&rq, 2);
	check(send_all(&rq) == 0, "copies say nothing");
	gap_at(&rq, 3);
	check(send_all(&rq) == 5, "another gap");
	check(rc_timer(&rq, 5000000).status == IBV_WC_SUCCESS, "time is over");
	check(send_all(&rq) == 5, "all that is unanswered again");
	gap_at(&rq, 3);
	check(send_all(&rq) == 5, "a gap in what was sent again");
}

/* Whatever the window does. */
static void one_of_half_a_window_asks_for_an_acknowledgement(void)
{
	struct rc_requester rq;
	struct rc_tx tx;
	uint32_t silent = 0;

	open_requester(&rq, 0);
	ring[0] = (struct rc_wqe){ .op = RC_SEND, .length = 256 * 1000 };
	rc_post(&rq);
	rq.window = (struct rc_window){ .size = 100, .least = 64, .limit = 100, .most = 100 };
	while (rc_next(&rq, rq.head, 1, &tx)) {
		silent = tx.packet.flags & RC_ACK_REQ ? 0 : silent + 1 + tx.packet.more;
		check(silent < 50, "one of 50");
		rc_sent(&rq, &tx, 1);
	}
	check(rq.send_psn == rc_psn_add(PSN, 100), "a window");
	acknowledge(&rq, 49, RC_CREDITS_UNLIMITED);
	rq.window.size = 64;
	while (rc_next(&rq, rq.head, 1, &tx))
		rc_sent(&rq, &tx, 1);
	check(rq.send_psn == rc_psn_add(PSN, 114), "a smaller one");
	check(rc_psn_diff(rq.send_psn, rq.asked_psn) < 32, "that has one that asks, too");
}

static void a_window_that_was_full_opens_by_a_quarter(void)
{
	struct rc_requester rq;

	open_requester(&rq, 0);
	ring[0] = (struct rc_wqe){ .op = RC_SEND, .length = 256 * 1000 };
	rc_post(&rq);
	rc_window_open(&rq.window, 64, 128, 128);
	check(send_all(&rq) == 128, "a window");
	acknowledge(&rq, 30, RC_CREDITS_UNLIMITED);
	check(send_all(&rq) == 0, "too little is free");
	acknowledge(&rq, 31, RC_CREDITS_UNLIMITED);
	check(send_all(&rq) == 32, "a quarter");
	/* It becomes smaller: more of it is used up than three quarters, by packets that do not
	 * ask for an acknowledgement. */
	rc_window_open(&rq.window, 64, 64, 64);
	rq.window.closed = true;
	rq.asked_psn = rc_psn_add(PSN, 110);
	acknowledge(&rq, 109, RC_CREDITS_UNLIMITED);
	check(send_all(&rq) == 14, "all of it is used");
}

/* Of a response: packets [number, number + more]; how many of them were taken. */
static uint32_t respond_more(struct rc_requester *rq, uint32_t number, uint32_t more)
{
	const struct rc_packet p = {
		.op = RC_READ_RESPONSE, .psn = rc_psn_add(PSN, number), .bytes = 256,
		.more = more, .flags = number ? 0 : RC_FIRST,
		.syndrome = RC_SYN_ACK | RC_CREDITS_UNLIMITED,
	};
	struct rc_place place;

	rc_reply_look(rq, &p, &place);
	check(!place.wanted || place.at == number * 256, "where it belongs");
	check(rc_reply(rq, &p, IBV_WC_SUCCESS, 2).status == IBV_WC_SUCCESS, "no error");
	return place.wanted ? 1 + place.more : 0;
}

static void a_run_of_a_response_counts_as_its_packets(void)
{
	struct rc_requester rq;

	open_requester(&rq, 0);
	ring[0] = (struct rc_wqe){ .op = RC_READ, .length = 2560 };
	rc_post(&rq);
	check(send_all(&rq) == 1, "one request");
	check(respond_more(&rq, 0, 9) == 1, "the first one has a flag");
	check(respond_more(&rq, 1, 3) == 4 && rq.unacked == rc_psn_add(PSN, 5), "a run");
	check(respond_more(&rq, 1, 3) == 0 && rq.unacked == rc_psn_add(PSN, 5), "a copy of it");
	check(respond_more(&rq, 7, 1) == 0, "some are missing: they are asked for again");
	check(send_all(&rq) == 1, "by one request");
	check(respond_more(&rq, 5, 90) == 5 && rq.tail == 1, "no more than there are");
}

/* Sends without a pause over a link that carries a packet in `packet_ns`; acknowledgements come
 * `delay_ns` behind that. Returns the window at the end. */
static uint32_t window_behind(uint64_t delay_ns, uint64_t packet_ns, uint32_t most)
{
	static uint64_t left_ns[4096];
	uint64_t now = 1, link = 0;
	uint32_t sent = 0;
	struct rc_window w;

	rc_window_open(&w, 64, 256, most);
	for (uint32_t acked = 0; acked < 32000; acked += 32) {
		for (; sent - acked < w.size; sent++) {
			left_ns[sent % 4096] = now;
			if (sent % 32 == 31)
				rc_window_asked(&w, sent, acked, now);
		}
		for (uint32_t i = acked; i < acked + 32; i++)
			link = (link > left_ns[i % 4096] ? link : left_ns[i % 4096]) + packet_ns;
		now = link + delay_ns;
		rc_window_advanced(&w, acked + 32, sent, now);
		check(w.size >= 64 && w.size <= most, "within its bounds");
	}
	return w.size;
}

static void the_window_is_that_of_the_path(void)
{
	uint32_t near = window_behind(2000, 400, 4096), far = window_behind(200000, 400, 4096);

	check(near >= 256 && near < 400, "a path without delay");
	check(far > 2 * 200000 / 400 && far < 2048, "twice delay times bandwidth and more");
	check(window_behind(200000, 400, 300) == 300, "as much as the buffer takes");
}

static void a_loss_makes_the_window_smaller_for_a_while(void)
{
	struct rc_window w;

	rc_window_open(&w, 64, 256, 256);
	rc_window_lost(&w);
	check(w.size == 128, "half of it");
	rc_window_lost(&w);
	rc_window_lost(&w);
	check(w.size == 64, "never fewer than the least");
	for (uint32_t i = 0; i < 12; i++) {
		rc_window_asked(&w, i, i, 10 * i);
		rc_window_advanced(&w, i + 1, i + 1, 10 * i + 5);
	}
	check(w.size == 256, "it grows again");
	rc_window_asked(&w, 100, 100, 1000);
	rc_window_repeat(&w);
	rc_window_advanced(&w, 101, 101, 1001);
	check(w.delay_ns == 5, "what is sent again measures nothing");
}

/* A window that is used up; no acknowledgement for `gap_ns`, then one of each 32 packets, a step
 * apart. Returns the window behind `rounds` of that. */
static uint32_t window_behind_gaps(uint64_t gap_ns, uint64_t step_ns, unsigned rounds)
{
	uint32_t sent = 0, acked = 0;
	uint64_t now = 1;
	struct rc_window w;

	rc_window_open(&w, 64, 256, 4096);
	for (; rounds; rounds--) {
		for (; sent - acked < w.size; sent++)
			if (sent % 32 == 31)
				rc_window_asked(&w, sent, acked, now);
		now += gap_ns;
		for (uint32_t top = sent; acked != top; now += step_ns) {
			w.closed = acked + w.size == top;
			acked += top - acked < 32 ? top - acked : 32;
			rc_window_advanced(&w, acked, sent, now);
			check(w.size >= 64 && w.size <= 4096, "within its bounds");
		}
	}
	return w.size;
}

static void a_stall_makes_the_window_larger_for_a_while(void)
{
	struct rc_window w;

	check(window_behind_gaps(3000000, 1000, 1) >= 512, "twice as large");
	check(window_behind_gaps(3000000, 1000, 12) > 3000, "what the other end has work for");
	check(window_behind_gaps(100000, 1000, 12) < 900, "no stall: too short");
	check(window_behind_gaps(3000000, 1000000, 12) < 900, "no stall: the path is slow");
	rc_window_open(&w, 64, 256, 4096);
	rc_window_asked(&w, 0, 0, 1);
	rc_window_advanced(&w, 1, 1, 100);
	w.closed = true;
	rc_window_advanced(&w, 257, 257, 5000000);
	check(w.size >= 512, "a stall");
	for (uint32_t i = 257; i < 800; i++) {
		rc_window_asked(&w, i, i, 6000000 + 10 * i);
		rc_window_advanced(&w, i + 1, i + 1, 6000000 + 10 * i + 5);
	}
	check(w.size < 260, "it returns");
}

int main(void)
{
	a_stall_makes_the_window_larger_for_a_while();
	a_run_of_a_response_counts_as_its_packets();
	one_of_half_a_window_asks_for_an_acknowledgement();
	a_window_that_was_full_opens_by_a_quarter();
	the_window_is_that_of_the_path();
	a_loss_makes_the_window_smaller_for_a_while();
	a_copy_of_a_nak_costs_no_retry();
	credit_limits_what_is_sent();
	words_and_flushes_wait_for_a_response();
	a_fatal_nak_counts_also_when_its_packet_is_to_be_sent_again();
	a_nak_ends_a_read_that_is_half_answered();
	what_is_sent_again_asks_for_an_acknowledgement();
	a_response_brings_credit();
	a_cnp_makes_it_slower();
	slow_packets_ask_for_an_acknowledgement();
	unreliable_ones_have_a_pace_too();
	a_late_acknowledgement_takes_no_credit_away();
	return 0;
}
