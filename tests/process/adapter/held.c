/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams that cannot leave at once: an adapter has read their data, and what it
 * needs of the address handle, when the posting call returns. Programs rely on it
 * (UCX uses a buffer again when the peer's answer is there, whatever became of the
 * completion), though InfiniBand gives the buffer back with the completion only.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "pair.h"

enum { GRH = 40, QKEY = 0x11111111, MTU = 4096, FLOOD = 400 };

/* As much as a receive takes, and one more page of each for its header. */
enum { ROOM = MTU + 64 };

static const struct side_options ud = {
	.type = IBV_QPT_UD, .bytes = (FLOOD + 1) * ROOM, .inline_bytes = 256,
	.send_wr = FLOOD, .recv_wr = FLOOD, .cqe = 2 * FLOOD,
};

static void start(struct pair *p)
{
	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &ud);
}

static struct send_req datagram(const struct pair *p, int ah, uint32_t number,
				uint32_t length)
{
	struct send_req r = send_req(&p->a, IBV_WR_SEND_WITH_IMM, number, 0,
				     length);

	r.ah = ah;
	r.imm = htonl(number);
	r.remote_qpn = p->b.qpn[0];
	r.qkey = QKEY;
	return r;
}

static uint32_t length_of(uint32_t number)
{
	static const uint32_t some[] = { MTU, 0, 1, 57, 4000, 100, 2049, MTU, 63 };

	return some[number % (sizeof(some) / sizeof(some[0]))];
}

/* An address handle that leads nowhere, in the memory of the one before. */
static int handle_to_nobody(struct pair *p)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, [11] = 0xff, 192, 0, 2, 1 } };

	return side_ah_to(&p->a, &gid);
}

/* Posts `number`, and then spoils everything that it was made of. */
static void post_and_spoil(struct pair *p, uint32_t number, bool build,
			   unsigned flags)
{
	int ah = side_ah_to(&p->a, &p->b.gid), other;
	uint32_t length = length_of(number);
	struct send_req r = datagram(p, ah, number, length);

	if (flags & IBV_SEND_INLINE && length > 256)
		flags &= ~(unsigned)IBV_SEND_INLINE;
	r.flags |= flags;
	if (length > 10) { /* in two pieces, with a hole between */
		r.num_sge = 2;
		r.sge[0].length = length / 2;
		r.sge[1] = side_sge(&p->a, MTU + 64 + length / 2,
				    length - length / 2);
	}
	side_fill(&p->a, 0, length, number);
	if (r.num_sge == 2)
		memmove(p->a.end->buffer + MTU + 64 + length / 2,
			p->a.end->buffer + length / 2, length - length / 2);
	expect_eq((build ? side_build_send(&p->a, 0, &r, 1) :
			   side_post_send(&p->a, 0, &r, 1)).ret, 0);
	side_set(&p->a, 0, ROOM + MTU, 0xee);
	side_ah_destroy(&p->a, ah);
	other = handle_to_nobody(p);
	side_ah_destroy(&p->a, other);
}

static void post_receives(struct pair *p, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		side_recv(&p->b, i, (uint64_t)i * ROOM, ROOM);
}

/* What comes is whole, and in order; returns how many. */
static unsigned check_arrivals(struct pair *p, unsigned first, unsigned count)
{
	unsigned got = 0, next = first;

	while (got < count) {
		struct polled polled = side_poll(&p->b, RECV_CQ, 1, WAIT_MS);

		if (polled.count <= 0)
			break;
		for (int i = 0; i < polled.count; i++, got++) {
			uint32_t number = ntohl(polled.wc[i].imm_data);

			expect_status(polled.wc[i], IBV_WC_SUCCESS);
			expect(number >= next && number < first + count);
			expect_eq(polled.wc[i].byte_len, GRH + length_of(number));
			side_check(&p->b, polled.wc[i].wr_id * ROOM + GRH,
				   length_of(number), number);
			next = number + 1;
		}
	}
	return got;
}

static void expect_sent(struct pair *p, unsigned first, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		side_wait_ok(&p->a, SEND_CQ, first + i);
}

static void before_its_link_is_there(struct pair *p)
{
	start(p);
	post_receives(p, 20);
	side_stop(&p->b);
	for (uint32_t i = 0; i < 20; i++)
		post_and_spoil(p, i, false, i % 3 ? 0 : IBV_SEND_INLINE);
	side_expect_none(&p->a, SEND_CQ);
	side_signal(&p->b, SIGCONT);
	expect_eq(check_arrivals(p, 0, 20), 20);
	expect_sent(p, 0, 20);
}

static void by_the_builders_before_its_link_is_there(struct pair *p)
{
	struct side_options opt = ud;

	opt.extended = true;
	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &opt);
	post_receives(p, 20);
	side_stop(&p->b);
	for (uint32_t i = 0; i < 20; i++)
		post_and_spoil(p, i, true, i % 3 ? 0 : IBV_SEND_INLINE);
	side_signal(&p->b, SIGCONT);
	expect_eq(check_arrivals(p, 0, 20), 20);
	expect_sent(p, 0, 20);
}

/* More than the link takes, again and again: the copies go round in their ring. */
static void while_its_link_is_full(struct pair *p)
{
	uint32_t number = 0;

	start(p);
	post_receives(p, 1);
	post_and_spoil(p, number, false, 0);
	expect_eq(check_arrivals(p, number++, 1), 1);
	expect_sent(p, 0, 1);
	for (int round = 0; round < 3; round++) {
		unsigned count = FLOOD - (unsigned)round * 7, got;
		uint64_t start_ms;

		post_receives(p, count);
		start_ms = now_ms();
		side_stop(&p->b);
		for (unsigned i = 0; i < count; i++)
			post_and_spoil(p, number + i, false, 0);
		side_signal(&p->b, SIGCONT);
		got = check_arrivals(p, number, count);
		/* A receiver that is stopped for a second may lose some. */
		if (now_ms() - start_ms < 900)
			expect_eq(got, count);
		expect(got > 0);
		expect_sent(p, number, count);
		number += count;
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

static void while_the_send_queue_is_drained(struct pair *p)
{
	start(p);
	post_receives(p, 5);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_SQD), 0);
	for (uint32_t i = 0; i < 5; i++)
		post_and_spoil(p, i, false, 0);
	side_expect_none(&p->a, SEND_CQ);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RTS), 0);
	expect_eq(check_arrivals(p, 0, 5), 5);
	expect_sent(p, 0, 5);
}

static void a_wrong_key_fails_in_its_turn(struct pair *p)
{
	struct send_req r[3];
	int ah;

	start(p);
	post_receives(p, 3);
	side_stop(&p->b);
	ah = side_ah_to(&p->a, &p->b.gid);
	for (uint32_t i = 0; i < 3; i++)
		r[i] = datagram(p, ah, i, length_of(0));
	r[1].sge[0].lkey ^= 0x4000;
	side_fill(&p->a, 0, MTU, 0);
	expect_eq(side_post_send(&p->a, 0, r, 3).ret, 0);
	side_expect_none(&p->a, SEND_CQ);
	side_signal(&p->b, SIGCONT);
	side_wait_ok(&p->a, SEND_CQ, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_eq(check_arrivals(p, 0, 1), 1);
	expect_eq(side_state(&p->a, 0), IBV_QPS_SQE);
	/* And the queue is as good as new. */
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RTS), 0);
	post_and_spoil(p, 7, false, 0);
	expect_eq(check_arrivals(p, 7, 1), 1);
	side_wait_ok(&p->a, SEND_CQ, 7);
}

/* Datagrams that wait when the queue pair is reset or destroyed are dropped. */
static void a_reset_forgets_what_waits(struct pair *p)
{
	start(p);
	side_stop(&p->b);
	for (uint32_t i = 0; i < 20; i++)
		post_and_spoil(p, i, false, 0);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RESET), 0);
	side_signal(&p->b, SIGCONT);
	side_expect_none(&p->a, SEND_CQ);
	expect_eq(side_to_init(&p->a, 0, QKEY), 0);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, 0, 0), 0);
	expect_eq(side_to_rts(&p->a, 0, &p->conn, 0), 0);
	post_receives(p, 20);
	for (uint32_t i = 30; i < 40; i++)
		post_and_spoil(p, i, false, 0);
	expect_eq(check_arrivals(p, 30, 10), 10);
	expect_sent(p, 30, 10);
	side_stop(&p->b);
	for (uint32_t i = 0; i < FLOOD; i++)
		post_and_spoil(p, i, false, 0);
	side_signal(&p->b, SIGCONT);
}

static const struct test_case cases[] = {
	CASE_IN(ONLY_TWO_PROCESSES, before_its_link_is_there),
	CASE_IN(ONLY_TWO_PROCESSES, by_the_builders_before_its_link_is_there),
	CASE_IN(ONLY_TWO_PROCESSES, while_its_link_is_full),
	CASE(while_the_send_queue_is_drained),
	CASE_IN(ONLY_TWO_PROCESSES, a_wrong_key_fails_in_its_turn),
	CASE_IN(ONLY_TWO_PROCESSES, a_reset_forgets_what_waits),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
