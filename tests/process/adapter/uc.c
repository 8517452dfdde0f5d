/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Unreliable connections: a send is complete when it is sent, and nothing tells
 * the sender what became of it (InfiniBand specification volume 1, 9.8.2).
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

static const struct side_options uc = { .type = IBV_QPT_UC, .bytes = 4 << 20,
					.inline_bytes = 256, .send_wr = 64,
					.recv_wr = 64 };

enum { TO = 2 << 20 };

static void every_size_arrives(struct pair *p)
{
	static const uint32_t sizes[] = { 0, 1, 95, 96, 97, 4096, 16384, 16385,
					  65536, 65537, 1 << 20 };

	pair_start(p, &uc);
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_wc wc;

		side_fill(&p->a, 0, sizes[i], i);
		side_recv(&p->b, i, TO, 1 << 20);
		side_send(&p->a, i, 0, sizes[i]);
		side_wait_ok(&p->a, SEND_CQ, i);
		wc = side_wait_ok(&p->b, RECV_CQ, i);
		expect_eq(wc.byte_len, sizes[i]);
		expect_eq(wc.opcode, IBV_WC_RECV);
		side_check(&p->b, TO, sizes[i], i);
	}
}

static void a_buffer_may_be_used_again_when_its_send_is_complete(struct pair *p)
{
	pair_start(p, &uc);
	for (uint64_t i = 0; i < 16; i++)
		side_recv(&p->b, i, TO + i * 70000, 70000);
	for (uint64_t i = 0; i < 16; i++) {
		side_fill(&p->a, 0, 70000, i);
		side_send(&p->a, i, 0, 70000);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_set(&p->a, 0, 70000, 0xee);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_check(&p->b, TO + i * 70000, 70000, i);
	}
}

static void a_message_without_a_receive_is_lost_and_the_next_one_arrives(struct pair *p)
{
	pair_start(p, &uc);
	side_send(&p->a, 1, 0, 100);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_expect_none(&p->b, RECV_CQ);
	side_recv(&p->b, 2, TO, 4096);
	side_fill(&p->a, 0, 200, 5);
	side_send(&p->a, 3, 0, 200);
	side_wait_ok(&p->a, SEND_CQ, 3);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 2).byte_len, 200);
	side_check(&p->b, TO, 200, 5);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
}

static void a_message_longer_than_the_receive_is_lost_like_any_other(struct pair *p)
{
	static const uint32_t lengths[] = { 101, 5000, 40000, 200000 };

	pair_start(p, &uc);
	side_recv(&p->b, 1, TO, 100);
	for (uint64_t i = 0; i < 4; i++) {
		side_send(&p->a, i, 0, lengths[i]);
		side_wait_ok(&p->a, SEND_CQ, i);
		side_expect_none(&p->b, RECV_CQ);
		expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	}
	/* The receive is still there. */
	side_fill(&p->a, 0, 100, 5);
	side_send(&p->a, 9, 0, 100);
	side_wait_ok(&p->a, SEND_CQ, 9);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 1).byte_len, 100);
	side_check(&p->b, TO, 100, 5);
	expect_eq(side_async(&p->b, 0), -1);
}

static void a_gap_in_the_sequence_does_not_stop_what_follows(struct pair *p)
{
	p->conn.psn_a = 7; /* of the first message; the receiver expects it */
	pair_open(p, &uc);
	expect_eq(side_to_init(&p->a, 0, 0), 0);
	expect_eq(side_to_init(&p->b, 0, 0), 0);
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid, p->a.qpn[0], 1), 0);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, p->b.qpn[0], 1), 0);
	expect_eq(side_to_rts(&p->a, 0, &p->conn, 7), 0);
	expect_eq(side_to_rts(&p->b, 0, &p->conn, 1), 0);
	side_recv(&p->b, 1, TO, 4096);
	side_send(&p->a, 1, 0, 10);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

/* A WRITE is complete when it is sent; what comes behind it finds it done. */
static void send_behind(struct pair *p, uint64_t wr_id)
{
	side_recv(&p->b, wr_id, 0, 16);
	side_send(&p->a, wr_id, 0, 16);
	side_wait_ok(&p->a, SEND_CQ, wr_id);
	side_wait_ok(&p->b, RECV_CQ, wr_id);
}

static void a_write_arrives_and_a_refused_one_is_silent(struct pair *p)
{
	struct send_req r;
	uint8_t byte;

	pair_start(p, &uc);
	side_fill(&p->a, 0, 5000, 9);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, TO, 5000);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	send_behind(p, 3);
	side_check(&p->b, TO, 5000, 9);
	side_set(&p->b, TO, 100, 0x55);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 2, 0, TO, 100);
	r.rkey ^= 0x4000;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	send_behind(p, 4);
	side_peek(&p->b, TO + 50, &byte, 1);
	expect_eq(byte, 0x55);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
}

static void write_with_immediate_takes_a_receive(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;

	pair_start(p, &uc);
	side_fill(&p->a, 0, 3000, 3);
	side_recv(&p->b, 8, 0, 0);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, TO, 3000);
	r.imm = 0x01020304;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	wc = side_wait_ok(&p->b, RECV_CQ, 8);
	expect_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	expect_eq(wc.imm_data, 0x01020304);
	side_check(&p->b, TO, 3000, 3);
}

static void reads_are_not_offered(struct pair *p)
{
	struct send_req r;

	pair_start(p, &uc);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 1, 0, TO, 100);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, EOPNOTSUPP);
}

static void a_wrong_local_key_stops_the_send_queue_only(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;

	pair_start(p, &uc);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 100);
	r.sge[0].lkey ^= 0x4000;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	wc = side_wait(&p->a, SEND_CQ);
	expect_status(wc, IBV_WC_LOC_PROT_ERR);
	expect_eq(side_state(&p->a, 0), IBV_QPS_SQE);
	side_recv(&p->a, 4, TO, 4096);
	side_send(&p->b, 5, 0, 64);
	side_wait_ok(&p->b, SEND_CQ, 5);
	side_wait_ok(&p->a, RECV_CQ, 4);
}

static void sends_to_a_dead_peer_complete(struct pair *p)
{
	pair_start(p, &uc);
	side_send(&p->a, 1, 0, 100);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_kill(&p->b);
	for (uint64_t i = 0; i < 200; i++) {
		side_send(&p->a, i, 0, 100);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
}

static void sequence_numbers_wrap_at_24_bits(struct pair *p)
{
	p->conn.psn_a = 0xffffe0;
	pair_start(p, &uc);
	for (uint64_t i = 0; i < 60; i++) {
		/* Some are lost, the longer ones in the middle of the wrap. */
		if (i % 5)
			side_recv(&p->b, i, TO, 70000);
		side_send(&p->a, i, 0, i % 2 ? 70000 : 10);
		side_wait_ok(&p->a, SEND_CQ, i);
		if (i % 5)
			side_wait_ok(&p->b, RECV_CQ, i);
		else
			side_expect_none(&p->b, RECV_CQ);
	}
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		RULE("IBTA 9.8.2", every_size_arrives),
		RULE("ibv_post_send(3)",
		     a_buffer_may_be_used_again_when_its_send_is_complete),
		RULE("IBTA 9.8.2",
		     a_message_without_a_receive_is_lost_and_the_next_one_arrives),
		RULE("IBTA 9.9.3",
		     a_message_longer_than_the_receive_is_lost_like_any_other),
		RULE("IBTA 9.8.2",
		     a_gap_in_the_sequence_does_not_stop_what_follows),
		RULE("IBTA 9.8.2", a_write_arrives_and_a_refused_one_is_silent),
		RULE("IBTA 9.8.2", write_with_immediate_takes_a_receive),
		RULE("IBTA 9.7.1", sequence_numbers_wrap_at_24_bits),
		RULE("ibv_post_send(3)", reads_are_not_offered),
		RULE("IBTA 10.3.1.6",
		     a_wrong_local_key_stops_the_send_queue_only),
		RULE_IN(ONLY_TWO_PROCESSES, "IBTA 9.8.2",
			sends_to_a_dead_peer_complete),
	};

	return RUN_CASES(argc, argv, cases);
}
