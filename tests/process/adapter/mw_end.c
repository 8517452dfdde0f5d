/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows among other work: the order of binds, what ends a window, and that
 * nobody writes any more when its end is complete (InfiniBand specification volume 1,
 * 10.6.5, 10.6.7.2 and 10.8.3). Side b has the windows, side a uses them.
 */
#include <errno.h>
#include <string.h>

#include "assault.h"
#include "window.h"

static void a_bind_to_a_region_that_is_gone_fails(struct pair *p)
{
	struct binding b;
	struct region mr;
	struct window w;
	struct send_req r;

	/* The bind waits behind a send for which there is no receive. */
	p->conn.min_rnr_timer = 20;
	mw_start(p, NULL);
	mr = side_reg_bindable(&p->b, 4096, 32768);
	w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	r = send_req(&p->b, IBV_WR_SEND, 1, 0, 8);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	b = binding_of(&p->b, BIND_BY_POST, &w, &mr, AT, LENGTH);
	expect_eq(side_mw_post(&p->b, &b), 0);
	side_expect_none(&p->b, SEND_CQ);
	expect_eq(side_dereg(&p->b, mr.index), 0);
	side_recv(&p->a, 1, 0, 8);
	side_wait_ok(&p->b, SEND_CQ, 1);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_MW_BIND_ERR);
	side_wait_ok(&p->a, RECV_CQ, 1);
}

/* ---- order ---- */

static void binds_are_done_in_their_turn(struct pair *p)
{
	struct bound_window t;
	struct send_req r;
	uint32_t first;

	p->conn.min_rnr_timer = 20;
	mw_start(p, NULL);
	t = mw_bound(p, BIND_BY_POST);
	first = t.bind.rkey_after;
	/* A send that waits, an invalidation, a bind, another send. */
	r = send_req(&p->b, IBV_WR_SEND, 1, 0, 8);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	r = (struct send_req){ .wr_id = 2, .opcode = IBV_WR_LOCAL_INV,
			       .flags = IBV_SEND_SIGNALED, .imm = first };
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	t.bind.wr_id = 3;
	t.bind.rkey++;
	expect_eq(side_mw_post(&p->b, &t.bind), 0);
	r = send_req(&p->b, IBV_WR_SEND, 4, 0, 8);
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_expect_none(&p->b, SEND_CQ);
	mw_works(p, 0, first, t.bind.addr);
	side_recv(&p->a, 1, 0, 8);
	side_recv(&p->a, 4, 0, 8);
	/* The receiver of the second message may use the new key. */
	side_wait_ok(&p->a, RECV_CQ, 1);
	side_wait_ok(&p->a, RECV_CQ, 4);
	mw_works(p, 0, t.bind.rkey_after, t.bind.addr);
	for (uint64_t i = 1; i < 5; i++)
		side_wait_ok(&p->b, SEND_CQ, i);
	mw_all_refused(p, 0, first, t.bind.addr);
}

static void unsignaled_binds_complete_in_silence(struct pair *p)
{
	struct bound_window t;

	mw_start(p, NULL);
	t = mw_bound(p, BIND_BY_VERB);
	t.bind.flags = 0;
	for (int i = 0; i < 200; i++)
		expect_eq(side_mw_post(&p->b, &t.bind), 0);
	side_recv(&p->a, 1, AT, 8);
	side_send(&p->b, 2, 0, 8);
	side_wait_ok(&p->b, SEND_CQ, 2);
	side_wait_ok(&p->a, RECV_CQ, 1);
	mw_works(p, 0, t.bind.rkey_after, t.bind.addr);
}

static void a_bind_on_a_qp_in_error_is_flushed(struct pair *p)
{
	struct binding b;
	struct region mr;
	struct window w;
	struct ibv_wc wc;

	mw_start(p, NULL);
	mr = side_reg_bindable(&p->b, 4096, 32768);
	w = side_mw_alloc(&p->b, IBV_MW_TYPE_1, 0);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_ERR), 0);
	b = binding_of(&p->b, BIND_BY_VERB, &w, &mr, AT, LENGTH);
	expect_eq(side_mw_post(&p->b, &b), 0);
	wc = side_wait(&p->b, SEND_CQ);
	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, b.wr_id);
	expect_eq(side_dereg(&p->b, mr.index), 0);
}

static void a_bind_needs_no_peer(struct pair *p)
{
	const union ibv_gid nowhere = { .raw = { 0 } };
	struct binding b;
	struct region mr;
	struct window w;

	side_open(&p->b, NULL);
	mr = side_reg_bindable(&p->b, 4096, 32768);
	w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	expect_eq(side_to_init(&p->b, 0, 0), 0);
	/* Block 0 has no QPs. */
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &nowhere, 17, 1), 0);
	expect_eq(side_to_rts(&p->b, 0, &p->conn, 1), 0);
	b = binding_of(&p->b, BIND_BY_POST, &w, &mr, AT, LENGTH);
	side_mw_bind(&p->b, &b);
	expect_status(side_invalidate(&p->b, 0, b.rkey_after), IBV_WC_SUCCESS);
}

/* A WRITE is complete when it is sent; what comes behind it finds it done. */
static void send_behind(struct pair *p, uint64_t wr_id)
{
	side_recv(&p->b, wr_id, 0, 16);
	side_send(&p->a, wr_id, 0, 16);
	side_wait_ok(&p->a, SEND_CQ, wr_id);
	side_wait_ok(&p->b, RECV_CQ, wr_id);
}

static void an_unreliable_connection_has_windows_too(struct pair *p)
{
	const struct side_options uc = { .type = IBV_QPT_UC };
	struct bound_window t;
	struct send_req r;

	p->conn.access_a = p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, &uc);
	t = mw_bound(p, BIND_BY_POST);
	side_fill(&p->a, 0, 64, 4);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, AT, 64);
	r.rkey = t.bind.rkey_after;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	send_behind(p, 2);
	side_check(&p->b, AT, 64, 4);
	/* An error of the send queue stops it, and only it. */
	expect_eq(side_mw_post(&p->b, &t.bind), 0);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_MW_BIND_ERR);
	expect_eq(side_state(&p->b, 0), IBV_QPS_SQE);
	side_fill(&p->a, 0, 64, 5);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	send_behind(p, 3);
	side_check(&p->b, AT, 64, 5);
}

/* ---- what ends windows, and what they keep alive ---- */

static void busy_while_bound(struct pair *p, struct region *mr, struct window *w,
			     struct binding *bind)
{
	struct region same;
	uint32_t rkey = side_mw_bind(&p->b, bind);
	struct window second;
	struct binding b;

	expect_eq(side_dereg(&p->b, mr->index), EBUSY);
	same = side_rereg(&p->b, mr->index, IBV_REREG_MR_CHANGE_ACCESS, 0, 0, 0,
			  IBV_ACCESS_LOCAL_WRITE);
	expect_eq(same.error, IBV_REREG_MR_ERR_CMD);
	expect_eq(same.lkey, mr->lkey);
	mw_works(p, 0, rkey, bind->addr);
	/* Two of them: until the last one is unbound. */
	second = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	b = binding_of(&p->b, BIND_BY_POST, &second, mr, AT, 64);
	side_mw_bind(&p->b, &b);
	if (bind->how == BIND_BY_VERB) {
		bind->length = 0;
		side_mw_bind(&p->b, bind);
	} else {
		expect_status(side_invalidate(&p->b, 0, rkey), IBV_WC_SUCCESS);
	}
	expect_eq(side_dereg(&p->b, mr->index), EBUSY);
	expect_eq(side_mw_dealloc(&p->b, second.index), 0);
	expect_eq(side_dereg(&p->b, mr->index), 0);
	*mr = side_reg_bindable(&p->b, 4096, 32768);
}

static void a_region_with_windows_is_not_deregistered(struct pair *p)
{
	mw_each(p, busy_while_bound);
}

static void end_by_dealloc(struct pair *p, struct region *mr, struct window *w,
			   struct binding *bind)
{
	uint32_t rkey = side_mw_bind(&p->b, bind);

	mw_works(p, 0, rkey, bind->addr);
	expect_eq(side_mw_dealloc(&p->b, w->index), 0);
	mw_all_refused(p, 0, rkey, bind->addr);
	expect_eq(side_dereg(&p->b, mr->index), 0);
	*mr = side_reg_bindable(&p->b, 4096, 32768);
	*w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	/* The entry of the table may be used again, not the key. */
	mw_all_refused(p, 0, rkey, bind->addr);
}

static void deallocation_unbinds(struct pair *p)
{
	mw_each(p, end_by_dealloc);
}

static void a_qp_with_windows_may_be_destroyed(struct pair *p)
{
	struct bound_window t;
	struct binding b;

	mw_start(p, NULL);
	mw_second_qp(p);
	t = mw_bound(p, BIND_BY_POST);
	mw_works(p, 0, t.bind.rkey_after, t.bind.addr);
	expect_eq(side_qp_destroy(&p->b, 0), 0);
	mw_all_refused(p, 1, t.bind.rkey_after, t.bind.addr);
	/* The window is of no use: neither bound anew nor invalidated. */
	b = t.bind;
	b.qp = 1;
	mw_bind_fails(p, &b);
	expect_status(side_invalidate(&p->b, 1, t.bind.rkey_after),
		      IBV_WC_MW_BIND_ERR);
	expect_eq(side_dereg(&p->b, t.mr.index), EBUSY);
	expect_eq(side_mw_dealloc(&p->b, t.w.index), 0);
	expect_eq(side_dereg(&p->b, t.mr.index), 0);
}

/* ---- nobody writes any more when the key's end is complete ---- */

/* Here the windows are side a's, whose memory this process sees. */
static void attack(struct pair *p, enum bind_how how, uint32_t length)
{
	const struct side_options opt = { .bytes = 4 << 20 };
	uint8_t *target;

	mw_start(p, &opt);
	target = p->a.end->buffer + (1 << 20);
	side_set(&p->b, 0, length, 0xaa);
	for (int i = 0; i < 30; i++) {
		struct region mr = side_reg_bindable(&p->a, 1 << 20, length);
		struct window w = side_mw_alloc(&p->a, how == BIND_BY_VERB ?
							       IBV_MW_TYPE_1 :
							       IBV_MW_TYPE_2, 0);
		struct binding b = binding_of(&p->a, how, &w, &mr, 1 << 20,
					      length);
		struct assault as = { .opcode = IBV_WR_RDMA_WRITE,
				      .remote_addr = b.addr, .length = length,
				      .rkey = side_mw_bind(&p->a, &b) };

		memset(target, 0, length);
		side_start(&p->b, assault_until_refused, &as, sizeof(as));
		assault_wait(target + length - 1, 0xaa);
		if (i % 3 == 0) {
			expect_eq(side_mw_dealloc(&p->a, w.index), 0);
		} else if (how == BIND_BY_VERB) {
			b.length = 0;
			expect_eq(side_mw_post(&p->a, &b), 0);
			expect_eq(side_wait(&p->a, SEND_CQ).wr_id, b.wr_id);
		} else {
			side_invalidate(&p->a, 0, as.rkey);
		}
		/* From here on it is ours. */
		memset(target, 0x11, length);
		expect_eq(side_join(&p->b, &as, sizeof(as)), 0);
		expect_eq(as.result, IBV_WC_REM_ACCESS_ERR);
		for (uint32_t k = 0; k < length; k++)
			if (target[k] != 0x11)
				fail("byte %u was written after the end", k);
		if (i % 3)
			expect_eq(side_mw_dealloc(&p->a, w.index), 0);
		expect_eq(side_dereg(&p->a, mr.index), 0);
		mw_reconnect(p, 0);
		while (side_async(&p->a, 0) >= 0)
			;
	}
}

static void writes_stop_when_unbinding_is_complete(struct pair *p)
{
	attack(p, BIND_BY_VERB, 1 << 20);
}

static void writes_stop_when_invalidation_is_complete(struct pair *p)
{
	attack(p, BIND_BY_POST, 1 << 20);
}

static const struct test_case cases[] = {
	RULE("IBTA 11.6.2", a_bind_to_a_region_that_is_gone_fails),
	RULE("IBTA 10.8.3.3", binds_are_done_in_their_turn),
	RULE("ibv_bind_mw(3)", unsignaled_binds_complete_in_silence),
	RULE("IBTA 10.3.1.7", a_bind_on_a_qp_in_error_is_flushed),
	RULE("IBTA 10.6.7.2", a_bind_needs_no_peer),
	RULE("ibv_post_send(3)", an_unreliable_connection_has_windows_too),
	RULE("ibv_dereg_mr(3)", a_region_with_windows_is_not_deregistered),
	RULE("ibv_dealloc_mw(3)", deallocation_unbinds),
	RULE("IBTA o10-2.2.5", a_qp_with_windows_may_be_destroyed),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 10.6.7.2",
		writes_stop_when_unbinding_is_complete),
	RULE_IN(ONLY_TWO_PROCESSES, "IBTA 10.6.5",
		writes_stop_when_invalidation_is_complete),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
