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
		.timeout_ns = 1000000, .entries = ring, .stride = sizeof(ring[0]),
		.mask = ENTRIES - 1,
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
		n++;
	}
	return n;
}

/* The acknowledgement of message `number`, 0 for the first; `code` of credit. */
static struct rc_done acknowledge(struct rc_requester *rq, unsigned number, uint8_t code)
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

static struct rc_done respond(struct rc_requester *rq, uint8_t op, unsigned number,
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

static struct rc_done refuse(struct rc_requester *rq, unsigned number, uint8_t syndrome)
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
		check(!(tx.packet.flags & RC_ACK_REQ) == (i > 0 && i < 9),
		      "the first of a window and the last ask");
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

int main(void)
{
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
