/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What posting refuses, and that nothing behind a refused request is posted
 * (ibv_post_send(3), ibv_post_recv(3), ibv_wr_post(3)).
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

static void a_full_send_queue_refuses_with_enomem_and_names_the_request(struct pair *p)
{
	const struct side_options opt = { .send_wr = 5 };
	struct send_req r[4];
	struct posted posted;

	need_rnr();
	/* Nothing is posted at the receiver, so the queue stays full. */
	pair_start(p, &opt);
	for (uint64_t i = 0; i < 4; i++)
		r[i] = send_req(&p->a, IBV_WR_SEND, i, 0, 8);
	expect_eq(side_post_send(&p->a, 0, r, 3).ret, 0);
	posted = side_post_send(&p->a, 0, r, 4); /* two fit */
	expect_eq(posted.ret, ENOMEM);
	expect_eq(posted.bad, 2);
	posted = side_post_send(&p->a, 0, r, 1);
	expect_eq(posted.ret, ENOMEM);
	expect_eq(posted.bad, 0);
	for (uint64_t i = 0; i < 8; i++)
		side_recv(&p->b, i, 0, 64);
	for (uint64_t i = 0; i < 5; i++)
		side_wait_ok(&p->a, SEND_CQ, i < 3 ? i : i - 3);
	expect_eq(side_poll(&p->b, RECV_CQ, 8, QUIET_MS).count, 5);
	side_expect_none(&p->a, SEND_CQ);
	/* And there is room again. */
	expect_eq(side_post_send(&p->a, 0, r, 3).ret, 0);
	for (uint64_t i = 0; i < 3; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
}

static void a_full_receive_queue_refuses_with_enomem_and_names_the_request(struct pair *p)
{
	const struct side_options opt = { .recv_wr = 5 };
	struct recv_req r[4];
	struct posted posted;

	need_rnr();
	pair_start(p, &opt);
	for (uint64_t i = 0; i < 4; i++)
		r[i] = (struct recv_req){ .wr_id = i, .num_sge = 1,
					  .sge = { side_sge(&p->b, 0, 64) } };
	expect_eq(side_post_recv(&p->b, 0, r, 3).ret, 0);
	posted = side_post_recv(&p->b, 0, r, 4);
	expect_eq(posted.ret, ENOMEM);
	expect_eq(posted.bad, 2);
	for (uint64_t i = 0; i < 5; i++)
		side_send(&p->a, i, 0, 8);
	for (uint64_t i = 0; i < 5; i++)
		side_wait_ok(&p->b, RECV_CQ, i < 3 ? i : i - 3);
	/* A sixth finds none. */
	side_send(&p->a, 9, 0, 8);
	side_expect_none(&p->b, RECV_CQ);
	side_recv(&p->b, 7, 0, 8);
	side_wait_ok(&p->b, RECV_CQ, 7);
}

static void inline_data_that_do_not_fit_are_refused(struct pair *p)
{
	const struct side_options opt = { .inline_bytes = 60 };
	struct send_req r[3];
	struct posted posted;
	struct ibv_qp_init_attr init;

	pair_start(p, &opt);
	side_query(&p->a, 0, NULL, &init);
	expect(init.cap.max_inline_data >= 60);
	for (uint64_t i = 0; i < 3; i++) {
		r[i] = send_req(&p->a, IBV_WR_SEND, i, 0, 60);
		r[i].flags |= IBV_SEND_INLINE;
	}
	r[1].num_sge = 2;
	r[1].sge[1] = side_sge(&p->a, 100, init.cap.max_inline_data - 59);
	for (uint64_t i = 0; i < 3; i++)
		side_recv(&p->b, i, 0, 200);
	posted = side_post_send(&p->a, 0, r, 3);
	expect_eq(posted.ret, EINVAL);
	expect_eq(posted.bad, 1);
	side_wait_ok(&p->a, SEND_CQ, 0);
	side_wait_ok(&p->b, RECV_CQ, 0);
	side_expect_none(&p->b, RECV_CQ);
}

static void too_many_sges_are_refused(struct pair *p)
{
	const struct side_options opt = { .sges = 3 };
	struct send_req r[2];
	struct recv_req rr[2];
	struct posted posted;

	need_rnr();
	pair_start(p, &opt);
	r[0] = send_req(&p->a, IBV_WR_SEND, 0, 0, 10);
	r[1] = send_req(&p->a, IBV_WR_SEND, 1, 0, 10);
	rr[0] = rr[1] = (struct recv_req){ .num_sge = 1,
					   .sge = { side_sge(&p->b, 0, 50) } };
	for (int i = 0; i < 4; i++) {
		r[1].sge[i] = side_sge(&p->a, 0, 10);
		rr[1].sge[i] = side_sge(&p->b, 0, 10);
	}
	r[1].num_sge = rr[1].num_sge = 4;
	posted = side_post_send(&p->a, 0, r, 2);
	expect_eq(posted.ret, EINVAL);
	expect_eq(posted.bad, 1);
	posted = side_post_recv(&p->b, 0, rr, 2);
	expect_eq(posted.ret, EINVAL);
	expect_eq(posted.bad, 1);
	r[0].num_sge = -1;
	expect_eq(side_post_send(&p->a, 0, r, 1).ret, EINVAL);
	side_wait_ok(&p->b, RECV_CQ, 0);
	side_wait_ok(&p->a, SEND_CQ, 0);
	side_expect_none(&p->a, SEND_CQ);
}

static void a_queue_pair_without_sges_sends_empty_messages_only(struct pair *p)
{
	const struct side_options opt = { .no_send_sges = true,
					  .inline_bytes = 64 };
	struct send_req r;

	pair_start(p, &opt);
	side_recv(&p->b, 1, 0, 50);
	for (int i = 0; i < 4; i++) {
		r = send_req(&p->a, i % 2 ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND, 1,
			     0, 10);
		r.flags |= i / 2 ? IBV_SEND_INLINE : 0;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, EINVAL);
	}
	r = send_req(&p->a, IBV_WR_SEND, 2, 0, 0);
	r.num_sge = 0;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 1).byte_len, 0);
}

static void sends_are_refused_before_rts_and_receives_in_reset(struct pair *p)
{
	struct side *a = &p->a, *b = &p->b;
	struct send_req r;
	struct recv_req rr;
	struct posted posted;

	pair_open(p, NULL);
	r = send_req(a, IBV_WR_SEND, 1, 0, 16);
	rr = (struct recv_req){ .wr_id = 2, .num_sge = 1,
				.sge = { side_sge(b, 0, 64) } };
	posted = side_post_recv(b, 0, &rr, 1);
	expect_eq(posted.ret, EINVAL);
	expect_eq(posted.bad, 0);
	expect_eq(side_post_send(a, 0, &r, 1).ret, EINVAL);
	expect_eq(side_to_init(a, 0, 0), 0);
	expect_eq(side_to_init(b, 0, 0), 0);
	posted = side_post_send(a, 0, &r, 1);
	expect_eq(posted.ret, EINVAL);
	expect_eq(posted.bad, 0);
	/* In INIT a receive is accepted; it is used once there is traffic. */
	expect_eq(side_post_recv(b, 0, &rr, 1).ret, 0);
	expect_eq(side_to_rtr(a, 0, &p->conn, &b->gid, b->qpn[0], 7), 0);
	expect_eq(side_to_rtr(b, 0, &p->conn, &a->gid, a->qpn[0], 9), 0);
	expect_eq(side_post_send(a, 0, &r, 1).ret, EINVAL);
	expect_eq(side_to_rts(a, 0, &p->conn, 9), 0);
	expect_eq(side_post_send(a, 0, &r, 1).ret, 0);
	/* The receiver is in RTR only. */
	side_wait_ok(b, RECV_CQ, 2);
	side_wait_ok(a, SEND_CQ, 1);
}

static void posting_in_the_error_state_is_accepted_and_flushed(struct pair *p)
{
	struct ibv_wc wc;

	pair_start(p, NULL);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_ERR), 0);
	side_send(&p->a, 5, 0, 16);
	side_recv(&p->a, 6, 0, 16);
	wc = side_wait(&p->a, SEND_CQ);
	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, 5);
	expect_eq(wc.qp_num, p->a.qpn[0]);
	wc = side_wait(&p->a, RECV_CQ);
	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, 6);
	expect_eq(wc.qp_num, p->a.qpn[0]);
}

static void operations_that_are_not_offered_are_refused(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_TSO,
		IBV_WR_DRIVER1,
		(enum ibv_wr_opcode)99,
	};
	struct send_req r;
	struct posted posted;

	pair_start(p, NULL);
	side_recv(&p->b, 1, 0, 64);
	for (unsigned i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		r = rdma_req(&p->a, &p->b, ops[i], 1, 0, 0, 8);
		posted = side_post_send(&p->a, 0, &r, 1);
		expect(posted.ret == EOPNOTSUPP || posted.ret == EINVAL);
		expect_eq(posted.bad, 0);
	}
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 1, 0, 0, 8);
	r.flags |= IBV_SEND_INLINE; /* there is nothing to copy at posting */
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, EINVAL);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
	side_expect_none(&p->a, SEND_CQ);
	side_expect_none(&p->b, RECV_CQ);
}

static void a_message_above_the_limit_is_refused_or_fails(struct pair *p)
{
	struct send_req r;
	struct posted posted;

	pair_start(p, NULL);
	side_recv(&p->b, 1, 0, 64);
	r = send_req(&p->a, IBV_WR_SEND, 1, 0, 0x7fffffff);
	r.num_sge = 2;
	r.sge[1] = r.sge[0];
	posted = side_post_send(&p->a, 0, &r, 1);
	if (posted.ret == 0) {
		struct ibv_wc wc = side_wait(&p->a, SEND_CQ);

		expect(wc.status == IBV_WC_LOC_LEN_ERR ||
		       wc.status == IBV_WC_LOC_PROT_ERR);
	} else {
		expect_eq(posted.ret, EINVAL);
		expect_eq(posted.bad, 0);
	}
	side_expect_none(&p->b, RECV_CQ);
}

static void builder_calls_with_an_error_post_nothing(struct pair *p)
{
	const struct side_options opt = { .extended = true, .inline_bytes = 64,
					  .send_wr = 4, .sges = 2 };
	struct send_req r[5];

	pair_start(p, &opt);
	for (uint64_t i = 0; i < 5; i++)
		r[i] = send_req(&p->a, IBV_WR_SEND, i, 0, 16);
	for (uint64_t i = 0; i < 8; i++)
		side_recv(&p->b, i, 0, 256);
	expect_eq(side_build_send(&p->a, 0, r, 5).ret, ENOMEM);
	r[1].num_sge = 3;
	r[1].sge[1] = r[1].sge[2] = r[1].sge[0];
	expect_eq(side_build_send(&p->a, 0, r, 2).ret, EINVAL);
	r[1] = send_req(&p->a, IBV_WR_SEND, 1, 0, 65);
	r[1].flags |= IBV_SEND_INLINE;
	expect_eq(side_build_send(&p->a, 0, r, 2).ret, EINVAL);
	side_expect_none(&p->b, RECV_CQ);
	side_expect_none(&p->a, SEND_CQ);
	/* The queue is as it was. */
	r[1] = send_req(&p->a, IBV_WR_SEND, 1, 0, 16);
	expect_eq(side_build_send(&p->a, 0, r, 4).ret, 0);
	for (uint64_t i = 0; i < 4; i++)
		side_wait_ok(&p->a, SEND_CQ, i);
	/* They may be on their way. */
	for (uint64_t i = 0; i < 4; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
	side_expect_none(&p->b, RECV_CQ);
}

static int abort_a_build(struct end *e, void *arg)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp[0]);

	ibv_wr_start(qp);
	qp->wr_id = 1;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(qp);
	ibv_wr_set_sge(qp, e->mr[0]->lkey, (uintptr_t)e->buffer, 8);
	ibv_wr_abort(qp);
	return 0;
}

static void an_aborted_build_posts_nothing(struct pair *p)
{
	const struct side_options opt = { .extended = true };
	struct send_req r;

	pair_start(p, &opt);
	side_recv(&p->b, 1, 0, 64);
	expect_eq(side_run(&p->a, abort_a_build, NULL, 0), 0);
	side_expect_none(&p->a, SEND_CQ);
	side_expect_none(&p->b, RECV_CQ);
	r = send_req(&p->a, IBV_WR_SEND, 2, 0, 16);
	expect_eq(side_build_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

/* Polls and arms while a request is being built, when an earlier one of the same
 * QP is to be completed. */
static int poll_in_a_build(struct end *e, void *arg)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp[0]);
	struct ibv_wc wc;
	int found = 0;

	for (int i = 0; i < 3000 && found >= 0; i++) {
		ibv_wr_start(qp);
		found = ibv_poll_cq(e->cq[SEND_CQ], 1, &wc);
		if (ibv_req_notify_cq(e->cq[SEND_CQ], 0))
			found = -1;
		ibv_wr_abort(qp);
		if (found > 0)
			return wc.status == IBV_WC_SUCCESS ? 0 : -1;
		found = ibv_poll_cq(e->cq[SEND_CQ], 1, &wc);
		if (found > 0)
			return wc.status == IBV_WC_SUCCESS ? 0 : -1;
	}
	return found < 0 ? -1 : 1;
}

static void polling_inside_a_build_locks_nothing_up(struct pair *p)
{
	const struct side_options opt = { .extended = true, .events = true };
	struct send_req r;

	pair_start(p, &opt);
	for (uint64_t i = 0; i < 20; i++) {
		/* The second one comes back while the first build is open. */
		r = send_req(&p->a, IBV_WR_SEND, i, 0, 16);
		side_recv(&p->b, i, 0, 64);
		expect_eq(side_build_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->b, RECV_CQ, i);
		if (side_run(&p->a, poll_in_a_build, NULL, 0))
			side_wait_ok(&p->a, SEND_CQ, i);
	}
}

static int build_atomic_without_result(struct end *e, void *arg)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(e->qp[0]);
	const struct send_req *r = arg;

	ibv_wr_start(qp);
	qp->wr_id = r->wr_id;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_atomic_fetch_add(qp, r->rkey, r->remote_addr, 1);
	return ibv_wr_complete(qp);
}

static void an_atomic_built_without_a_place_for_its_result_fails(struct pair *p)
{
	const struct side_options opt = {
		.extended = true,
		.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct ibv_wc wc;
	struct send_req r;
	uint64_t word;

	if (!offers(IBV_WR_ATOMIC_FETCH_AND_ADD))
		need_no_rnic("it has no atomics");
	p->conn.access_b = IBV_ACCESS_REMOTE_ATOMIC;
	pair_start(p, &opt);
	side_set(&p->b, 0, 8, 0);
	r = rdma_req(&p->a, &p->b, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 0, 8);
	expect_eq(side_run(&p->a, build_atomic_without_result, &r, sizeof(r)), 0);
	wc = side_wait(&p->a, SEND_CQ);
	expect_status(wc, IBV_WC_LOC_QP_OP_ERR);
	side_peek(&p->b, 0, &word, sizeof(word));
	expect_eq(word, 0);
}

static void a_plain_queue_pair_has_no_builder_calls(struct pair *p)
{
	side_open(&p->a, NULL);
	expect(ibv_qp_to_qp_ex(p->a.end->qp[0]) == NULL);
}

static const struct test_case cases[] = {
	RULE("ibv_post_send(3)",
	     a_full_send_queue_refuses_with_enomem_and_names_the_request),
	RULE("ibv_post_recv(3)",
	     a_full_receive_queue_refuses_with_enomem_and_names_the_request),
	RULE("ibv_post_send(3)", inline_data_that_do_not_fit_are_refused),
	RULE("ibv_post_send(3)", too_many_sges_are_refused),
	RULE("ibv_post_send(3)",
	     a_queue_pair_without_sges_sends_empty_messages_only),
	RULE("IBTA 11.4.1.1, 11.4.1.2",
	     sends_are_refused_before_rts_and_receives_in_reset),
	RULE("IBTA 10.3.1.7",
	     posting_in_the_error_state_is_accepted_and_flushed),
	RULE("ibv_post_send(3)", operations_that_are_not_offered_are_refused),
	RULE("ibv_query_port(3)",
	     a_message_above_the_limit_is_refused_or_fails),
	RULE("ibv_wr_post(3)", builder_calls_with_an_error_post_nothing),
	RULE("ibv_wr_post(3)", an_aborted_build_posts_nothing),
	CASE(polling_inside_a_build_locks_nothing_up),
	RULE("ibv_wr_post(3)",
	     an_atomic_built_without_a_place_for_its_result_fails),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_wr_post(3)",
		a_plain_queue_pair_has_no_builder_calls),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
