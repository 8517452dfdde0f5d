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

static void a_word_that_is_written_at_once_says_so(void)
{
	struct rc_requester rq;
	struct rc_tx tx;

	open_requester(&rq, 0);
	ring[0] = (struct rc_wqe){ .op = RC_WRITE, .flags = RC_WORD, .length = 8 };
	rc_post(&rq);
	ring[1] = (struct rc_wqe){ .op = RC_WRITE, .length = 8 };
	rc_post(&rq);
	check(rc_next(&rq, rq.head, 1, &tx) && (tx.packet.flags & RC_WORD),
	      "the packet of a word is marked");
	rc_sent(&rq, &tx, 1);
	check(rc_next(&rq, rq.head, 1, &tx) && !(tx.packet.flags & RC_WORD),
	      "that of another WRITE is not");
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

static void gap_at(struct rc_requester *rq, unsigned number)
{
	struct rc_packet p = {
		.op = RC_ACK, .psn = rc_psn_add(PSN, number), .msn = number,
		.syndrome = RC_SYN_SEQUENCE,
	};

	check(rc_reply(rq, &p, IBV_WC_SUCCESS, 2).status == IBV_WC_SUCCESS, "a gap");
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
	a_word_that_is_written_at_once_says_so();
	a_late_acknowledgement_takes_no_credit_away();
	return 0;
}
