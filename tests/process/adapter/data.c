/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Data and completions of the reliable service: every byte arrives, once, in
 * order, and the completion says what the interface promises (ibv_poll_cq(3),
 * InfiniBand specification volume 1, 9.4 and 11.4.2).
 */
#include <arpa/inet.h>
#include <string.h>

#include "pair.h"

#define MIB (1u << 20)

static const uint32_t sizes[] = {
	0,     1,     31,    32,    33,	   95,	  96,	 97,  4095, 4096, 16383,
	16384, 16385, 65535, 65536, 65537, MIB,	 5 * MIB + 3,
};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

static const struct side_options big = { .bytes = 16 * MIB, .sges = 16 };

/* Cuts [offset, offset + length) into `parts` uneven pieces, some empty. */
static int cut(const struct side *s, uint64_t offset, uint32_t length, int parts,
	       struct ibv_sge *sge)
{
	uint32_t left = length;

	for (int i = 0; i < parts; i++) {
		uint32_t part = i == parts - 1 ? left :
				i == 1	       ? 0 :
						 left / (uint32_t)(3 + i % 3);

		sge[i] = side_sge(s, offset, part);
		offset += part;
		left -= part;
	}
	return parts;
}

static void send_cut(struct pair *p, uint32_t length, int parts_out,
		     int parts_in, uint64_t seed)
{
	struct send_req out = send_req(&p->a, IBV_WR_SEND, seed, 0, 0);
	struct recv_req in = { .wr_id = seed + 1000 };
	struct ibv_wc wc;

	out.num_sge = cut(&p->a, 3, length, parts_out, out.sge);
	in.num_sge = cut(&p->b, 5, length + 7, parts_in, in.sge);
	side_fill(&p->a, 3, length, seed);
	side_set(&p->b, 0, length + 64, 0xee);
	expect_eq(side_post_recv(&p->b, 0, &in, 1).ret, 0);
	expect_eq(side_post_send(&p->a, 0, &out, 1).ret, 0);
	wc = side_wait_ok(&p->b, RECV_CQ, seed + 1000);
	expect_eq(wc.byte_len, length);
	expect_eq(wc.opcode, IBV_WC_RECV);
	side_wait_ok(&p->a, SEND_CQ, seed);
	side_check(&p->b, 5, length, seed);
}

static void every_size_arrives_with_one_sge(struct pair *p)
{
	pair_start(p, &big);
	for (int i = 0; i < SIZES; i++)
		send_cut(p, sizes[i], 1, 1, (uint64_t)i);
}

static void every_size_arrives_with_several_sges_on_both_sides(struct pair *p)
{
	static const int parts[][2] = { { 3, 2 }, { 2, 5 }, { 7, 1 }, { 1, 16 },
					{ 16, 16 } };

	pair_start(p, &big);
	for (int i = 0; i < SIZES; i++)
		for (int k = 0; k < 5; k++)
			send_cut(p, sizes[i], parts[k][0], parts[k][1],
				 (uint64_t)(i * 10 + k));
}

static void nothing_is_written_beyond_the_message(struct pair *p)
{
	uint8_t around[2];

	pair_start(p, &big);
	for (int i = 0; i < SIZES; i++) {
		side_fill(&p->a, 0, sizes[i], (uint64_t)i);
		side_set(&p->b, 0, sizes[i] + 128, 0x5a);
		side_recv(&p->b, 1, 64, sizes[i] + 64);
		side_send(&p->a, 2, 0, sizes[i]);
		side_wait_ok(&p->b, RECV_CQ, 1);
		side_wait_ok(&p->a, SEND_CQ, 2);
		side_peek(&p->b, 63, &around[0], 1);
		side_peek(&p->b, 64 + sizes[i], &around[1], 1);
		expect_eq(around[0], 0x5a);
		expect_eq(around[1], 0x5a);
	}
}

static void every_size_is_written_and_read(struct pair *p)
{
	pair_start(p, &big);
	for (int i = 0; i < SIZES; i++) {
		struct send_req w = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1,
					     0, 11, sizes[i]);
		struct send_req r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2,
					     8 * MIB, 11, sizes[i]);
		struct ibv_wc wc;

		w.num_sge = cut(&p->a, 0, sizes[i], 1 + i % 5, w.sge);
		r.num_sge = cut(&p->a, 8 * MIB, sizes[i], 1 + i % 4, r.sge);
		side_fill(&p->a, 0, sizes[i], (uint64_t)i);
		side_set(&p->a, 8 * MIB, sizes[i], 0);
		expect_eq(side_post_send(&p->a, 0, &w, 1).ret, 0);
		wc = side_wait_ok(&p->a, SEND_CQ, 1);
		expect_eq(wc.opcode, IBV_WC_RDMA_WRITE);
		side_check(&p->b, 11, sizes[i], (uint64_t)i);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		wc = side_wait_ok(&p->a, SEND_CQ, 2);
		expect_eq(wc.opcode, IBV_WC_RDMA_READ);
		expect_eq(wc.byte_len, sizes[i]);
		side_check(&p->a, 8 * MIB, sizes[i], (uint64_t)i);
	}
}

static void completions_name_the_queue_pair_and_the_operation(struct pair *p)
{
	static const struct {
		enum ibv_wr_opcode wr;
		enum ibv_wc_opcode sent, received;
		bool imm, receives;
	} ops[] = {
		{ IBV_WR_SEND, IBV_WC_SEND, IBV_WC_RECV, false, true },
		{ IBV_WR_SEND_WITH_IMM, IBV_WC_SEND, IBV_WC_RECV, true, true },
		{ IBV_WR_RDMA_WRITE, IBV_WC_RDMA_WRITE, 0, false, false },
		{ IBV_WR_RDMA_WRITE_WITH_IMM, IBV_WC_RDMA_WRITE,
		  IBV_WC_RECV_RDMA_WITH_IMM, true, true },
		{ IBV_WR_RDMA_READ, IBV_WC_RDMA_READ, 0, false, false },
	};
	struct ibv_wc wc;

	pair_start(p, NULL);
	for (unsigned i = 0; i < 5; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, ops[i].wr, 70 + i, 0,
					     100, 200);

		if (!offers(ops[i].wr))
			continue;
		r.imm = htonl(0xdead0000 + i);
		if (ops[i].receives)
			side_recv(&p->b, i, 1000, 1000);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		wc = side_wait_ok(&p->a, SEND_CQ, 70 + i);
		expect_eq(wc.opcode, ops[i].sent);
		expect_eq(wc.qp_num, p->a.qpn[0]);
		if (!ops[i].receives) {
			side_expect_none(&p->b, RECV_CQ);
			continue;
		}
		wc = side_wait_ok(&p->b, RECV_CQ, i);
		expect_eq(wc.opcode, ops[i].received);
		expect_eq(wc.qp_num, p->b.qpn[0]);
		expect_eq(wc.byte_len, 200);
		expect_eq(wc.wc_flags, ops[i].imm ? IBV_WC_WITH_IMM : 0);
		if (ops[i].imm)
			expect_eq(wc.imm_data, htonl(0xdead0000 + i));
	}
}

static void write_with_immediate_puts_its_data_before_it_completes(struct pair *p)
{
	pair_start(p, &big);
	for (int i = 0; i < SIZES; i++) {
		struct send_req r = rdma_req(&p->a, &p->b,
					     IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0,
					     8 * MIB, sizes[i]);

		side_fill(&p->a, 0, sizes[i], (uint64_t)i);
		side_recv(&p->b, 2, 0, 0); /* its buffer is not used */
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, 2).byte_len, sizes[i]);
		side_check(&p->b, 8 * MIB, sizes[i], (uint64_t)i);
		side_wait_ok(&p->a, SEND_CQ, 1);
	}
}

static void completions_come_in_posting_order(struct pair *p)
{
	struct send_req r;

	pair_start(p, NULL);
	for (uint64_t i = 0; i < 50; i++)
		side_recv(&p->b, i, 0, 4096);
	for (uint64_t i = 0; i < 50; i++) {
		switch (i % 5) {
		case 0:
			r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, i, 0,
				     8192, 64);
			break;
		case 1:
			r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, i, 4096,
				     8192, 64);
			break;
		default:
			r = send_req(&p->a, IBV_WR_SEND, i, 0,
				     i % 5 == 2 ? 4096 : 8);
		}
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	}
	for (uint64_t i = 0; i < 50; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	for (uint64_t i = 0; i < 30; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
	side_expect_none(&p->b, RECV_CQ);
}

static void unsignaled_sends_give_no_completion_and_free_their_slots(struct pair *p)
{
	const struct side_options opt = { .send_wr = 16, .recv_wr = 64,
					  .cqe = 64 };
	struct send_req r;

	pair_start(p, &opt);
	for (int round = 0; round < 40; round++) {
		for (uint64_t i = 0; i < 16; i++)
			side_recv(&p->b, i, 0, 64);
		for (uint64_t i = 0; i < 16; i++) {
			r = send_req(&p->a, IBV_WR_SEND, i, 0, 64);
			if (i != 15)
				r.flags = 0;
			expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		}
		side_wait_ok(&p->a, SEND_CQ, 15);
		expect_eq(side_poll(&p->b, RECV_CQ, 16, WAIT_MS).count, 16);
	}
	side_expect_none(&p->a, SEND_CQ);
}

static void sig_all_signals_every_send(struct pair *p)
{
	const struct side_options opt = { .sig_all = true };
	struct send_req r;

	pair_start(p, &opt);
	for (uint64_t i = 0; i < 4; i++) {
		side_recv(&p->b, i, 0, 64);
		r = send_req(&p->a, IBV_WR_SEND, i, 0, 64);
		r.flags = 0;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
}

static void inline_data_may_be_overwritten_at_once_and_need_no_key(struct pair *p)
{
	const struct side_options opt = { .inline_bytes = 200 };
	struct send_req r;

	pair_start(p, &opt);
	for (uint32_t length = 0; length <= 200; length += 25) {
		r = send_req(&p->a, IBV_WR_SEND, length, 0, 0);
		r.flags |= IBV_SEND_INLINE;
		r.num_sge = 2;
		r.sge[0] = side_sge(&p->a, 0, length / 3);
		r.sge[1] = side_sge(&p->a, length / 3, length - length / 3);
		r.sge[0].lkey = r.sge[1].lkey = 0xbad;
		side_fill(&p->a, 0, length, length);
		side_recv(&p->b, length, 0, 400);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_set(&p->a, 0, 200, 0);
		side_wait_ok(&p->a, SEND_CQ, length);
		expect_eq(side_wait_ok(&p->b, RECV_CQ, length).byte_len, length);
		side_check(&p->b, 0, length, length);
	}
	if (transport_under_test()->streams)
		return;
	/* The same before the receive is there, which ends a stream. */
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 1000, 100);
	r.flags |= IBV_SEND_INLINE;
	side_fill(&p->a, 0, 100, 9);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_set(&p->a, 0, 100, 0);
	side_recv(&p->b, 2, 0, 0);
	side_wait_ok(&p->b, RECV_CQ, 2);
	side_check(&p->b, 1000, 100, 9);
	side_wait_ok(&p->a, SEND_CQ, 1);
}

static void builder_calls_send_what_work_requests_send(struct pair *p)
{
	const struct side_options opt = { .extended = true, .inline_bytes = 128 };
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_SEND, IBV_WR_SEND_WITH_IMM, IBV_WR_RDMA_WRITE_WITH_IMM,
	};
	struct send_req r[4];
	struct ibv_wc wc;

	pair_start(p, &opt);
	side_fill(&p->a, 0, 100, 1);
	for (int i = 0; i < 3; i++) {
		for (int way = 0; way < 4; way++) {
			bool imm = ops[i] != IBV_WR_SEND;
			bool write = ops[i] == IBV_WR_RDMA_WRITE_WITH_IMM;

			if (!offers(ops[i]))
				continue;
			r[0] = rdma_req(&p->a, &p->b, ops[i], 5, 0, 2000, 100);
			r[0].imm = htonl(77);
			if (way % 2) { /* a list of two */
				r[0].num_sge = 2;
				r[0].sge[0].length = 40;
				r[0].sge[1] = side_sge(&p->a, 40, 60);
			}
			if (way / 2)
				r[0].flags |= IBV_SEND_INLINE;
			side_set(&p->b, 0, 4096, 0);
			side_recv(&p->b, 6, 0, 1000);
			expect_eq(side_build_send(&p->a, 0, r, 1).ret, 0);
			wc = side_wait_ok(&p->b, RECV_CQ, 6);
			expect_eq(wc.byte_len, 100);
			expect_eq(wc.wc_flags, imm ? IBV_WC_WITH_IMM : 0);
			if (imm)
				expect_eq(wc.imm_data, htonl(77));
			side_check(&p->b, write ? 2000 : 0, 100, 1);
			side_wait_ok(&p->a, SEND_CQ, 5);
		}
	}
	/* Several in one go: WRITE, READ back, SEND. */
	r[0] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 3000, 100);
	r[1] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2, 500, 3000, 100);
	r[2] = send_req(&p->a, IBV_WR_SEND, 3, 0, 100);
	r[1].flags = 0;
	side_recv(&p->b, 7, 0, 100);
	expect_eq(side_build_send(&p->a, 0, r, 3).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_wait_ok(&p->a, SEND_CQ, 3);
	side_wait_ok(&p->b, RECV_CQ, 7);
	side_check(&p->a, 500, 100, 1);
}

static int both_at_once(struct end *e, void *arg)
{
	struct ibv_sge out = { (uintptr_t)e->buffer, 3000, e->mr[0]->lkey };
	struct ibv_sge in = { (uintptr_t)e->buffer + 4096, 3000, e->mr[0]->lkey };
	struct ibv_send_wr swr = { .opcode = IBV_WR_SEND, .sg_list = &out, .num_sge = 1,
				   .send_flags = IBV_SEND_SIGNALED };
	struct ibv_recv_wr rwr = { .sg_list = &in, .num_sge = 1 }, *bad_r;
	struct ibv_send_wr *bad_s;
	int sent = 0, received = 0, out_now = 0, in_now = 0, posted = 0;
	uint64_t end = now_ms() + WAIT_MS;
	struct ibv_wc wc;

	while ((sent < 2000 || received < 2000) && now_ms() < end) {
		while (in_now < 32 && posted < 2000) {
			if (ibv_post_recv(e->qp[0], &rwr, &bad_r))
				return -1;
			in_now++;
			posted++;
		}
		while (out_now < 32 && sent + out_now < 2000) {
			if (ibv_post_send(e->qp[0], &swr, &bad_s))
				return -2;
			out_now++;
		}
		while (ibv_poll_cq(e->cq[SEND_CQ], 1, &wc) == 1) {
			if (wc.status)
				return -100 - (int)wc.status;
			wc.opcode & IBV_WC_RECV ? (received++, in_now--) :
						  (sent++, out_now--);
		}
	}
	return sent == 2000 && received == 2000 ? 0 : -3;
}

static void both_directions_run_at_once(struct pair *p)
{
	const struct side_options opt = { .one_cq = true, .cqe = 128 };

	pair_start(p, &opt);
	side_fill(&p->a, 0, 3000, 1);
	side_fill(&p->b, 0, 3000, 2);
	side_start(&p->b, both_at_once, NULL, 0);
	expect_eq(both_at_once(p->a.end, NULL), 0);
	expect_eq(side_join(&p->b, NULL, 0), 0);
	side_check(&p->a, 4096, 3000, 2);
	side_check(&p->b, 4096, 3000, 1);
}

static void two_queue_pairs_of_one_context_exchange_messages(struct pair *p)
{
	/* Two QPs of one side, connected to one another. */
	struct side *a = &p->a;
	struct send_req r;
	struct recv_req rr;

	side_open(a, NULL);
	expect_eq(side_qp_create(a, NULL), 1);
	for (int i = 0; i < 2; i++)
		expect_eq(side_to_init(a, i, 0), 0);
	expect_eq(side_to_rtr(a, 0, &p->conn, &a->gid, a->qpn[1], 1), 0);
	expect_eq(side_to_rtr(a, 1, &p->conn, &a->gid, a->qpn[0], 2), 0);
	expect_eq(side_to_rts(a, 0, &p->conn, 2), 0);
	expect_eq(side_to_rts(a, 1, &p->conn, 1), 0);
	rr = (struct recv_req){ .wr_id = 1, .num_sge = 1,
				.sge = { side_sge(a, 1000, 500) } };
	expect_eq(side_post_recv(a, 1, &rr, 1).ret, 0);
	r = send_req(a, IBV_WR_SEND, 2, 0, 500);
	side_fill(a, 0, 500, 4);
	expect_eq(side_post_send(a, 0, &r, 1).ret, 0);
	expect_eq(side_wait_ok(a, RECV_CQ, 1).qp_num, a->qpn[1]);
	expect_eq(side_wait_ok(a, SEND_CQ, 2).qp_num, a->qpn[0]);
	side_check(a, 1000, 500, 4);
}

static const struct test_case cases[] = {
	RULE("IBTA 9.4.1", every_size_arrives_with_one_sge),
	RULE("ibv_post_send(3)",
	     every_size_arrives_with_several_sges_on_both_sides),
	CASE(nothing_is_written_beyond_the_message),
	RULE("IBTA 9.4.3, 9.4.4", every_size_is_written_and_read),
	RULE("ibv_poll_cq(3)",
	     completions_name_the_queue_pair_and_the_operation),
	RULE("IBTA 9.4.3",
	     write_with_immediate_puts_its_data_before_it_completes),
	RULE("IBTA 10.8", completions_come_in_posting_order),
	RULE("IBTA 10.7.3.1",
	     unsignaled_sends_give_no_completion_and_free_their_slots),
	RULE("ibv_create_qp(3)", sig_all_signals_every_send),
	RULE("ibv_post_send(3)",
	     inline_data_may_be_overwritten_at_once_and_need_no_key),
	RULE("ibv_wr_post(3)", builder_calls_send_what_work_requests_send),
	CASE(both_directions_run_at_once),
	CASE_IN(ONLY_ONE_PROCESS, two_queue_pairs_of_one_context_exchange_messages),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
