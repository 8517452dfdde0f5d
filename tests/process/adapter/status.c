/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every completion status that the offered services can give (InfiniBand
 * specification volume 1, 11.6.2): at the side to which it belongs, in its place
 * in the queue, and what becomes of the queue pairs and of the work around it.
 * Those that cannot occur are named in docs/conformance.md. Causes in detail are
 * in protection.c, retry.c, ud.c and uc.c.
 *
 * Each scene is the same: work that succeeds, a request that fails although it
 * is not signaled, and work behind it.
 */
#include "pair.h"

enum {
	FAILS = 2,    /* wr_id of the request that fails */
	LAST = 4,
	RECEIVES = 20, /* of the receiver; the third is the failing one's */
	THIRD = 22,
	OWN_RECEIVES = 30, /* of the sender */
	QKEY = 0x11111111,
	ROOM = 1024,
	GRH = 40,
};

struct scene {
	struct send_req fails;
	struct recv_req third;
	enum ibv_wc_status at_sender;
	/* Of the third receive; SUCCESS: the receiver notices nothing,
	 * WR_FLUSH_ERR: it is told by an event, and all receives are flushed. */
	enum ibv_wc_status at_receiver;
	enum ibv_event_type event;
	bool two_receives; /* there is no third, nor any behind it */
};

static struct recv_req receive(const struct side *s, uint64_t wr_id)
{
	return (struct recv_req){ .wr_id = wr_id, .num_sge = 1,
				  .sge = { side_sge(s, 0, ROOM) } };
}

static struct send_req good_send(struct pair *p, uint64_t wr_id, int ah)
{
	struct send_req r = send_req(&p->a, IBV_WR_SEND, wr_id, 0, 100);

	r.ah = ah;
	r.remote_qpn = p->b.qpn[0];
	r.qkey = QKEY;
	return r;
}

static void post_receives(struct pair *p, const struct scene *s)
{
	struct recv_req r[4];

	for (uint64_t i = 0; i < 4; i++)
		r[i] = receive(&p->b, RECEIVES + i);
	if (s->third.num_sge)
		r[2] = s->third;
	r[2].wr_id = THIRD;
	expect_eq(side_post_recv(&p->b, 0, r, s->two_receives ? 2 : 4).ret, 0);
	for (uint64_t i = 0; i < 2; i++)
		side_recv(&p->a, OWN_RECEIVES + i, 2048, ROOM);
}

static void post_sends(struct pair *p, const struct scene *s, int ah)
{
	struct send_req r[LAST + 1];

	for (uint64_t i = 0; i <= LAST; i++)
		r[i] = good_send(p, i, ah);
	r[FAILS] = s->fails;
	r[FAILS].wr_id = FAILS;
	/* Errors and flushes complete all the same. */
	r[1].flags = r[FAILS].flags = r[LAST].flags = 0;
	expect_eq(side_post_send(&p->a, 0, r, LAST + 1).ret, 0);
}

static void expect_flush(struct side *s, enum side_cq cq, uint64_t wr_id)
{
	struct ibv_wc wc = side_wait(s, cq);

	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, wr_id);
	expect_eq(wc.qp_num, s->qpn[0]);
}

static void expect_failure(struct side *s, enum side_cq cq, uint64_t wr_id,
			   enum ibv_wc_status status)
{
	struct ibv_wc wc = side_wait(s, cq);

	if (wc.status != status)
		fail("'%s' instead of '%s'", ibv_wc_status_str(wc.status),
		     ibv_wc_status_str(status));
	expect_eq(wc.wr_id, wr_id);
	expect_eq(wc.qp_num, s->qpn[0]);
}

/* What the sender sees of it when its queue pair fails. */
static void expect_at_sender(struct pair *p, const struct scene *s,
			     uint64_t first_good)
{
	for (uint64_t i = first_good; i < FAILS; i += 2)
		side_wait_ok(&p->a, SEND_CQ, i);
	expect_failure(&p->a, SEND_CQ, FAILS, s->at_sender);
	for (uint64_t i = FAILS + 1; i <= LAST; i++)
		expect_flush(&p->a, SEND_CQ, i);
	side_expect_none(&p->a, SEND_CQ);
}

static void expect_at_receiver(struct pair *p, const struct scene *s)
{
	for (uint64_t i = RECEIVES; i < THIRD; i++)
		side_wait_ok(&p->b, RECV_CQ, i);
	if (s->at_receiver == IBV_WC_SUCCESS) {
		expect_eq(side_poll(&p->b, RECV_CQ, 1, QUIET_MS).count, 0);
		expect_eq(side_async(&p->b, 0), -1);
		expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
		return;
	}
	expect_failure(&p->b, RECV_CQ, THIRD, s->at_receiver);
	expect_flush(&p->b, RECV_CQ, THIRD + 1);
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
	if (s->at_receiver == IBV_WC_WR_FLUSH_ERR)
		expect_eq(side_async(&p->b, WAIT_MS), s->event);
	expect_eq(side_async(&p->b, 0), -1);
}

/* ---- reliable connections ---- */

static void play(struct pair *p, const struct scene *s)
{
	post_receives(p, s);
	post_sends(p, s, 0);
	expect_at_sender(p, s, 0);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	for (uint64_t i = 0; i < 2; i++)
		expect_flush(&p->a, RECV_CQ, OWN_RECEIVES + i);
	expect_at_receiver(p, s);
	/* The peer's TERMINATE is an event, too. */
	if (transport_under_test()->streams && s->at_sender == IBV_WC_REM_ACCESS_ERR)
		expect_eq(side_async(&p->a, WAIT_MS), IBV_EVENT_QP_FATAL);
	expect_eq(side_async(&p->a, 0), -1);
}

static void local_protection_error_at_the_sender(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_LOC_PROT_ERR };

	/* A message that has begun cannot be left out of a stream: the peer gets a TERMINATE. */
	if (transport_under_test()->streams) {
		s.at_receiver = IBV_WC_WR_FLUSH_ERR;
		s.event = IBV_EVENT_QP_FATAL;
	}
	pair_start(p, NULL);
	s.fails = good_send(p, FAILS, 0);
	s.fails.sge[0].lkey ^= 0x4000;
	play(p, &s);
}

static void local_queue_pair_operation_error_of_a_read_without_depth(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_LOC_QP_OP_ERR };
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .sq_psn = p->conn.psn_a,
		.timeout = 14, .retry_cnt = 7, .rnr_retry = 7,
	};

	pair_open(p, NULL);
	expect_eq(side_to_init(&p->a, 0, 0), 0);
	expect_eq(side_to_init(&p->b, 0, IBV_ACCESS_REMOTE_READ), 0);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, p->b.qpn[0],
			      p->conn.psn_b), 0);
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid, p->a.qpn[0],
			      p->conn.psn_a), 0);
	expect_eq(side_modify(&p->a, 0, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC), 0);
	expect_eq(side_to_rts(&p->b, 0, &p->conn, p->conn.psn_b), 0);
	s.fails = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, FAILS, 0, 0, 8);
	play(p, &s);
}

static void local_length_error_at_the_receiver_invalid_request_at_the_sender(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_REM_INV_REQ_ERR,
			   .at_receiver = IBV_WC_LOC_LEN_ERR };

	need_arrival();
	pair_start(p, NULL);
	s.fails = good_send(p, FAILS, 0);
	s.third = receive(&p->b, THIRD);
	s.third.sge[0].length = 99;
	play(p, &s);
}

static void local_protection_error_at_the_receiver_remote_operation_error_at_the_sender(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_REM_OP_ERR,
			   .at_receiver = IBV_WC_LOC_PROT_ERR };

	need_arrival();
	pair_start(p, NULL);
	s.fails = good_send(p, FAILS, 0);
	s.third = receive(&p->b, THIRD);
	s.third.sge[0].lkey ^= 0x4000;
	play(p, &s);
}

static void remote_invalid_request_error_and_event(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_REM_INV_REQ_ERR,
			   .at_receiver = IBV_WC_WR_FLUSH_ERR,
			   .event = IBV_EVENT_QP_REQ_ERR };

	need_arrival();
	p->conn.access_b = IBV_ACCESS_REMOTE_READ;
	pair_start(p, NULL);
	s.fails = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, FAILS, 0, 4096, 8);
	play(p, &s);
}

static void remote_access_error_and_event(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM
	};
	struct scene s = { .at_sender = IBV_WC_REM_ACCESS_ERR,
			   .at_receiver = IBV_WC_WR_FLUSH_ERR,
			   .event = IBV_EVENT_QP_ACCESS_ERR };

	pair_start(p, NULL);
	for (unsigned i = 0; i < 3; i++) {
		/* Of a stream, those alone that complete by an answer. */
		if (transport_under_test()->streams && ops[i] != IBV_WR_RDMA_READ)
			continue;
		s.fails = rdma_req(&p->a, &p->b, ops[i], FAILS, 0, 4096, 8);
		s.fails.rkey ^= 0x4000;
		play(p, &s);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

static void receiver_not_ready_retries_exceeded(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_RNR_RETRY_EXC_ERR,
			   .two_receives = true };

	need_rnr();
	p->conn.rnr_retry = 2;
	pair_start(p, NULL);
	s.fails = good_send(p, FAILS, 0);
	play(p, &s);
}

static void transport_retries_exceeded(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_RETRY_EXC_ERR };
	struct send_req r[2];

	need_no_rnic("a reset ends the stream, which the peer sees at once");
	pair_end_soon(p, 12, 1);
	pair_start(p, NULL);
	post_receives(p, &s);
	for (uint64_t i = 0; i < 2; i++)
		r[i] = good_send(p, i, 0);
	expect_eq(side_post_send(&p->a, 0, r, 2).ret, 0);
	for (uint64_t i = 0; i < 2; i++)
		side_wait_ok(&p->b, RECV_CQ, RECEIVES + i);
	/* What was acknowledged keeps its success, although nobody polled it. */
	expect_eq(side_to_state(&p->b, 0, IBV_QPS_RESET), 0);
	for (uint64_t i = FAILS; i <= LAST; i++) {
		r[0] = good_send(p, i, 0);
		r[0].flags = 0;
		expect_eq(side_post_send(&p->a, 0, r, 1).ret, 0);
	}
	side_wait_ok(&p->a, SEND_CQ, 0);
	expect_at_sender(p, &s, 1);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	for (uint64_t i = 0; i < 2; i++)
		expect_flush(&p->a, RECV_CQ, OWN_RECEIVES + i);
}

/* ---- unreliable ones ---- */

/* Only the send queue fails; it can be taken up again. */
static void play_send_queue_error(struct pair *p, const struct scene *s, int ah,
				  int back)
{
	struct send_req r;

	post_receives(p, s);
	post_sends(p, s, ah);
	expect_at_sender(p, s, 0);
	expect_eq(side_state(&p->a, 0), IBV_QPS_SQE);
	expect_at_receiver(p, s);
	r = good_send(p, 7, ah);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_flush(&p->a, SEND_CQ, 7);
	/* Receives go on. */
	r = send_req(&p->b, IBV_WR_SEND, 8, 0, 100);
	r.ah = back;
	r.remote_qpn = p->a.qpn[0];
	r.qkey = QKEY;
	expect_eq(side_post_send(&p->b, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, RECV_CQ, OWN_RECEIVES);
	expect_eq(side_to_state(&p->a, 0, IBV_QPS_RTS), 0);
	r = good_send(p, 9, ah);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 9);
	side_wait_ok(&p->b, RECV_CQ, THIRD);
}

/* The sender learns nothing of what happens to the receiver. */
static void play_receive_error(struct pair *p, const struct scene *s, int ah)
{
	struct send_req r;

	post_receives(p, s);
	for (uint64_t i = 0; i <= LAST; i++) {
		r = i == FAILS ? s->fails : good_send(p, i, ah);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, i);
	}
	expect_at_receiver(p, s);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
}

static const struct side_options uc = { .type = IBV_QPT_UC };
static const struct side_options ud = { .type = IBV_QPT_UD };

static int start_datagrams(struct pair *p)
{
	p->conn.access_a = p->conn.access_b = QKEY;
	pair_start(p, &ud);
	return side_ah_to(&p->a, &p->b.gid);
}

static void local_protection_error_stops_an_unreliable_send_queue(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_LOC_PROT_ERR };

	pair_start(p, &uc);
	s.fails = good_send(p, FAILS, 0);
	s.fails.sge[0].lkey ^= 0x4000;
	play_send_queue_error(p, &s, 0, 0);
}

static void local_protection_error_stops_a_datagram_send_queue(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_LOC_PROT_ERR };
	int ah = start_datagrams(p);

	s.fails = good_send(p, FAILS, ah);
	s.fails.sge[0].lkey ^= 0x4000;
	play_send_queue_error(p, &s, ah, side_ah_to(&p->b, &p->a.gid));
}

static void local_length_error_of_a_datagram_of_more_than_a_packet(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_LOC_LEN_ERR };
	int ah = start_datagrams(p);

	s.fails = good_send(p, FAILS, ah);
	s.fails.sge[0].length = 4097;
	play_send_queue_error(p, &s, ah, side_ah_to(&p->b, &p->a.gid));
}

static int handle_of_another_domain(struct end *e, void *arg)
{
	struct ibv_ah_attr attr = { .is_global = 1, .dlid = 1, .port_num = 1 };

	attr.grh.dgid = *(const union ibv_gid *)arg;
	e->ah[SIDE_MRS - 1] = ibv_create_ah(e->other_pd, &attr);
	return e->ah[SIDE_MRS - 1] ? 0 : -1;
}

static void local_queue_pair_operation_error_of_a_foreign_address_handle(struct pair *p)
{
	struct scene s = { .at_sender = IBV_WC_LOC_QP_OP_ERR };
	int ah = start_datagrams(p);

	expect_eq(side_run(&p->a, handle_of_another_domain, &p->b.gid,
			   sizeof(p->b.gid)), 0);
	s.fails = good_send(p, FAILS, SIDE_MRS - 1);
	play_send_queue_error(p, &s, ah, side_ah_to(&p->b, &p->a.gid));
}

static void local_protection_error_at_an_unreliable_receiver(struct pair *p)
{
	struct scene s = { .at_receiver = IBV_WC_LOC_PROT_ERR };

	pair_start(p, &uc);
	s.fails = good_send(p, FAILS, 0);
	s.third = receive(&p->b, THIRD);
	s.third.sge[0].lkey ^= 0x4000;
	play_receive_error(p, &s, 0);
}

static void local_protection_error_at_a_datagram_receiver(struct pair *p)
{
	struct scene s = { .at_receiver = IBV_WC_LOC_PROT_ERR };
	int ah = start_datagrams(p);

	s.fails = good_send(p, FAILS, ah);
	s.third = receive(&p->b, THIRD);
	s.third.sge[0].lkey ^= 0x4000;
	play_receive_error(p, &s, ah);
}

#define STATUS "IBTA 11.6.2"

static const struct test_case cases[] = {
	RULE(STATUS, local_protection_error_at_the_sender),
	RULE(STATUS, local_queue_pair_operation_error_of_a_read_without_depth),
	RULE(STATUS,
	     local_length_error_at_the_receiver_invalid_request_at_the_sender),
	RULE(STATUS,
	     local_protection_error_at_the_receiver_remote_operation_error_at_the_sender),
	RULE(STATUS, remote_invalid_request_error_and_event),
	RULE(STATUS, remote_access_error_and_event),
	RULE(STATUS, receiver_not_ready_retries_exceeded),
	RULE(STATUS, transport_retries_exceeded),
	RULE(STATUS, local_protection_error_stops_an_unreliable_send_queue),
	RULE(STATUS, local_protection_error_stops_a_datagram_send_queue),
	RULE(STATUS, local_length_error_of_a_datagram_of_more_than_a_packet),
	RULE(STATUS,
	     local_queue_pair_operation_error_of_a_foreign_address_handle),
	RULE(STATUS, local_protection_error_at_an_unreliable_receiver),
	RULE(STATUS, local_protection_error_at_a_datagram_receiver),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
