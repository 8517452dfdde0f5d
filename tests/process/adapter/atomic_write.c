/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * ATOMIC WRITE (InfiniBand specification volume 1, annex A19): eight bytes written
 * atomically, after all that was posted before. Into ordinary memory, where
 * the target executes it, and into device memory, which the initiator maps.
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

enum {
	AT = 4096,
	ROUNDS = 40,
	ALL = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
	      IBV_ACCESS_REMOTE_READ,
};

static void start(struct pair *p, int mr_access, unsigned qp_access)
{
	const struct side_options opt = { .extended = true,
					  .mr_access = mr_access };

	p->conn.access_a = p->conn.access_b = qp_access;
	pair_start(p, &opt);
	side_set(&p->b, AT - 8, 24, 0xee);
}

/* Of a round: patterns of numbers that are near each other begin alike. */
static uint64_t seed(uint64_t round)
{
	return (round + 1) << 40;
}

static struct send_req request(struct pair *p, uint64_t wr_id, uint64_t from,
			       uint64_t to)
{
	return rdma_req(&p->a, &p->b, IBV_WR_ATOMIC_WRITE, wr_id, from, to, 8);
}

static struct ibv_wc run(struct pair *p, const struct send_req *r)
{
	expect_eq(side_post_send(&p->a, 0, r, 1).ret, 0);
	return side_wait(&p->a, SEND_CQ);
}

static void check_word(struct pair *p, uint64_t round)
{
	uint8_t around[24];

	side_peek(&p->b, AT - 8, around, sizeof(around));
	for (unsigned i = 0; i < sizeof(around); i++)
		expect_eq(around[i], i < 8 || i >= 16 ? 0xee :
							pattern(seed(round),
								i - 8));
}

static void eight_bytes_arrive_and_no_others(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;

	start(p, ALL, IBV_ACCESS_REMOTE_WRITE);
	for (uint64_t i = 0; i < 3; i++) {
		side_fill(&p->a, 64, 8, seed(i));
		r = request(p, i, 64, AT);
		if (i == 0) /* in two pieces */
			r.num_sge = 2, r.sge[0].length = 3,
			r.sge[1] = side_sge(&p->a, 67, 5);
		if (i == 1)
			r.flags |= IBV_SEND_INLINE;
		if (i == 2)
			expect_eq(side_build_send(&p->a, 0, &r, 1).ret, 0);
		else
			expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		wc = side_wait(&p->a, SEND_CQ);
		expect_status(wc, IBV_WC_SUCCESS);
		expect_eq(wc.opcode, IBV_WC_ATOMIC_WRITE);
		expect_eq(wc.wr_id, i);
		check_word(p, i);
	}
	side_expect_none(&p->b, RECV_CQ);
}

static void it_needs_the_right_to_write(struct pair *p)
{
	struct region mr;
	struct send_req r;

	start(p, ALL, IBV_ACCESS_REMOTE_WRITE);
	mr = side_reg(&p->b, 0, 8192, IBV_ACCESS_LOCAL_WRITE |
					      IBV_ACCESS_REMOTE_READ |
					      IBV_ACCESS_REMOTE_ATOMIC, 0);
	r = request(p, 1, 0, AT);
	r.rkey = mr.rkey;
	expect_status(run(p, &r), IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
	expect_eq(side_dereg(&p->b, mr.index), 0);
}

static void it_needs_the_right_of_the_queue_pair(struct pair *p)
{
	struct send_req r;

	start(p, ALL, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	r = request(p, 1, 0, AT);
	expect_status(run(p, &r), IBV_WC_REM_INV_REQ_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_REQ_ERR);
}

static void the_remote_address_is_aligned(struct pair *p)
{
	struct send_req r;

	for (uint64_t off = 1; off < 8; off += 3) {
		if (off == 1)
			start(p, ALL, IBV_ACCESS_REMOTE_WRITE);
		r = request(p, 1, 0, AT + off);
		expect_status(run(p, &r), IBV_WC_REM_INV_REQ_ERR);
		expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_REQ_ERR);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
	side_peek(&p->b, AT, &r, 8);
	expect(!memcmp(&r, (uint8_t[8]){ 0xee, 0xee, 0xee, 0xee, 0xee, 0xee,
					 0xee, 0xee }, 8));
}

static void a_buffer_that_may_not_be_read_is_a_local_error(struct pair *p)
{
	struct send_req r;

	start(p, ALL, IBV_ACCESS_REMOTE_WRITE);
	r = request(p, 1, 0, AT);
	r.sge[0].lkey ^= 1;
	expect_status(run(p, &r), IBV_WC_LOC_PROT_ERR);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
}

static void only_eight_bytes_are_accepted(struct pair *p)
{
	static const uint32_t lengths[] = { 0, 4, 7, 9, 16 };
	struct send_req r;

	start(p, ALL, IBV_ACCESS_REMOTE_WRITE);
	for (int i = 0; i < 5; i++) {
		r = request(p, 1, 0, AT);
		r.sge[0].length = lengths[i];
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, EINVAL);
	}
	side_expect_none(&p->a, SEND_CQ);
}

static void only_rc_offers_it(struct pair *p)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_UC, IBV_QPT_UD,
						  IBV_QPT_XRC_SEND };
	struct ibv_device_attr_ex ex;
	struct end *e;

	side_open(&p->a, NULL);
	e = p->a.end;
	expect_eq(ibv_query_device_ex(e->ctx, NULL, &ex), 0);
	expect(ex.device_cap_flags_ex >> 40 & 1);
	expect_eq((uint32_t)ex.device_cap_flags_ex,
		  (uint32_t)ex.orig_attr.device_cap_flags);
	for (int i = 0; i < 3; i++) {
		struct ibv_qp_init_attr_ex attr = {
			.qp_type = types[i], .pd = e->pd,
			.send_cq = e->cq[0], .recv_cq = e->cq[1],
			.cap = { 1, 1, 1, 1, 0 },
			.comp_mask = IBV_QP_INIT_ATTR_PD |
				     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
			.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE,
		};

		errno = 0;
		expect(!ibv_create_qp_ex(e->ctx, &attr));
		expect_eq(errno, EOPNOTSUPP);
	}
}

/* A reader that finds the flag finds the data written before it. */
static void it_comes_behind_the_data(struct pair *p)
{
	enum { BYTES = 50000 };
	struct send_req r[2];
	uint64_t flag;

	start(p, ALL, IBV_ACCESS_REMOTE_WRITE);
	for (uint64_t i = 1; i <= ROUNDS; i++) {
		uint64_t end = now_ms() + WAIT_MS;

		side_fill(&p->a, 8192, BYTES, seed(i));
		side_set(&p->a, 0, 8, (uint8_t)i);
		r[0] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 8192, 8192,
				BYTES);
		r[0].flags = 0;
		r[1] = request(p, 2, 0, AT);
		expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
		do {
			side_peek(&p->b, AT, &flag, 8);
			expect(now_ms() < end);
		} while (flag != i * UINT64_C(0x0101010101010101));
		side_check(&p->b, 8192, BYTES, seed(i));
		side_wait_ok(&p->a, SEND_CQ, 2);
	}
}

/* ---- device memory ---- */

struct held {
	struct ibv_dm *dm;
	struct ibv_mr *mr;
	uint32_t rkey;
	uint64_t word;
};

static int make_dm(struct end *e, void *arg)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };
	struct held *h = arg;

	h->dm = ibv_alloc_dm(e->ctx, &attr);
	h->mr = ibv_reg_dm_mr(e->pd, h->dm, 0, 4096, ALL | IBV_ACCESS_ZERO_BASED);
	if (!h->mr)
		return -1;
	h->rkey = h->mr->rkey;
	return 0;
}

static int look_dm(struct end *e, void *arg)
{
	struct held *h = arg;

	return ibv_memcpy_from_dm(&h->word, h->dm, 16, 8);
}

static int end_dm(struct end *e, void *arg)
{
	struct held *h = arg;

	return ibv_dereg_mr(h->mr) || ibv_free_dm(h->dm);
}

static void device_memory_is_written_too(struct pair *p)
{
	struct held h = { 0 };
	struct send_req r;

	start(p, ALL, IBV_ACCESS_REMOTE_WRITE);
	expect_eq(side_run(&p->b, make_dm, &h, sizeof(h)), 0);
	for (uint64_t i = 0; i < ROUNDS; i++) {
		side_fill(&p->a, 0, 8, seed(i));
		r = request(p, i, 0, 0);
		r.remote_addr = 16;
		r.rkey = h.rkey;
		expect_status(run(p, &r), IBV_WC_SUCCESS);
		expect_eq(side_run(&p->b, look_dm, &h, sizeof(h)), 0);
		for (unsigned k = 0; k < 8; k++)
			expect_eq(((uint8_t *)&h.word)[k], pattern(seed(i), k));
	}
	expect_eq(side_run(&p->b, end_dm, &h, sizeof(h)), 0);
}

static const struct test_case cases[] = {
	RULE("IBTA A19", eight_bytes_arrive_and_no_others),
	RULE("IBTA A19", it_needs_the_right_to_write),
	RULE("IBTA A19", it_needs_the_right_of_the_queue_pair),
	RULE("IBTA A19", the_remote_address_is_aligned),
	RULE("IBTA 11.6.2", a_buffer_that_may_not_be_read_is_a_local_error),
	RULE("IBTA A19", only_eight_bytes_are_accepted),
	RULE_IN(ONLY_ONE_PROCESS, "IBTA A19", only_rc_offers_it),
	RULE("IBTA A19", it_comes_behind_the_data),
	RULE("IBTA A19", device_memory_is_written_too),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
