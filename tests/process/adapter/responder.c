/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which of its states a queue pair takes what comes in, and what becomes of
 * it in the others (InfiniBand specification volume 1, 10.3.1): every operation
 * of a reliable connection, and messages of the unreliable services.
 */
#include "pair.h"

enum { QKEY = 0x33333333, GRH = 40, AT = 8192, ROOM = 1024, OPS = 6 };

static const enum ibv_wr_opcode ops[OPS] = {
	IBV_WR_SEND,	  IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
};

static bool takes_receive(int op)
{
	return op < 2;
}

/* The first `count` queue pairs of both sides; b's stay in INIT. */
static void open_half(struct pair *p, enum ibv_qp_type type, int count)
{
	const struct side_options opt = {
		.type = type,
		.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};
	const unsigned access =
		type == IBV_QPT_UD ? QKEY :
		type == IBV_QPT_UC ? IBV_ACCESS_REMOTE_WRITE :
				     IBV_ACCESS_REMOTE_WRITE |
					     IBV_ACCESS_REMOTE_READ |
					     IBV_ACCESS_REMOTE_ATOMIC;

	p->conn.access_a = p->conn.access_b = access;
	pair_open(p, &opt);
	for (int i = 0; i < count; i++) {
		if (i) {
			expect_eq(side_qp_create(&p->a, &opt), i);
			expect_eq(side_qp_create(&p->b, &opt), i);
		}
		expect_eq(side_to_init(&p->a, i, access), 0);
		expect_eq(side_to_init(&p->b, i, access), 0);
		expect_eq(side_to_rtr(&p->a, i, &p->conn, &p->b.gid,
				      p->b.qpn[i], p->conn.psn_b), 0);
		expect_eq(side_to_rts(&p->a, i, &p->conn, p->conn.psn_a), 0);
	}
}

/* Through the usual ones to `state`. */
static void bring_to(struct pair *p, int qp, enum ibv_qp_state state)
{
	if (state == IBV_QPS_INIT)
		return;
	if (state == IBV_QPS_RESET) {
		expect_eq(side_to_state(&p->b, qp, state), 0);
		return;
	}
	expect_eq(side_to_rtr(&p->b, qp, &p->conn, &p->a.gid, p->a.qpn[qp],
			      p->conn.psn_a), 0);
	if (state == IBV_QPS_RTR)
		return;
	expect_eq(side_to_rts(&p->b, qp, &p->conn, p->conn.psn_b), 0);
	if (state != IBV_QPS_RTS)
		expect_eq(side_to_state(&p->b, qp, state), 0);
}

static void post_receive(struct pair *p, int qp)
{
	struct recv_req r = { .wr_id = 50 + (uint64_t)qp, .num_sge = 1,
			      .sge = { side_sge(&p->b, 0, ROOM) } };

	expect_eq(side_post_recv(&p->b, qp, &r, 1).ret, 0);
}

static void post_op(struct pair *p, int qp, enum ibv_wr_opcode op)
{
	struct send_req r = rdma_req(&p->a, &p->b, op, (uint64_t)qp,
				     op == IBV_WR_RDMA_READ ||
						     op > IBV_WR_RDMA_READ ?
					     64 * (uint64_t)qp : 4096,
				     AT, 8);

	expect_eq(side_post_send(&p->a, qp, &r, 1).ret, 0);
}

/* All operations succeed against a responder in that state. */
static void answers_in(struct pair *p, enum ibv_qp_state state)
{
	open_half(p, IBV_QPT_RC, OPS);
	for (int i = 0; i < OPS; i++) {
		post_receive(p, i);
		bring_to(p, i, state);
		post_op(p, i, ops[i]);
		side_wait_ok(&p->a, SEND_CQ, (uint64_t)i);
		if (takes_receive(i))
			side_wait_ok(&p->b, RECV_CQ, 50 + (uint64_t)i);
		expect_eq(side_state(&p->b, i), state);
	}
	side_expect_none(&p->b, RECV_CQ);
}

static void ready_to_receive_answers_everything(struct pair *p)
{
	answers_in(p, IBV_QPS_RTR);
}

static void ready_to_send_answers_everything(struct pair *p)
{
	answers_in(p, IBV_QPS_RTS);
}

static void a_drained_send_queue_answers_everything(struct pair *p)
{
	answers_in(p, IBV_QPS_SQD);
}

/* Nothing succeeds, nothing is done, and the responder notices nothing. */
static void is_deaf_in(struct pair *p, enum ibv_qp_state state)
{
	bool flushed = state == IBV_QPS_ERR;

	p->conn.timeout = 12;
	p->conn.retry_cnt = 0;
	open_half(p, IBV_QPT_RC, OPS);
	side_set(&p->b, AT, 8, 7);
	side_fill(&p->a, 0, 4096, 1);
	for (int i = 0; i < OPS; i++) {
		post_receive(p, i);
		bring_to(p, i, state);
		if (flushed)
			expect_status(side_wait(&p->b, RECV_CQ),
				      IBV_WC_WR_FLUSH_ERR);
		post_op(p, i, ops[i]);
	}
	for (int i = 0; i < OPS; i++)
		expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_async(&p->b, 0), -1);
	for (int i = 0; i < OPS; i++)
		expect_eq(side_state(&p->b, i), state);
	side_check(&p->a, 0, 4096, 1);
	for (uint64_t k = 0; k < 8; k++) {
		uint8_t byte;

		side_peek(&p->b, AT + k, &byte, 1);
		expect_eq(byte, 7);
	}
}

static void reset_is_deaf(struct pair *p)
{
	is_deaf_in(p, IBV_QPS_RESET);
}

static void initialised_is_deaf(struct pair *p)
{
	is_deaf_in(p, IBV_QPS_INIT);
}

static void error_is_deaf(struct pair *p)
{
	is_deaf_in(p, IBV_QPS_ERR);
}

/* ---- unreliable services ---- */

static void send_message(struct pair *p, int ah, uint64_t wr_id)
{
	struct send_req r = send_req(&p->a, IBV_WR_SEND, wr_id, 0, 100);

	r.ah = ah;
	r.remote_qpn = p->b.qpn[0];
	r.qkey = QKEY;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, wr_id); /* whatever becomes of it */
}

/* b's send queue fails by itself: the key is wrong. */
static void stop_send_queue(struct pair *p, int back)
{
	struct send_req r = send_req(&p->b, IBV_WR_SEND, 9, 0, 100);

	r.ah = back;
	r.remote_qpn = p->a.qpn[0];
	r.qkey = QKEY;
	r.sge[0].lkey ^= 0x4000;
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->b, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	expect_eq(side_state(&p->b, 0), IBV_QPS_SQE);
}

static void walk_through(struct pair *p, enum ibv_qp_type type)
{
	bool ud = type == IBV_QPT_UD;
	int ah, back;

	open_half(p, type, 1);
	ah = ud ? side_ah_to(&p->a, &p->b.gid) : 0;
	back = ud ? side_ah_to(&p->b, &p->a.gid) : 0;
	/* INIT: dropped, and the receive stays. */
	post_receive(p, 0);
	send_message(p, ah, 1);
	side_expect_none(&p->b, RECV_CQ);
	bring_to(p, 0, IBV_QPS_RTR);
	send_message(p, ah, 2);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 50).byte_len,
		  100 + (ud ? GRH : 0));
	expect_eq(side_to_rts(&p->b, 0, &p->conn, p->conn.psn_b), 0);
	post_receive(p, 0);
	stop_send_queue(p, back);
	send_message(p, ah, 3);
	side_wait_ok(&p->b, RECV_CQ, 50);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_RTS), 0);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_SQD), 0);
	post_receive(p, 0);
	send_message(p, ah, 4);
	side_wait_ok(&p->b, RECV_CQ, 50);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_ERR), 0);
	send_message(p, ah, 5);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_RESET), 0);
	send_message(p, ah, 6);
	side_expect_none(&p->b, RECV_CQ);
	side_expect_none(&p->b, SEND_CQ);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
}

static void datagrams_are_taken_from_ready_to_receive_on(struct pair *p)
{
	walk_through(p, IBV_QPT_UD);
}

static void unreliable_messages_are_taken_from_ready_to_receive_on(struct pair *p)
{
	walk_through(p, IBV_QPT_UC);
}

/* ---- who else may not ---- */

static void a_queue_pair_receives_only_from_the_one_it_is_connected_to(struct pair *p)
{
	static const struct side_options opt = { .send_wr = 4 };
	struct send_req r;

	p->conn.timeout = 12;
	p->conn.retry_cnt = 0;
	pair_start(p, NULL);
	side_recv(&p->b, 1, 0, ROOM);
	/* A second one of a's calls the same responder. */
	expect_eq(side_qp_create(&p->a, &opt), 1);
	expect_eq(side_to_init(&p->a, 1, 0), 0);
	expect_eq(side_to_rtr(&p->a, 1, &p->conn, &p->b.gid, p->b.qpn[0],
			      p->conn.psn_b), 0);
	expect_eq(side_to_rts(&p->a, 1, &p->conn, p->conn.psn_a), 0);
	r = send_req(&p->a, IBV_WR_SEND, 2, 0, 8);
	expect_eq(side_post_send(&p->a, 1, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	side_send(&p->a, 3, 0, 8);
	side_wait_ok(&p->a, SEND_CQ, 3);
	side_wait_ok(&p->b, RECV_CQ, 1);
}

/* From a queue pair of one service to one of another. */
static void across(struct pair *p, enum ibv_qp_type from, enum ibv_qp_type to,
		   enum ibv_wr_opcode op)
{
	const struct side_options opt_a = { .type = from }, opt_b = { .type = to };
	struct send_req r;
	uint8_t byte;

	side_open(&p->a, &opt_a);
	side_open(&p->b, &opt_b);
	pair_connect_qp(p, 0);
	side_recv(&p->b, 1, 0, ROOM);
	side_set(&p->b, AT, 8, 7);
	side_set(&p->a, 0, 8, 9);
	r = rdma_req(&p->a, &p->b, op, 2, 0, AT, 8);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_eq(side_wait(&p->a, SEND_CQ).status,
		  from == IBV_QPT_RC ? IBV_WC_RETRY_EXC_ERR : IBV_WC_SUCCESS);
	side_expect_none(&p->b, RECV_CQ);
	side_peek(&p->b, AT, &byte, 1);
	expect_eq(byte, 7);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	expect_eq(side_async(&p->b, 0), -1);
	side_close(&p->a);
	side_close(&p->b);
}

static void messages_of_another_service_are_not_received(struct pair *p)
{
	p->conn.timeout = 12;
	p->conn.retry_cnt = 0;
	p->conn.access_a = p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	for (int op = 0; op < 3; op++) {
		across(p, IBV_QPT_RC, IBV_QPT_UC, ops[op]);
		across(p, IBV_QPT_UC, IBV_QPT_RC, ops[op]);
	}
}

static const struct test_case cases[] = {
	RULE("IBTA 10.3.1.1", reset_is_deaf),
	RULE("IBTA 10.3.1.2", initialised_is_deaf),
	RULE("IBTA 10.3.1.3", ready_to_receive_answers_everything),
	RULE("IBTA 10.3.1.4", ready_to_send_answers_everything),
	RULE("IBTA 10.3.1.5", a_drained_send_queue_answers_everything),
	RULE("IBTA 10.3.1.7", error_is_deaf),
	RULE("IBTA 10.3.1", datagrams_are_taken_from_ready_to_receive_on),
	RULE("IBTA 10.3.1",
	     unreliable_messages_are_taken_from_ready_to_receive_on),
	RULE("IBTA 9.6.1", a_queue_pair_receives_only_from_the_one_it_is_connected_to),
	RULE("IBTA 9.6.1", messages_of_another_service_are_not_received),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
