/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations (InfiniBand specification volume 1, 9.4.5, 9.7.4 and 10.6.2):
 * result, rights, alignment, order, and that no addition is ever lost.
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

static const struct side_options all = {
	.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	.send_wr = 64,
	.recv_wr = 64,
};

enum { AT = 4096 };

static void start(struct pair *p)
{
	p->conn.access_a = p->conn.access_b =
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
		IBV_ACCESS_REMOTE_ATOMIC;
	pair_start(p, &all);
	side_set(&p->b, AT, 64, 0);
}

static struct send_req atomic_req(struct pair *p, enum ibv_wr_opcode opcode,
				  uint64_t wr_id, uint64_t compare_add,
				  uint64_t swap)
{
	struct send_req r = rdma_req(&p->a, &p->b, opcode, wr_id, 8 * wr_id, AT,
				     8);

	r.compare_add = compare_add;
	r.swap = swap;
	return r;
}

static uint64_t value_at(struct side *s, uint64_t offset)
{
	uint64_t v;

	side_peek(s, offset, &v, sizeof(v));
	return v;
}

static struct ibv_wc run(struct pair *p, const struct send_req *r)
{
	expect_eq(side_post_send(&p->a, 0, r, 1).ret, 0);
	return side_wait(&p->a, SEND_CQ);
}

static void fetch_and_add_returns_what_was_there(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;

	start(p);
	r = atomic_req(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 5, 0);
	wc = run(p, &r);
	expect_status(wc, IBV_WC_SUCCESS);
	expect_eq(wc.opcode, IBV_WC_FETCH_ADD);
	expect_eq(wc.wr_id, 1);
	expect_eq(value_at(&p->a, 8), 0);
	expect_eq(value_at(&p->b, AT), 5);
	r = atomic_req(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, UINT64_MAX, 0);
	expect_status(run(p, &r), IBV_WC_SUCCESS);
	expect_eq(value_at(&p->a, 16), 5);
	expect_eq(value_at(&p->b, AT), 4);
}

static void compare_and_swap_swaps_when_equal_only(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;

	start(p);
	r = atomic_req(p, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0, 77);
	wc = run(p, &r);
	expect_status(wc, IBV_WC_SUCCESS);
	expect_eq(wc.opcode, IBV_WC_COMP_SWAP);
	expect_eq(value_at(&p->a, 8), 0);
	expect_eq(value_at(&p->b, AT), 77);
	r = atomic_req(p, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 1, 99);
	expect_status(run(p, &r), IBV_WC_SUCCESS);
	expect_eq(value_at(&p->a, 16), 77);
	expect_eq(value_at(&p->b, AT), 77);
}

static void many_at_once_come_back_in_order(struct pair *p)
{
	start(p);
	for (uint64_t round = 0; round < 50; round++) {
		for (uint64_t i = 1; i <= 32; i++) {
			struct send_req r = atomic_req(
				p, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 1, 0);

			expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		}
		for (uint64_t i = 1; i <= 32; i++) {
			side_wait_ok(&p->a, SEND_CQ, i);
			expect_eq(value_at(&p->a, 8 * i), round * 32 + i - 1);
		}
	}
	expect_eq(value_at(&p->b, AT), 50 * 32);
}

static void two_queue_pairs_add_to_one_word_and_nothing_is_lost(struct pair *p)
{
	start(p);
	expect_eq(side_qp_create(&p->a, &all), 1);
	expect_eq(side_qp_create(&p->b, &all), 1);
	pair_connect_qp(p, 1);
	for (uint64_t round = 0; round < 20; round++) {
		for (uint64_t i = 1; i <= 32; i++) {
			struct send_req r = atomic_req(
				p, IBV_WR_ATOMIC_FETCH_AND_ADD, i, 1, 0);

			expect_eq(side_post_send(&p->a, i % 2, &r, 1).ret, 0);
		}
		for (uint64_t i = 1; i <= 32; i++)
			expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_SUCCESS);
	}
	expect_eq(value_at(&p->b, AT), 20 * 32);
}

static void builder_calls_do_the_same(struct pair *p)
{
	struct side_options opt = all;
	struct send_req r;

	opt.extended = true;
	p->conn.access_a = p->conn.access_b = IBV_ACCESS_REMOTE_ATOMIC;
	pair_start(p, &opt);
	side_set(&p->b, AT, 64, 0);
	r = atomic_req(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 6, 0);
	expect_eq(side_build_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	r = atomic_req(p, IBV_WR_ATOMIC_CMP_AND_SWP, 2, 6, 7);
	expect_eq(side_build_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	expect_eq(value_at(&p->a, 16), 6);
	expect_eq(value_at(&p->b, AT), 7);
}

static void a_fenced_send_carries_the_result(struct pair *p)
{
	struct send_req r, s;

	start(p);
	r = atomic_req(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 41, 0);
	expect_status(run(p, &r), IBV_WC_SUCCESS);
	side_recv(&p->b, 9, 2 * AT, 64);
	r = atomic_req(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 2, 1, 0);
	s = send_req(&p->a, IBV_WR_SEND, 3, 16, 8);
	s.flags |= IBV_SEND_FENCE;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_eq(side_post_send(&p->a, 0, &s, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_wait_ok(&p->a, SEND_CQ, 3);
	side_wait_ok(&p->b, RECV_CQ, 9);
	expect_eq(value_at(&p->b, 2 * AT), 41);
}

/* In iWARP a request that is refused is named as one that the memory's protection forbids. */
static enum ibv_wc_status refused(void)
{
	return transport_under_test()->streams ? IBV_WC_REM_ACCESS_ERR : IBV_WC_REM_INV_REQ_ERR;
}

static void an_odd_address_is_an_invalid_request(struct pair *p)
{
	struct send_req r;

	start(p);
	r = atomic_req(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1, 0);
	r.remote_addr += 4;
	expect_status(run(p, &r), refused());
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), transport_under_test()->streams ?
						      IBV_EVENT_QP_ACCESS_ERR :
						      IBV_EVENT_QP_REQ_ERR);
}

static void a_wrong_key_is_an_access_error_on_both_sides(struct pair *p)
{
	struct send_req r;

	start(p);
	r = atomic_req(p, IBV_WR_ATOMIC_CMP_AND_SWP, 1, 0, 1);
	r.rkey ^= 0x4000;
	expect_status(run(p, &r), IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	expect_eq(value_at(&p->b, AT), 0);
}

static void the_right_is_needed_on_region_and_queue_pair(struct pair *p)
{
	struct send_req r;

	pair_start(p, NULL); /* without REMOTE_ATOMIC */
	r = atomic_req(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1, 0);
	expect_status(run(p, &r), refused());
}

static void lengths_other_than_eight_are_refused(struct pair *p)
{
	struct send_req r;

	start(p);
	r = atomic_req(p, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 1, 0);
	r.sge[0].length = 4;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, EINVAL);
	r.sge[0].length = 16;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, EINVAL);
}

int main(int argc, char **argv)
{
	static const struct test_case cases[] = {
		RULE("IBTA 9.4.5", fetch_and_add_returns_what_was_there),
		RULE("IBTA 9.4.5", compare_and_swap_swaps_when_equal_only),
		RULE("IBTA 9.5", many_at_once_come_back_in_order),
		RULE("IBTA 9.4.5",
		     two_queue_pairs_add_to_one_word_and_nothing_is_lost),
		RULE("ibv_wr_post(3)", builder_calls_do_the_same),
		RULE("IBTA 10.8.3.3", a_fenced_send_carries_the_result),
		RULE("IBTA 9.4.5", an_odd_address_is_an_invalid_request),
		RULE("IBTA 9.7.4.1.5",
		     a_wrong_key_is_an_access_error_on_both_sides),
		RULE("IBTA 9.7.4.1",
		     the_right_is_needed_on_region_and_queue_pair),
		RULE("IBTA 9.4.5", lengths_other_than_eight_are_refused),
	};

	return RUN_CASES(argc, argv, cases);
}
