/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Attributes of queue pairs: what creating and modifying refuse, and what the
 * attributes do (ibv_create_qp(3), ibv_modify_qp(3); InfiniBand specification
 * volume 1, 11.2.5). Which transition takes which attribute is in states.c.
 */
#include <errno.h>
#include <string.h>

#include "pair.h"

enum { BIT_INIT = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
		  IBV_QP_ACCESS_FLAGS };

/* ---- READ and ATOMIC resources ---- */

/* A connection with this depth at the initiator (a) and responder (b). */
static void start_depth(struct pair *p, uint8_t initiator, uint8_t responder)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.rq_psn = p->conn.psn_a, .min_rnr_timer = 1,
		.max_dest_rd_atomic = responder,
		.ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1,
			     .grh = { .hop_limit = 64 } },
	};
	const unsigned access = IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_WRITE |
				IBV_ACCESS_REMOTE_ATOMIC;
	struct side_options opt = { .mr_access = (int)access |
						 IBV_ACCESS_LOCAL_WRITE };

	need_no_rnic("the ends of a stream agree on depths");
	pair_open(p, &opt);
	expect_eq(side_to_init(&p->a, 0, access), 0);
	expect_eq(side_to_init(&p->b, 0, access), 0);
	attr.ah_attr.grh.dgid = p->a.gid;
	attr.dest_qp_num = p->a.qpn[0];
	expect_eq(side_modify(&p->b, 0, &attr,
			      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
				      IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
				      IBV_QP_MAX_DEST_RD_ATOMIC |
				      IBV_QP_MIN_RNR_TIMER), 0);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, p->b.qpn[0],
			      p->conn.psn_b), 0);
	attr = (struct ibv_qp_attr){
		.qp_state = IBV_QPS_RTS, .sq_psn = p->conn.psn_a,
		.timeout = p->conn.timeout, .retry_cnt = 7, .rnr_retry = 7,
		.max_rd_atomic = initiator,
	};
	expect_eq(side_modify(&p->a, 0, &attr,
			      IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
				      IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				      IBV_QP_MAX_QP_RD_ATOMIC), 0);
	expect_eq(side_to_rts(&p->b, 0, &p->conn, p->conn.psn_b), 0);
}

static const enum ibv_wr_opcode fetching[] = { IBV_WR_RDMA_READ,
					       IBV_WR_ATOMIC_FETCH_AND_ADD,
					       IBV_WR_ATOMIC_CMP_AND_SWP };

static struct send_req fetch(struct pair *p, enum ibv_wr_opcode opcode)
{
	return rdma_req(&p->a, &p->b, opcode, 5, 0, 64, 8);
}

static void refused_by_responder(struct pair *p, enum ibv_wr_opcode opcode)
{
	struct send_req r;

	start_depth(p, 4, 0);
	/* A WRITE needs none of it. */
	r = fetch(p, IBV_WR_RDMA_WRITE);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 5);
	r = fetch(p, opcode);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_INV_REQ_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_REQ_ERR);
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
}

static void a_responder_without_resources_refuses_read(struct pair *p)
{
	refused_by_responder(p, fetching[0]);
}

static void a_responder_without_resources_refuses_fetch_and_add(struct pair *p)
{
	refused_by_responder(p, fetching[1]);
}

static void a_responder_without_resources_refuses_compare_and_swap(struct pair *p)
{
	refused_by_responder(p, fetching[2]);
}

/* All four leave together, and the first two are answered behind the last one. */
static void a_responder_refuses_more_than_it_has_resources_for(struct pair *p)
{
	struct send_req r[4];
	struct ibv_wc wc;
	unsigned good = 0;

	start_depth(p, 4, 2);
	for (uint64_t i = 0; i < 4; i++)
		r[i] = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, i, 0, 4096, 4096);
	expect_eq(side_post_send(&p->a, 0, r, 4).ret, 0);
	while ((wc = side_wait(&p->a, SEND_CQ)).status == IBV_WC_SUCCESS)
		good++;
	expect(good <= 2);
	expect_eq(wc.wr_id, good);
	expect_status(wc, IBV_WC_REM_INV_REQ_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_REQ_ERR);
}

static void refused_by_initiator(struct pair *p, enum ibv_wr_opcode opcode)
{
	struct send_req r;

	start_depth(p, 0, 4);
	side_recv(&p->b, 1, 0, 100);
	side_send(&p->a, 1, 0, 100);
	r = fetch(p, opcode);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_send(&p->a, 6, 0, 100);
	side_wait_ok(&p->a, SEND_CQ, 1); /* in order */
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_QP_OP_ERR);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	/* The responder has not noticed. */
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	expect_eq(side_async(&p->b, 0), -1);
}

static void an_initiator_without_depth_cannot_read(struct pair *p)
{
	refused_by_initiator(p, fetching[0]);
}

static void an_initiator_without_depth_cannot_do_atomics(struct pair *p)
{
	refused_by_initiator(p, fetching[1]);
}

static void a_depth_of_one_is_enough_for_many(struct pair *p)
{
	struct send_req r[8];

	start_depth(p, 1, 1);
	side_set(&p->b, 64, 8, 0);
	for (int i = 0; i < 8; i++) {
		r[i] = fetch(p, fetching[i % 2]);
		r[i].compare_add = 1;
	}
	expect_eq(side_post_send(&p->a, 0, r, 8).ret, 0);
	for (int i = 0; i < 8; i++)
		side_wait_ok(&p->a, SEND_CQ, 5);
}

/* ---- communication established ---- */

/* b stays in RTR. The numbers of a's messages begin `ahead` of what b expects. */
static void start_half_ahead(struct pair *p, const struct side_options *opt, uint32_t ahead)
{
	pair_open(p, opt);
	expect_eq(side_to_init(&p->a, 0, p->conn.access_a), 0);
	expect_eq(side_to_init(&p->b, 0, p->conn.access_b), 0);
	expect_eq(side_to_rtr(&p->a, 0, &p->conn, &p->b.gid, p->b.qpn[0],
			      p->conn.psn_b), 0);
	expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid, p->a.qpn[0],
			      p->conn.psn_a), 0);
	expect_eq(side_to_rts(&p->a, 0, &p->conn, p->conn.psn_a + ahead), 0);
}

static void start_half(struct pair *p, const struct side_options *opt)
{
	start_half_ahead(p, opt, 0);
}

static void a_message_that_is_not_accepted_is_no_news(struct pair *p)
{
	pair_end_soon(p, 8, 1);
	start_half_ahead(p, NULL, 5);
	side_recv(&p->b, 1, 0, 100);
	side_send(&p->a, 1, 0, 10);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_RETRY_EXC_ERR);
	expect_eq(side_async(&p->b, QUIET_MS), -1);
}

static void the_first_message_in_rtr_is_reported(struct pair *p)
{
	start_half(p, NULL);
	for (uint64_t i = 0; i < 3; i++) {
		side_recv(&p->b, i, 0, 100);
		side_send(&p->a, i, 0, 10);
		side_wait_ok(&p->b, RECV_CQ, i);
		side_wait_ok(&p->a, SEND_CQ, i);
		/* Once. */
		expect_eq(side_async(&p->b, i ? 0 : WAIT_MS),
			  i ? -1 : (int)IBV_EVENT_COMM_EST);
	}
	expect_eq(side_to_rts(&p->b, 0, &p->conn, p->conn.psn_b), 0);
	side_recv(&p->b, 9, 0, 100);
	side_send(&p->a, 9, 0, 10);
	side_wait_ok(&p->b, RECV_CQ, 9);
	expect_eq(side_async(&p->b, QUIET_MS), -1);
}

static void a_message_in_rts_is_no_news(struct pair *p)
{
	pair_start(p, NULL);
	side_recv(&p->b, 1, 0, 100);
	side_send(&p->a, 1, 0, 10);
	side_wait_ok(&p->b, RECV_CQ, 1);
	expect_eq(side_async(&p->b, QUIET_MS), -1);
}

static void each_connection_is_reported_anew(struct pair *p)
{
	const struct side_options uc = { .type = IBV_QPT_UC };

	start_half(p, &uc);
	for (int round = 0; round < 2; round++) {
		side_recv(&p->b, 1, 0, 100);
		side_send(&p->a, 1, 0, 10);
		side_wait_ok(&p->b, RECV_CQ, 1);
		side_wait_ok(&p->a, SEND_CQ, 1);
		expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_COMM_EST);
		if (round)
			break;
		expect_eq(side_to_state(&p->b, 0, IBV_QPS_RESET), 0);
		expect_eq(side_to_init(&p->b, 0, p->conn.access_b), 0);
		expect_eq(side_to_rtr(&p->b, 0, &p->conn, &p->a.gid,
				      p->a.qpn[0], p->conn.psn_a), 0);
	}
}

/* ---- overrun ---- */

static void queue_pairs_of_an_overrun_queue_fail(struct pair *p)
{
	const struct side_options opt = { .cqe = 1 };
	int index;

	pair_start(p, &opt);
	index = side_qp_create(&p->b, NULL); /* a bystander on the same queues */
	expect_eq(side_to_init(&p->b, index, 0), 0);
	for (uint64_t i = 0; i < 8; i++)
		side_recv(&p->b, i, 0, 10);
	for (uint64_t i = 0; i < 8; i++) {
		side_send(&p->a, i, 0, 10);
		if (i < 3)
			side_wait_ok(&p->a, SEND_CQ, i);
		else if (transport_under_test()->streams)
			/* Or this side's queue is overrun, too, and ends the stream. */
			side_wait(&p->a, SEND_CQ);
	}
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_CQ_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_FATAL);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_FATAL);
	expect_eq(side_async(&p->b, QUIET_MS), -1);
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
	expect_eq(side_state(&p->b, index), IBV_QPS_ERR);
}

/* ---- what modifying refuses ---- */

static struct ibv_qp_attr init_attr(void)
{
	return (struct ibv_qp_attr){
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
	};
}

static void unknown_access_flags_are_refused(struct pair *p)
{
	struct ibv_qp_attr a = init_attr();

	side_open(&p->a, NULL);
	a.qp_access_flags |= 1u << 15;
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT), EINVAL);
	a.qp_access_flags = 1u << 31;
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT), EINVAL);
	a.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			    IBV_ACCESS_RELAXED_ORDERING;
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT), 0);
}

static void a_refused_change_changes_nothing(struct pair *p)
{
	struct ibv_qp_attr a = init_attr(), q;

	side_open(&p->a, NULL);
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT), 0);
	/* The first is good, the second is not. */
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	a.port_num = 3;
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT), EINVAL);
	a = init_attr();
	a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT | IBV_QP_QKEY), EINVAL);
	side_query(&p->a, 0, &q, NULL);
	expect_eq(q.qp_state, IBV_QPS_INIT);
	expect_eq(q.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	expect_eq(q.port_num, 1);
}

static void states_that_do_not_exist_are_refused(struct pair *p)
{
	struct ibv_qp_attr a = init_attr();

	side_open(&p->a, NULL);
	a.qp_state = IBV_QPS_UNKNOWN;
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT), EINVAL);
	a.qp_state = IBV_QPS_SQE;
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT), EINVAL);
	a = init_attr();
	a.cur_qp_state = IBV_QPS_UNKNOWN;
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT | IBV_QP_CUR_STATE),
		  EINVAL);
	expect_eq(side_modify(&p->a, 0, &a, BIT_INIT | 1 << 30), EINVAL);
	expect_eq(side_state(&p->a, 0), IBV_QPS_RESET);
}

#define NO_PATHS "its queue pairs have no attributes of paths"

static void there_is_no_alternate_path(struct pair *p)
{
	struct ibv_device_attr dev;
	struct ibv_qp_attr a = {
		.alt_port_num = 1,
		.alt_ah_attr = { .is_global = 1, .port_num = 1 },
	};

	need_no_rnic(NO_PATHS);
	pair_start(p, NULL);
	expect_eq(ibv_query_device(p->a.end->ctx, &dev), 0);
	expect(!(dev.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG));
	a.alt_ah_attr.grh.dgid = p->b.gid;
	expect_eq(side_modify(&p->a, 0, &a, IBV_QP_ALT_PATH), EOPNOTSUPP);
	a.path_mig_state = IBV_MIG_REARM;
	expect_eq(side_modify(&p->a, 0, &a, IBV_QP_PATH_MIG_STATE), EOPNOTSUPP);
	a.path_mig_state = IBV_MIG_ARMED;
	expect_eq(side_modify(&p->a, 0, &a, IBV_QP_PATH_MIG_STATE), EOPNOTSUPP);
	a.path_mig_state = 9;
	expect_eq(side_modify(&p->a, 0, &a, IBV_QP_PATH_MIG_STATE), EINVAL);
	a.path_mig_state = IBV_MIG_MIGRATED;
	expect_eq(side_modify(&p->a, 0, &a, IBV_QP_PATH_MIG_STATE), 0);
	side_query(&p->a, 0, &a, NULL);
	expect_eq(a.path_mig_state, IBV_MIG_MIGRATED);
}

static void queues_are_not_resized(struct pair *p)
{
	struct ibv_device_attr dev;
	struct ibv_qp_attr a = { .cap = { 1, 1, 1, 1, 0 }, .rate_limit = 5 };

	pair_start(p, NULL);
	expect_eq(ibv_query_device(p->a.end->ctx, &dev), 0);
	expect(!(dev.device_cap_flags & IBV_DEVICE_RESIZE_MAX_WR));
	expect_eq(side_modify(&p->a, 0, &a, IBV_QP_CAP), EINVAL);
	expect_eq(side_modify(&p->a, 0, &a, IBV_QP_RATE_LIMIT), EINVAL);
}

static void service_levels_beyond_fifteen_are_refused(struct pair *p)
{
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.ah_attr = { .is_global = 1, .dlid = 1, .port_num = 1, .sl = 16 },
	};
	const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;

	need_no_rnic(NO_PATHS);
	side_open(&p->a, NULL);
	expect_eq(side_to_init(&p->a, 0, 0), 0);
	a.dest_qp_num = p->a.qpn[0];
	a.ah_attr.grh.dgid = p->a.gid;
	expect_eq(side_modify(&p->a, 0, &a, mask), EINVAL);
	errno = 0;
	expect(!ibv_create_ah(p->a.end->pd, &a.ah_attr));
	expect_eq(errno, EINVAL);
	a.ah_attr.sl = 15;
	expect_eq(side_modify(&p->a, 0, &a, mask), 0);
	side_query(&p->a, 0, &a, NULL);
	expect_eq(a.ah_attr.sl, 15);
}

/* ---- creation ---- */

static void what_is_granted_is_at_least_what_was_asked_for(struct pair *p)
{
	static const struct ibv_qp_cap asked[] = {
		{ 0, 0, 0, 0, 0 },   { 1, 0, 1, 0, 0 },	   { 0, 1, 0, 1, 0 },
		{ 7, 9, 3, 5, 100 }, { 32, 32, 32, 32, 1024 },
	};
	struct end *e = p->a.end;

	side_open(&p->a, NULL);
	for (unsigned i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = IBV_QPT_RC, .send_cq = e->cq[0],
			.recv_cq = e->cq[1], .cap = asked[i],
		};
		struct ibv_qp *qp = ibv_create_qp(e->pd, &init);
		struct ibv_qp_init_attr q;
		struct ibv_qp_attr a;

		expect(qp);
		expect(init.cap.max_send_wr >= asked[i].max_send_wr);
		expect(init.cap.max_recv_wr >= asked[i].max_recv_wr);
		expect(init.cap.max_send_sge >= asked[i].max_send_sge);
		expect(init.cap.max_recv_sge >= asked[i].max_recv_sge);
		expect(init.cap.max_inline_data >= asked[i].max_inline_data);
		expect_eq(ibv_query_qp(qp, &a, IBV_QP_CAP, &q), 0);
		expect(!memcmp(&a.cap, &init.cap, sizeof(a.cap)));
		expect(!memcmp(&q.cap, &init.cap, sizeof(a.cap)));
		expect_eq(ibv_destroy_qp(qp), 0);
	}
}

static void a_refused_creation_leaves_the_request_alone(struct pair *p)
{
	struct end *e = p->a.end;
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 5, .max_send_sge = 1000 },
	};

	side_open(&p->a, NULL);
	init.send_cq = e->cq[0];
	init.recv_cq = e->cq[1];
	expect(!ibv_create_qp(e->pd, &init));
	expect_eq(init.cap.max_send_wr, 5);
	expect_eq(init.cap.max_inline_data, 0);
}

static void extended_creation_refuses_what_is_not_offered(struct pair *p)
{
	struct end *e = p->a.end;
	struct ibv_qp_init_attr_ex good = {
		.qp_type = IBV_QPT_RC,
		.cap = { 1, 1, 1, 1, 0 },
		.comp_mask = IBV_QP_INIT_ATTR_PD,
	};
	struct ibv_qp_init_attr_ex a;

	side_open(&p->a, NULL);
	good.send_cq = e->cq[0];
	good.recv_cq = e->cq[1];
	good.pd = e->pd;
#define REFUSED(error, ...)                                \
	do {                                               \
		a = good;                                  \
		__VA_ARGS__;                               \
		errno = 0;                                 \
		expect(!ibv_create_qp_ex(e->ctx, &a));     \
		expect_eq(errno, error);                   \
	} while (0)
	REFUSED(EINVAL, a.comp_mask = 0);
	REFUSED(EINVAL, a.pd = NULL);
	/* Services that there are not, and those of other adapters. */
	REFUSED(EINVAL, a.qp_type = (enum ibv_qp_type)0);
	REFUSED(EINVAL, a.qp_type = (enum ibv_qp_type)(IBV_QPT_UD + 1));
	REFUSED(EINVAL, a.qp_type = (enum ibv_qp_type)99);
	REFUSED(EOPNOTSUPP, a.qp_type = IBV_QPT_DRIVER);
	REFUSED(EINVAL, a.comp_mask |= 1u << 20);
	REFUSED(EOPNOTSUPP, a.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER);
	REFUSED(EOPNOTSUPP, a.comp_mask |= IBV_QP_INIT_ATTR_IND_TABLE);
	REFUSED(EOPNOTSUPP, a.comp_mask |= IBV_QP_INIT_ATTR_RX_HASH);
	REFUSED(EOPNOTSUPP, a.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS,
		a.create_flags = IBV_QP_CREATE_SOURCE_QPN);
	REFUSED(EOPNOTSUPP, a.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS,
		a.create_flags = IBV_QP_CREATE_SCATTER_FCS);
	REFUSED(EINVAL, a.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS,
		a.create_flags = 1 << 3);
	REFUSED(EOPNOTSUPP, a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		a.send_ops_flags = IBV_QP_EX_WITH_TSO);
	REFUSED(EOPNOTSUPP, a.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		a.qp_type = IBV_QPT_UD,
		a.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE);
	/* Flags that ask for nothing. */
	a = good;
	a.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
	expect_eq(ibv_destroy_qp(ibv_create_qp_ex(e->ctx, &a)), 0);
}

static void a_shared_receive_queue_is_for_rc_and_ud(struct pair *p)
{
	static const struct {
		enum ibv_qp_type type;
		bool good;
	} types[] = { { IBV_QPT_RC, true }, { IBV_QPT_UD, true },
		      { IBV_QPT_UC, false } };
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct end *e = p->a.end;
	struct ibv_srq *srq;

	side_open(&p->a, NULL);
	srq = ibv_create_srq(e->pd, &attr);
	expect(srq);
	for (int i = 0; i < (transport_under_test()->streams ? 1 : 3); i++) {
		struct ibv_qp_init_attr init = {
			.qp_type = types[i].type, .srq = srq,
			.send_cq = e->cq[0], .recv_cq = e->cq[1],
			/* Not looked at. */
			.cap = { .max_send_wr = 1, .max_send_sge = 1,
				 .max_recv_wr = UINT32_MAX,
				 .max_recv_sge = UINT32_MAX },
		};
		struct ibv_qp *qp = ibv_create_qp(e->pd, &init);

		expect(!qp == !types[i].good);
		if (qp)
			expect_eq(ibv_destroy_qp(qp), 0);
		else
			expect_eq(errno, EINVAL);
	}
	expect_eq(ibv_destroy_srq(srq), 0);
}

static void nobody_promises_the_order_of_bytes(struct pair *p)
{
	side_open(&p->a, NULL);
	expect_eq(ibv_query_qp_data_in_order(p->a.end->qp[0], IBV_WR_RDMA_WRITE,
					     0), 0);
}

static void features_of_other_adapters_are_refused(struct pair *p)
{
	struct ibv_counters_init_attr counters = { .comp_mask = 0 };
	struct ibv_wq_init_attr wq = { .wq_type = IBV_WQT_RQ, .max_wr = 1,
				       .max_sge = 1 };
	struct ibv_flow_attr flow = { .type = IBV_FLOW_ATTR_NORMAL,
				      .size = sizeof(flow), .port = 1 };
	struct ibv_qp_rate_limit_attr rate = { .rate_limit = 1 };
	struct ibv_ece ece;
	struct end *e = p->a.end;

	side_open(&p->a, NULL);
#define ABSENT(call)                             \
	do {                                     \
		errno = 0;                       \
		expect(!(call));                 \
		expect_eq(errno, EOPNOTSUPP);    \
	} while (0)
	wq.pd = e->pd;
	wq.cq = e->cq[0];
	ABSENT(ibv_create_counters(e->ctx, &counters));
	ABSENT(ibv_create_wq(e->ctx, &wq));
	ABSENT(ibv_create_flow(e->qp[0], &flow));
	expect_eq(ibv_modify_qp_rate_limit(e->qp[0], &rate), EOPNOTSUPP);
	expect_eq(ibv_query_ece(e->qp[0], &ece), EOPNOTSUPP);
}

#define CREATE "ibv_create_qp(3)"
#define MODIFY "ibv_modify_qp(3)"
static const struct test_case cases[] = {
	RULE("IBTA 9.7.4.1", a_responder_without_resources_refuses_read),
	RULE("IBTA 9.7.4.1",
	     a_responder_refuses_more_than_it_has_resources_for),
	RULE("IBTA 9.7.4.1",
	     a_responder_without_resources_refuses_fetch_and_add),
	RULE("IBTA 9.7.4.1",
	     a_responder_without_resources_refuses_compare_and_swap),
	RULE("IBTA 11.2.5.2", an_initiator_without_depth_cannot_read),
	RULE("IBTA 11.2.5.2", an_initiator_without_depth_cannot_do_atomics),
	RULE("IBTA 11.2.5.2", a_depth_of_one_is_enough_for_many),
	RULE("IBTA 11.6.3.1", the_first_message_in_rtr_is_reported),
	CASE(a_message_that_is_not_accepted_is_no_news),
	RULE("IBTA 11.6.3.1", a_message_in_rts_is_no_news),
	RULE("IBTA 11.6.3.1", each_connection_is_reported_anew),
	RULE("IBTA 11.6.3.2", queue_pairs_of_an_overrun_queue_fail),
	RULE_IN(ONLY_ONE_PROCESS, MODIFY, unknown_access_flags_are_refused),
	RULE_IN(ONLY_ONE_PROCESS, MODIFY, a_refused_change_changes_nothing),
	RULE_IN(ONLY_ONE_PROCESS, MODIFY, states_that_do_not_exist_are_refused),
	RULE_IN(ONLY_ONE_PROCESS, MODIFY, there_is_no_alternate_path),
	RULE_IN(ONLY_ONE_PROCESS, MODIFY, queues_are_not_resized),
	RULE_IN(ONLY_ONE_PROCESS, MODIFY,
		service_levels_beyond_fifteen_are_refused),
	RULE_IN(ONLY_ONE_PROCESS, CREATE,
		what_is_granted_is_at_least_what_was_asked_for),
	RULE_IN(ONLY_ONE_PROCESS, CREATE,
		a_refused_creation_leaves_the_request_alone),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_create_qp_ex(3)",
		extended_creation_refuses_what_is_not_offered),
	RULE_IN(ONLY_ONE_PROCESS, CREATE,
		a_shared_receive_queue_is_for_rc_and_ud),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_qp_data_in_order(3)",
		nobody_promises_the_order_of_bytes),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_create_counters(3)",
		features_of_other_adapters_are_refused),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
