/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Order: of visibility between SEND, WRITE and READ, of flushes, over the wrap
 * of sequence numbers and rings, and across a reconnection (InfiniBand
 * specification volume 1, 9.5 and 10.8.3.3).
 */
#include <sched.h>
#include <string.h>

#include "pair.h"

static const struct side_options deep = {
	.send_wr = 200, .recv_wr = 200, .cqe = 1024, .bytes = 1 << 20
};

static void a_write_behind_a_send_waits_for_its_receive(struct pair *p)
{
	static const uint32_t lengths[] = { 10, 5000, 100000 };
	struct send_req w;
	uint8_t byte;

	need_rnr();
	pair_start(p, &deep);
	for (unsigned i = 0; i < 3; i++) {
		side_set(&p->a, 0, 1 << 18, 1);
		side_set(&p->b, 0, 1 << 18, 0);
		side_send(&p->a, 1, 0, lengths[i]);
		w = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 2, 0, 200000, 1);
		expect_eq(side_post_send(&p->a, 0, &w, 1).ret, 0);
		side_expect_none(&p->a, SEND_CQ);
		side_peek(&p->b, 200000, &byte, 1);
		expect_eq(byte, 0);
		side_recv(&p->b, 3, 0, 150000);
		side_wait_ok(&p->b, RECV_CQ, 3);
		side_wait_ok(&p->a, SEND_CQ, 1);
		side_wait_ok(&p->a, SEND_CQ, 2);
		side_peek(&p->b, 200000, &byte, 1);
		expect_eq(byte, 1);
	}
}

enum { ROUNDS = 300, FLAG = 200000 };

/* Receives, and watches for the flag that is written behind each message. */
static int watch_flag(struct end *e, void *arg)
{
	const uint8_t *flag = e->buffer + FLAG;
	struct ibv_sge sge = { (uintptr_t)e->buffer, 100000, e->mr[0]->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_wc wc;

	for (int i = 1; i <= ROUNDS; i++) {
		uint64_t end = now_ms() + WAIT_MS;

		if (ibv_post_recv(e->qp[0], &wr, &bad))
			return -1;
		while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != (uint8_t)i) {
			if (now_ms() > end)
				return -2;
			sched_yield();
		}
		if (ibv_poll_cq(e->cq[RECV_CQ], 1, &wc) != 1)
			return -3; /* the WRITE overtook the SEND */
		if (wc.status || e->buffer[0] != (uint8_t)i)
			return -4;
	}
	return 0;
}

static void who_sees_a_write_finds_the_completion_of_the_send_before_it(struct pair *p)
{
	struct send_req r[2];

	need_rnr();
	pair_start(p, &deep);
	side_start(&p->b, watch_flag, NULL, 0);
	for (int i = 1; i <= ROUNDS; i++) {
		side_set(&p->a, 0, 1, (uint8_t)i);
		r[0] = send_req(&p->a, IBV_WR_SEND, 1, 0,
				i % 3 ? (uint32_t)i : 20000);
		r[1] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 2, 0, FLAG, 1);
		r[0].flags = 0;
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 2);
		/* The next one only when this one was seen: its flag would
		 * replace it. The answer is the receive that it posts then. */
	}
	expect_eq(side_join(&p->b, NULL, 0), 0);
}

static void a_send_behind_writes_finds_their_data(struct pair *p)
{
	struct send_req r[3];

	pair_start(p, &deep);
	for (uint64_t i = 0; i < 200; i++) {
		uint32_t length = (uint32_t)(i * 397 % 90000 + 1);

		side_fill(&p->a, 0, length, i);
		r[0] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 4096,
				length / 2);
		r[1] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, length / 2,
				4096 + length / 2, length - length / 2);
		r[2] = send_req(&p->a, IBV_WR_SEND, 2, 0, 4);
		r[0].flags = r[1].flags = 0;
		side_recv(&p->b, i, 0, 64);
		expect_eq(side_post_send(&p->a, 0, r, 3).ret, 0);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_check(&p->b, 4096, length, i);
		side_wait_ok(&p->a, SEND_CQ, 2);
	}
}

static void a_fenced_send_carries_what_the_read_before_it_brought(struct pair *p)
{
	static const uint32_t lengths[] = { 16, 3000, 100000 };
	struct send_req r[2];

	pair_start(p, &deep);
	for (uint64_t i = 0; i < 60; i++) {
		uint32_t length = lengths[i % 3];

		side_fill(&p->b, 300000, length, i);
		r[0] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 1, 0, 300000,
				length);
		r[1] = send_req(&p->a, IBV_WR_SEND, 2, 0, length);
		r[0].flags = 0;
		r[1].flags |= IBV_SEND_FENCE;
		side_recv(&p->b, i, 0, 100000);
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_check(&p->b, 0, length, i);
		side_wait_ok(&p->a, SEND_CQ, 2);
	}
}

static void a_write_with_immediate_keeps_its_place_between_sends(struct pair *p)
{
	struct send_req r[3];

	pair_start(p, &deep);
	for (uint64_t i = 0; i < 30; i++) {
		for (uint64_t k = 0; k < 3; k++)
			side_recv(&p->b, k, 0, 4096);
		r[0] = send_req(&p->a, IBV_WR_SEND, 0, 0, 10);
		r[1] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0,
				8192, 3000);
		r[2] = send_req(&p->a, IBV_WR_SEND, 2, 0, 20);
		expect_eq(side_post_send(&p->a, 0, r, 3).ret, 0);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, 0).byte_len, 10);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, 1).opcode,
			  IBV_WC_RECV_RDMA_WITH_IMM);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, 2).byte_len, 20);
		for (uint64_t k = 0; k < 3; k++)
			side_wait_ok(&p->a, SEND_CQ, k);
	}
}

static void the_error_state_flushes_both_queues_in_order(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;

	need_rnr();
	pair_start(p, &deep);
	for (uint64_t i = 0; i < 20; i++) {
		/* Unsignaled ones are flushed with a completion, too. */
		r = i % 3 ? send_req(&p->a, IBV_WR_SEND, i, 0, 100) :
			    rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, i, 0, 0, 9);
		if (i % 2)
			r.flags = 0;
		if (i == 0)
			r = send_req(&p->a, IBV_WR_SEND, i, 0, 100);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_recv(&p->a, 100 + i, 0, 100);
	}
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
	for (uint64_t i = 0; i < 20; i++) {
		wc = side_wait(&p->a, SEND_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, i);
		wc = side_wait(&p->a, RECV_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, 100 + i);
	}
	side_expect_none(&p->a, SEND_CQ);
	side_expect_none(&p->a, RECV_CQ);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
}

static void the_same_queue_pairs_reconnect_after_reset(struct pair *p)
{
	pair_start(p, &deep);
	for (uint64_t round = 0; round < 10; round++) {
		/* Left over on purpose: receives, waiting sends, completions. */
		for (uint64_t i = 0; i < 4; i++)
			side_recv(&p->b, 900 + i, 0, 100);
		for (uint64_t i = 0; i < 4 + round; i++)
			side_send(&p->a, 800 + i, 0, 50);
		side_recv(&p->a, 700, 0, 100);
		pair_reset_qp(p, 0);
		side_expect_none(&p->a, SEND_CQ);
		side_expect_none(&p->b, RECV_CQ);
		p->conn.psn_a += 7777;
		p->conn.psn_b += 11111;
		pair_connect_qp(p, 0);
		side_fill(&p->a, 0, 1000, round);
		side_recv(&p->b, round, 2000, 1000);
		side_send(&p->a, 50, 0, 1000);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, round).byte_len, 1000);
		side_wait_ok(&p->a, SEND_CQ, 50);
		side_check(&p->b, 2000, 1000, round);
		side_expect_none(&p->b, RECV_CQ);
		/* The other direction has no receive of before. */
		side_send(&p->b, 51, 0, 10);
		side_expect_none(&p->a, RECV_CQ);
	}
}

static void what_was_on_its_way_before_a_reset_does_not_arrive_after_it(struct pair *p)
{
	need_rnr();
	pair_start(p, &deep);
	for (uint64_t round = 0; round < 30; round++) {
		/* Busy a moment ago: its program is expected to poll, and does
		 * not, so the message is still on its way. */
		side_poll(&p->b, RECV_CQ, 1, 2);
		side_send(&p->a, 1, 0, 50);
		pair_reset_qp(p, 0);
		/* The same sequence numbers again. */
		pair_connect_qp(p, 0);
		side_recv(&p->b, round, 0, 100);
		expect_eq(side_poll(&p->b, RECV_CQ, 1, 5).count, 0);
		side_send(&p->a, 2, 0, 7);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, round).byte_len, 7);
		side_wait_ok(&p->a, SEND_CQ, 2);
	}
}

static void queue_pairs_reconnect_after_an_error(struct pair *p)
{
	struct send_req r;

	need_rnr();
	pair_start(p, NULL);
	for (uint64_t i = 0; i < 5; i++) {
		r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, 10);
		r.rkey = 1;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
		expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
		side_recv(&p->b, i, 0, 10);
		side_send(&p->a, i, 0, 10);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
}

static void sequence_numbers_wrap_at_24_bits(struct pair *p)
{
	need_rnr();
	p->conn.psn_a = 0xfffff0;
	p->conn.psn_b = 0xffffff;
	p->conn.min_rnr_timer = 1;
	pair_start(p, &deep);
	for (uint64_t i = 0; i < 100; i++) {
		/* Some find no receive, so that going back wraps as well. */
		if (i % 5)
			side_recv(&p->b, i, 0, 100);
		side_send(&p->a, i, 0, 10);
		if (i % 5 == 0)
			side_recv(&p->b, i, 0, 100);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_recv(&p->a, i, 0, 100);
		side_send(&p->b, i, 0, 10);
		side_wait_ok(&p->a, RECV_CQ, i);
		side_wait_ok(&p->b, SEND_CQ, i);
	}
}

static void many_waiting_messages_cross_the_sequence_wrap_together(struct pair *p)
{
	need_rnr();
	p->conn.psn_a = 0xfffff0;
	pair_start(p, &deep);
	for (uint64_t i = 0; i < 60; i++)
		side_send(&p->a, i, 0, 10);
	side_expect_none(&p->b, RECV_CQ);
	for (uint64_t i = 0; i < 60; i++)
		side_recv(&p->b, i, 0, 100);
	for (uint64_t i = 0; i < 60; i++) {
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
}

struct stream {
	int messages, window, qps;
	bool sends;
};

static uint32_t stream_length(int i)
{
	static const uint32_t lengths[] = { 0, 1, 60, 96, 97, 1500, 4096, 9000,
					    16384, 30000 };

	return lengths[(unsigned)i * 7 % 10] + (unsigned)i % 3;
}

enum { SLOT = 32768 };

/* Sends or receives numbered messages, `window` at a time. */
static int stream(struct end *e, void *arg)
{
	const struct stream *s = arg;
	uint64_t end = now_ms() + 3 * WAIT_MS;
	int posted = 0, done = 0;

	while (done < s->messages && now_ms() < end) {
		struct ibv_wc wc;

		while (posted < s->messages && posted - done < s->window) {
			int at = posted % s->window * SLOT;
			struct ibv_sge sge = { (uintptr_t)e->buffer + (unsigned)at,
					       s->sends ? stream_length(posted) :
							  SLOT,
					       e->mr[0]->lkey };
			struct ibv_send_wr swr = { .opcode = IBV_WR_SEND,
						   .wr_id = (uint64_t)posted,
						   .send_flags = IBV_SEND_SIGNALED,
						   .sg_list = &sge, .num_sge = 1 };
			struct ibv_recv_wr rwr = { .wr_id = (uint64_t)posted,
						   .sg_list = &sge, .num_sge = 1 };
			struct ibv_send_wr *bad_s;
			struct ibv_recv_wr *bad_r;

			if (s->sends && sge.length)
				memset(e->buffer + at, posted & 0xff, sge.length);
			if (s->sends ? ibv_post_send(e->qp[0], &swr, &bad_s) :
				       ibv_post_recv(e->qp[0], &rwr, &bad_r))
				return -1;
			posted++;
		}
		if (ibv_poll_cq(e->cq[s->sends ? SEND_CQ : RECV_CQ], 1, &wc) < 1)
			continue;
		if (wc.status || wc.wr_id != (uint64_t)done)
			return -2;
		if (!s->sends) {
			const uint8_t *at = e->buffer + done % s->window * SLOT;

			if (wc.byte_len != stream_length(done))
				return -3;
			for (uint32_t i = 0; i < wc.byte_len; i++)
				if (at[i] != (done & 0xff))
					return -4;
		}
		done++;
	}
	return done == s->messages ? 0 : -5;
}

/* The thread sanitizer needs many times as long for each. */
#ifdef __SANITIZE_THREAD__
enum { MESSAGES = 5000 };
#else
enum { MESSAGES = 20000 };
#endif

static void many_thousand_messages_wrap_the_rings(struct pair *p)
{
	need_rnr();
	/* Odd depths, so that they do not divide the rings. */
	const struct side_options opt = { .send_wr = 29, .recv_wr = 31,
					  .cqe = 32, .bytes = 31 * SLOT };
	struct stream out = { .messages = MESSAGES, .window = 29, .sends = true };
	struct stream in = { .messages = MESSAGES, .window = 31 };

	pair_start(p, &opt);
	side_start(&p->b, stream, &in, sizeof(in));
	expect_eq(stream(p->a.end, &out), 0);
	expect_eq(side_join(&p->b, NULL, 0), 0);
}

/* Both programs know of the message when they end their connection. */
static void what_was_received_is_not_flushed_at_the_sender(struct pair *p)
{
	pair_start(p, NULL);
	for (uint64_t i = 0; i < 20; i++) {
		side_recv(&p->b, i, 0, 100);
		side_send(&p->a, i, 0, 100);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
	for (uint64_t i = 0; i < 20; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
}

static const struct test_case cases[] = {
	CASE(what_was_received_is_not_flushed_at_the_sender),
	RULE("IBTA 9.5", a_write_behind_a_send_waits_for_its_receive),
	RULE("IBTA 9.5",
	     who_sees_a_write_finds_the_completion_of_the_send_before_it),
	RULE("IBTA 9.5", a_send_behind_writes_finds_their_data),
	RULE("IBTA 10.8.3.3",
	     a_fenced_send_carries_what_the_read_before_it_brought),
	RULE("IBTA 9.5", a_write_with_immediate_keeps_its_place_between_sends),
	RULE("IBTA 10.3.1.7", the_error_state_flushes_both_queues_in_order),
	RULE("IBTA 10.3.1.1", the_same_queue_pairs_reconnect_after_reset),
	CASE(what_was_on_its_way_before_a_reset_does_not_arrive_after_it),
	RULE("IBTA 10.3.1.1", queue_pairs_reconnect_after_an_error),
	RULE("IBTA 9.7.1", sequence_numbers_wrap_at_24_bits),
	RULE("IBTA 9.7.1",
	     many_waiting_messages_cross_the_sequence_wrap_together),
	CASE(many_thousand_messages_wrap_the_rings),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
