/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys that are invalidated, by their owner (LOCAL_INV) and by a peer's message
 * (SEND with invalidate): InfiniBand specification volume 1, 9.4.1.1, 9.9.6.3 and
 * 10.6.5. Side b has the windows, side a uses and invalidates them.
 */
#include <errno.h>
#include <string.h>

#include "window.h"

enum { TO = 1 << 20 };

static const struct side_options big = { .bytes = 4 << 20 };

static void start(struct pair *p, const struct side_options *opt)
{
	p->conn.access_a = p->conn.access_b = window_rights();
	/* A sender that gets no answer gives up soon. */
	pair_end_soon(p, 10, 2);
	pair_start(p, opt ? opt : &big);
}

static void reconnect(struct pair *p)
{
	pair_reset_qp(p, 0);
	pair_connect_qp(p, 0);
	while (side_async(&p->b, 0) >= 0)
		;
}

static struct binding bound(struct pair *p)
{
	struct region mr = side_reg_bindable(&p->b, 4096, 32768);
	struct window w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	struct binding b = binding_of(&p->b, BIND_BY_POST, &w, &mr, AT, LENGTH);

	side_mw_bind(&p->b, &b);
	return b;
}

static void is_valid(struct pair *p, const struct binding *b)
{
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_READ, 0,
				  b->rkey_after, b->addr), IBV_WC_SUCCESS);
}

static void is_invalid(struct pair *p, const struct binding *b)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE,
						  IBV_WR_RDMA_READ,
						  IBV_WR_ATOMIC_FETCH_AND_ADD };

	for (unsigned i = 0; i < 3; i++) {
		expect_status(access_with(&p->a, &p->b, ops[i], 0,
					  b->rkey_after, b->addr),
			      IBV_WC_REM_ACCESS_ERR);
		expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
		reconnect(p);
	}
}

static struct send_req send_inv(const struct side *s, uint32_t rkey,
				uint32_t length)
{
	struct send_req r = send_req(s, IBV_WR_SEND_WITH_INV, 5, TO, length);

	r.imm = rkey;
	return r;
}

/* ---- SEND with invalidate ---- */

static void invalidates(struct pair *p, const struct send_req *r,
			struct posted (*post)(struct side *, int,
					      const struct send_req *, int))
{
	struct binding b = bound(p);
	struct send_req req = *r;
	uint32_t length = r->num_sge ? r->sge[0].length : 0;
	struct ibv_wc wc;

	req.imm = b.rkey_after;
	side_fill(&p->a, TO, length, length);
	side_recv(&p->b, 6, TO, 1 << 20);
	is_valid(p, &b);
	expect_eq(post(&p->a, 0, &req, 1).ret, 0);
	wc = side_wait_ok(&p->b, RECV_CQ, 6);
	expect_eq(wc.opcode, IBV_WC_RECV);
	expect_eq(wc.wc_flags, IBV_WC_WITH_INV);
	expect_eq(wc.invalidated_rkey, b.rkey_after);
	expect_eq(wc.byte_len, length);
	side_check(&p->b, TO, length, length);
	wc = side_wait_ok(&p->a, SEND_CQ, 5);
	expect_eq(wc.opcode, IBV_WC_SEND);
	is_invalid(p, &b);
	/* The window is free, and its region too. */
	expect_eq(side_dereg(&p->b, b.region), 0);
	expect_eq(side_mw_dealloc(&p->b, b.window), 0);
}

static void the_receiver_of_a_send_with_invalidate_loses_the_window(struct pair *p)
{
	static const uint32_t lengths[] = { 0, 10, 96, 97, 5000, 40000, 300000 };

	start(p, NULL);
	for (unsigned i = 0; i < 7; i++) {
		struct send_req r = send_inv(&p->a, 0, lengths[i]);

		r.num_sge = lengths[i] ? 1 : 0;
		invalidates(p, &r, side_post_send);
	}
}

static void so_it_is_when_it_is_built(struct pair *p)
{
	const struct side_options opt = { .bytes = 4 << 20, .extended = true };
	struct send_req r;

	start(p, &opt);
	r = send_inv(&p->a, 0, 100);
	invalidates(p, &r, side_build_send);
}

static void so_it_is_with_inline_data(struct pair *p)
{
	struct send_req r;

	start(p, NULL);
	r = send_inv(&p->a, 0, 40);
	r.flags |= IBV_SEND_INLINE;
	invalidates(p, &r, side_post_send);
}

static void a_solicited_send_with_invalidate_raises_the_event(struct pair *p)
{
	const struct side_options opt = { .bytes = 4 << 20, .events = true };
	struct binding b;
	struct send_req r;

	start(p, &opt);
	b = bound(p);
	side_recv(&p->b, 1, TO, 100);
	expect_eq(side_arm(&p->b, RECV_CQ, true), 0);
	r = send_inv(&p->a, b.rkey_after, 10);
	r.flags |= IBV_SEND_SOLICITED;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_eq(side_event(&p->b, WAIT_MS), RECV_CQ);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 1).invalidated_rkey, b.rkey_after);
}

static void other_receives_have_no_invalidated_key(struct pair *p)
{
	struct send_req r;

	start(p, NULL);
	side_recv(&p->b, 1, TO, 100);
	side_recv(&p->b, 2, TO, 100);
	side_send(&p->a, 3, 0, 10);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 1).wc_flags, 0);
	r = send_req(&p->a, IBV_WR_SEND_WITH_IMM, 4, 0, 10);
	r.imm = 0x1234;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 2).wc_flags, IBV_WC_WITH_IMM);
}

static void nothing_is_invalidated_before_a_receive_is_there(struct pair *p)
{
	struct send_req r;
	struct binding b;

	start(p, NULL);
	b = bound(p);
	r = send_inv(&p->a, b.rkey_after, 100);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_expect_none(&p->a, SEND_CQ);
	expect_eq(side_dereg(&p->b, b.region), EBUSY);
	side_recv(&p->b, 6, TO, 100);
	side_wait_ok(&p->b, RECV_CQ, 6);
	side_wait_ok(&p->a, SEND_CQ, 5);
	expect_eq(side_dereg(&p->b, b.region), 0);
}

static void writes_that_were_posted_before_arrive_before(struct pair *p)
{
	struct send_req r[3];
	struct binding b;

	start(p, NULL);
	b = bound(p);
	side_fill(&p->a, 0, LENGTH, 9);
	side_recv(&p->b, 6, TO, 100);
	for (int i = 0; i < 2; i++) {
		r[i] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, AT,
				LENGTH);
		r[i].rkey = b.rkey_after;
		r[i].flags = 0;
	}
	r[2] = send_inv(&p->a, b.rkey_after, 8);
	expect_eq(side_post_send(&p->a, 0, r, 3).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 5);
	side_wait_ok(&p->b, RECV_CQ, 6);
	side_check(&p->b, AT, LENGTH, 9);
}

/*
 * The key cannot be invalidated. The receive fails and the QP with it; no answer
 * is sent, so the sender finds out when its retries are over.
 */
static void cannot(struct pair *p, uint32_t rkey)
{
	struct send_req r = send_inv(&p->a, rkey, 100);
	struct ibv_wc wc;

	side_recv(&p->b, 6, TO, 100);
	side_recv(&p->b, 7, TO, 100);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_send(&p->a, 8, 0, 8);
	wc = side_wait(&p->b, RECV_CQ);
	expect_status(wc, IBV_WC_MW_BIND_ERR);
	expect_eq(wc.wr_id, 6);
	wc = side_wait(&p->b, RECV_CQ);
	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, 7);
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
	wc = side_wait(&p->a, SEND_CQ);
	expect_status(wc, IBV_WC_RETRY_EXC_ERR);
	expect_eq(wc.wr_id, 5);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	reconnect(p);
}

static void a_send_that_invalidates_a_wrong_key_fails_at_the_receiver(struct pair *p)
{
	struct window one, free_w;
	struct region mr;
	struct binding b, b1, other;

	start(p, NULL);
	b = bound(p);
	cannot(p, 0);
	cannot(p, b.rkey_after ^ 1);
	cannot(p, b.rkey_after + (1 << 16));
	cannot(p, 0xffffffff);
	/* What was registered by a verb is no work request's to take back. */
	cannot(p, p->b.rkey);
	mr = side_reg_bindable(&p->b, 4096, 32768);
	cannot(p, mr.rkey);
	/* Type 1 is unbound by binding only. */
	one = side_mw_alloc(&p->b, IBV_MW_TYPE_1, 0);
	b1 = binding_of(&p->b, BIND_BY_VERB, &one, &mr, AT, LENGTH);
	side_mw_bind(&p->b, &b1);
	cannot(p, b1.rkey_after);
	is_valid(p, &b1);
	free_w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	cannot(p, free_w.rkey);
	/* Another QP's window. */
	expect_eq(side_qp_create(&p->a, NULL), 1);
	expect_eq(side_qp_create(&p->b, NULL), 1);
	pair_connect_qp(p, 1);
	other = binding_of(&p->b, BIND_BY_POST, &free_w, &mr, AT, LENGTH);
	other.qp = 1;
	side_mw_bind(&p->b, &other);
	cannot(p, other.rkey_after);
	expect_status(access_with(&p->a, &p->b, IBV_WR_RDMA_READ, 1,
				  other.rkey_after, other.addr), IBV_WC_SUCCESS);
	/* After all this the first one is what it was. */
	is_valid(p, &b);
	expect_status(side_invalidate(&p->b, 0, b.rkey_after), IBV_WC_SUCCESS);
	cannot(p, b.rkey_after);
}

static void a_key_is_invalidated_once(struct pair *p)
{
	struct send_req r;
	struct binding b;

	start(p, NULL);
	b = bound(p);
	r = send_inv(&p->a, b.rkey_after, 100);
	side_recv(&p->b, 1, TO, 100);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 5);
	side_wait_ok(&p->b, RECV_CQ, 1);
	cannot(p, b.rkey_after);
	/* And is good again when it is bound again. */
	side_mw_bind(&p->b, &b);
	is_valid(p, &b);
}

static void unreliable_connections_invalidate_too(struct pair *p)
{
	const struct side_options uc = { .type = IBV_QPT_UC, .bytes = 4 << 20 };
	struct send_req r;
	struct binding b;

	p->conn.access_a = p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, &uc);
	b = bound(p);
	r = send_inv(&p->a, b.rkey_after, 100000);
	side_fill(&p->a, TO, 100000, 2);
	side_recv(&p->b, 6, TO, 100000);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 5);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 6).invalidated_rkey,
		  b.rkey_after);
	side_check(&p->b, TO, 100000, 2);
	expect_eq(side_dereg(&p->b, b.region), 0);
	/* A wrong key: the sender does not learn it. */
	side_recv(&p->b, 7, TO, 100000);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 5);
	expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_MW_BIND_ERR);
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
}

static void datagrams_invalidate_nothing(struct pair *p)
{
	const struct side_options ud = { .type = IBV_QPT_UD };
	struct send_req r;
	int ret;

	p->conn.access_a = p->conn.access_b = 1;
	pair_start(p, &ud);
	r = send_req(&p->a, IBV_WR_SEND_WITH_INV, 1, 0, 10);
	ret = side_post_send(&p->a, 0, &r, 1).ret;
	expect(ret == EINVAL || ret == EOPNOTSUPP);
	r.opcode = IBV_WR_LOCAL_INV;
	ret = side_post_send(&p->a, 0, &r, 1).ret;
	expect(ret == EINVAL || ret == EOPNOTSUPP);
}

/* ---- LOCAL_INV ---- */

static void a_local_invalidation_ends_the_window(struct pair *p)
{
	struct binding b;
	struct ibv_wc wc;

	start(p, NULL);
	b = bound(p);
	is_valid(p, &b);
	wc = side_invalidate(&p->b, 0, b.rkey_after);
	expect_status(wc, IBV_WC_SUCCESS);
	expect_eq(wc.opcode, IBV_WC_LOCAL_INV);
	is_invalid(p, &b);
	side_mw_bind(&p->b, &b);
	is_valid(p, &b);
}

static void a_local_invalidation_is_built_and_unsignaled(struct pair *p)
{
	const struct side_options opt = { .bytes = 4 << 20, .extended = true };
	struct send_req r = { .wr_id = 1, .opcode = IBV_WR_LOCAL_INV };
	struct binding b;

	start(p, &opt);
	b = bound(p);
	r.imm = b.rkey_after;
	expect_eq(side_build_send(&p->b, 0, &r, 1).ret, 0);
	expect_eq(side_dereg(&p->b, b.region), 0);
	side_expect_none(&p->b, SEND_CQ);
	is_invalid(p, &b);
}

static void fails_locally(struct pair *p, uint32_t rkey)
{
	struct send_req r[2] = {
		{ .wr_id = 1, .opcode = IBV_WR_LOCAL_INV, .imm = rkey },
		send_req(&p->b, IBV_WR_SEND, 2, 0, 8),
	};
	struct ibv_wc wc;

	expect_eq(side_post_send(&p->b, 0, r, 2).ret, 0);
	wc = side_wait(&p->b, SEND_CQ);
	expect_status(wc, IBV_WC_MW_BIND_ERR);
	expect_eq(wc.wr_id, 1);
	wc = side_wait(&p->b, SEND_CQ);
	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, 2);
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
	reconnect(p);
}

static void invalidating_a_wrong_key_fails(struct pair *p)
{
	struct window one, free_w;
	struct binding b, b1, other;
	struct region mr;

	start(p, NULL);
	b = bound(p);
	fails_locally(p, 0);
	fails_locally(p, b.rkey_after ^ 0x80);
	fails_locally(p, 0xffffff00);
	mr = side_reg_bindable(&p->b, 4096, 32768);
	fails_locally(p, mr.lkey);
	one = side_mw_alloc(&p->b, IBV_MW_TYPE_1, 0);
	b1 = binding_of(&p->b, BIND_BY_VERB, &one, &mr, AT, LENGTH);
	side_mw_bind(&p->b, &b1);
	fails_locally(p, b1.rkey_after);
	free_w = side_mw_alloc(&p->b, IBV_MW_TYPE_2, 0);
	fails_locally(p, free_w.rkey);
	expect_eq(side_qp_create(&p->a, NULL), 1);
	expect_eq(side_qp_create(&p->b, NULL), 1);
	pair_connect_qp(p, 1);
	other = binding_of(&p->b, BIND_BY_POST, &free_w, &mr, AT, LENGTH);
	other.qp = 1;
	side_mw_bind(&p->b, &other);
	fails_locally(p, other.rkey_after);
	is_valid(p, &b);
	is_valid(p, &b1);
	expect_status(side_invalidate(&p->b, 0, b.rkey_after), IBV_WC_SUCCESS);
	fails_locally(p, b.rkey_after);
	/* The region of the other two is what it was. */
	expect_eq(side_dereg(&p->b, mr.index), EBUSY);
}

static void an_invalidation_waits_for_what_was_posted_before(struct pair *p)
{
	struct send_req r[2];
	struct binding b;

	p->conn.min_rnr_timer = 20;
	start(p, NULL);
	b = bound(p);
	r[0] = send_req(&p->b, IBV_WR_SEND, 1, 0, 8);
	r[1] = (struct send_req){ .wr_id = 2, .opcode = IBV_WR_LOCAL_INV,
				  .flags = IBV_SEND_SIGNALED | IBV_SEND_FENCE,
				  .imm = b.rkey_after };
	expect_eq(side_post_send(&p->b, 0, r, 2).ret, 0);
	side_expect_none(&p->b, SEND_CQ);
	is_valid(p, &b);
	side_recv(&p->a, 1, TO, 8);
	side_wait_ok(&p->b, SEND_CQ, 1);
	side_wait_ok(&p->b, SEND_CQ, 2);
	is_invalid(p, &b);
}

static const struct test_case cases[] = {
	RULE("IBTA 9.4.1.1",
	     the_receiver_of_a_send_with_invalidate_loses_the_window),
	RULE("ibv_wr_post(3)", so_it_is_when_it_is_built),
	RULE("ibv_post_send(3)", so_it_is_with_inline_data),
	RULE("ibv_post_send(3)",
	     a_solicited_send_with_invalidate_raises_the_event),
	RULE("ibv_poll_cq(3)", other_receives_have_no_invalidated_key),
	RULE("IBTA 9.4.1.1", nothing_is_invalidated_before_a_receive_is_there),
	RULE("IBTA 9.4.1.1.1", writes_that_were_posted_before_arrive_before),
	RULE("IBTA 9.9.6.3",
	     a_send_that_invalidates_a_wrong_key_fails_at_the_receiver),
	RULE("IBTA 10.6.5", a_key_is_invalidated_once),
	RULE("ibv_post_send(3)", unreliable_connections_invalidate_too),
	RULE("ibv_post_send(3)", datagrams_invalidate_nothing),
	RULE("IBTA 10.6.5", a_local_invalidation_ends_the_window),
	RULE("ibv_wr_post(3)", a_local_invalidation_is_built_and_unsignaled),
	RULE("IBTA o10-37.2.26", invalidating_a_wrong_key_fails),
	RULE("IBTA 9.4.1.1.1", an_invalidation_waits_for_what_was_posted_before),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
