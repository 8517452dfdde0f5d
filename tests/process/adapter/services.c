/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Each operation of each service: which are offered (the table of
 * ibv_post_send(3)), without data, inline up to the limit, solicited and not,
 * signaled and not. What memory windows and invalidation add is not in here.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "pair.h"

enum {
	INLINE = 200,
	QKEY = 0x22222222,
	GRH = 40,
	AT = 8192,   /* target of one-sided work */
	BACK = 4096, /* where READ and ATOMIC put it */
	ROOM = 2048,
};

static const struct {
	enum ibv_wr_opcode opcode;
	bool uc, ud;
	bool receive; /* takes one at the other side */
	bool imm;
	bool data; /* of the sender: may be inline and of any length */
	enum ibv_wc_opcode sent, received;
} ops[] = {
	{ IBV_WR_SEND, true, true, true, false, true, IBV_WC_SEND,
	  IBV_WC_RECV },
	{ IBV_WR_SEND_WITH_IMM, true, true, true, true, true, IBV_WC_SEND,
	  IBV_WC_RECV },
	{ IBV_WR_RDMA_WRITE, true, false, false, false, true,
	  IBV_WC_RDMA_WRITE, IBV_WC_RECV },
	{ IBV_WR_RDMA_WRITE_WITH_IMM, true, false, true, true, true,
	  IBV_WC_RDMA_WRITE, IBV_WC_RECV_RDMA_WITH_IMM },
	{ IBV_WR_RDMA_READ, false, false, false, false, false,
	  IBV_WC_RDMA_READ, IBV_WC_RECV },
	{ IBV_WR_ATOMIC_CMP_AND_SWP, false, false, false, false, false,
	  IBV_WC_COMP_SWAP, IBV_WC_RECV },
	{ IBV_WR_ATOMIC_FETCH_AND_ADD, false, false, false, false, false,
	  IBV_WC_FETCH_ADD, IBV_WC_RECV },
};
enum { OPS = sizeof(ops) / sizeof(ops[0]) };

static const enum ibv_qp_type services[] = { IBV_QPT_RC, IBV_QPT_UC,
					     IBV_QPT_UD };
enum { SERVICES = 3 };

static bool offered(enum ibv_qp_type service, int op)
{
	return service == IBV_QPT_RC ||
	       (service == IBV_QPT_UC ? ops[op].uc : ops[op].ud);
}

static bool is_atomic(int op)
{
	return ops[op].opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       ops[op].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* A pair of the service, and an address handle for it. */
static int start(struct pair *p, enum ibv_qp_type service, bool events)
{
	const struct side_options opt = {
		.type = service, .inline_bytes = INLINE, .events = events,
		.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			     IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	const unsigned access = IBV_ACCESS_REMOTE_READ |
				IBV_ACCESS_REMOTE_WRITE |
				(service == IBV_QPT_RC ?
					 (unsigned)IBV_ACCESS_REMOTE_ATOMIC : 0);

	p->conn.access_a = p->conn.access_b =
		service == IBV_QPT_UD ? QKEY : access;
	pair_start(p, &opt);
	return service == IBV_QPT_UD ?
		       side_ah_to(&p->a, p->conn.by_lid_a ? NULL : &p->b.gid) : 0;
}

/* The side that is ours is opened anew; the other one, too. */
static void stop(struct pair *p)
{
	side_close(&p->a);
	side_close(&p->b);
}

static struct send_req request(struct pair *p, int op, int ah, uint32_t length)
{
	struct send_req r = rdma_req(&p->a, &p->b, ops[op].opcode,
				     100 + (uint64_t)op,
				     ops[op].data ? 0 : BACK, AT,
				     is_atomic(op) ? 8 : length);

	r.imm = ops[op].imm ? htonl(0xbeef0000 + (unsigned)op) : 0;
	r.ah = ah;
	r.remote_qpn = p->b.qpn[0];
	r.qkey = QKEY;
	return r;
}

/* Posts it, with a receive where it takes one, and sees both completions. */
static void complete(struct pair *p, enum ibv_qp_type service, int op,
		     const struct send_req *r, uint32_t length)
{
	struct ibv_wc wc;

	if (ops[op].receive)
		side_recv(&p->b, 7, 0, ROOM);
	expect_eq(side_post_send(&p->a, 0, r, 1).ret, 0);
	if (r->flags & IBV_SEND_SIGNALED)
		expect_eq(side_wait_ok(&p->a, SEND_CQ, r->wr_id).opcode,
			  ops[op].sent);
	if (!ops[op].receive)
		return;
	wc = side_wait_ok(&p->b, RECV_CQ, 7);
	expect_eq(wc.opcode, ops[op].received);
	expect_eq(wc.byte_len, length + (service == IBV_QPT_UD ? GRH : 0));
	expect_eq(!!(wc.wc_flags & IBV_WC_WITH_IMM), ops[op].imm);
	expect_eq(!!(wc.wc_flags & IBV_WC_GRH), service == IBV_QPT_UD);
	if (ops[op].imm)
		expect_eq(wc.imm_data, r->imm);
}

static void each_service_has_its_operations_and_no_others(struct pair *p)
{
	for (int s = 0; s < SERVICES; s++) {
		int ah = start(p, services[s], false);

		for (int op = 0; op < OPS; op++) {
			struct send_req r = request(p, op, ah, 64);
			struct posted posted;

			if (offered(services[s], op)) {
				complete(p, services[s], op, &r, 64);
				continue;
			}
			posted = side_post_send(&p->a, 0, &r, 1);
			expect(posted.ret == EINVAL ||
			       posted.ret == EOPNOTSUPP);
			expect_eq(posted.bad, 0);
			expect_eq(side_state(&p->a, 0), IBV_QPS_RTS);
		}
		side_expect_none(&p->a, SEND_CQ);
		side_expect_none(&p->b, RECV_CQ);
		stop(p);
	}
}

static void every_operation_may_have_no_data(struct pair *p)
{
	for (int s = 0; s < SERVICES; s++) {
		int ah = start(p, services[s], false);

		for (int op = 0; op < OPS; op++) {
			struct send_req r = request(p, op, ah, 0);

			if (!offered(services[s], op) || is_atomic(op))
				continue;
			side_fill(&p->b, AT, 64, 1);
			complete(p, services[s], op, &r, 0); /* an empty SGE */
			r.num_sge = 0;
			complete(p, services[s], op, &r, 0);
			if (ops[op].data) {
				r.flags |= IBV_SEND_INLINE;
				complete(p, services[s], op, &r, 0);
			}
			side_check(&p->b, AT, 64, 1);
		}
		stop(p);
	}
}

static void where_the_data_of(struct pair *p, enum ibv_qp_type service, int op,
			      uint32_t length, uint64_t seed)
{
	if (ops[op].opcode == IBV_WR_RDMA_WRITE ||
	    ops[op].opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		side_check(&p->b, AT, length, seed);
	else
		side_check(&p->b, service == IBV_QPT_UD ? GRH : 0, length, seed);
}

/* One side, the other one or both. */
static void without_a_grh_each_service_means_this_host(struct pair *p)
{
	for (int i = 0; i < 3 * SERVICES; i++) {
		enum ibv_qp_type service = services[i / 3];
		int ah;

		p->conn.by_lid_a = i % 3 != 1;
		p->conn.by_lid_b = i % 3 != 0;
		ah = start(p, service, false);
		for (int op = 0; op < OPS; op++) {
			struct send_req r = request(p, op, ah, 64);

			if (!offered(service, op))
				continue;
			side_fill(&p->a, 0, 64, (uint64_t)i);
			complete(p, service, op, &r, 64);
			if (ops[op].receive)
				where_the_data_of(p, service, op, 64, (uint64_t)i);
		}
		side_expect_none(&p->a, SEND_CQ);
		stop(p);
	}
}

static void inline_data_reach_up_to_the_limit(struct pair *p)
{
	for (int s = 0; s < SERVICES; s++) {
		int ah = start(p, services[s], false);
		struct ibv_qp_init_attr init;
		uint32_t limit, sizes[4];

		side_query(&p->a, 0, NULL, &init);
		limit = init.cap.max_inline_data;
		expect(limit >= INLINE);
		memcpy(sizes, (uint32_t[]){ 1, limit / 2, limit - 1, limit },
		       sizeof(sizes));
		for (int i = 0; i < OPS * 4; i++) {
			int op = i / 4;
			uint32_t size = sizes[i % 4];
			struct send_req r = request(p, op, ah, size);
			struct send_req marker = request(p, 0, ah, 64);
			struct posted posted;

			if (!offered(services[s], op))
				continue;
			r.flags |= IBV_SEND_INLINE;
			r.sge[0].lkey = 0; /* not looked at */
			if (!ops[op].data) {
				posted = side_post_send(&p->a, 0, &r, 1);
				expect_eq(posted.ret, EINVAL);
				continue;
			}
			side_fill(&p->a, 0, size, (uint64_t)i);
			complete(p, services[s], op, &r, size);
			if (!ops[op].receive) /* sent is not arrived, with UC */
				complete(p, services[s], 0, &marker, 64);
			where_the_data_of(p, services[s], op, size, (uint64_t)i);
			/* One byte more, as a piece of its own. */
			r.num_sge = 2;
			r.sge[1] = r.sge[0];
			r.sge[1].length = limit + 1 - size;
			posted = side_post_send(&p->a, 0, &r, 1);
			expect_eq(posted.ret, EINVAL);
			expect_eq(posted.bad, 0);
		}
		side_expect_none(&p->a, SEND_CQ);
		side_expect_none(&p->b, RECV_CQ);
		stop(p);
	}
}

static void what_is_not_signaled_completes_only_at_the_receiver(struct pair *p)
{
	for (int s = 0; s < SERVICES; s++) {
		int ah = start(p, services[s], false);

		for (int op = 0; op < OPS; op++) {
			struct send_req r = request(p, op, ah, 64);

			if (!offered(services[s], op))
				continue;
			r.flags = 0;
			complete(p, services[s], op, &r, 64);
			/* The next completion is that of the next request. */
			r.flags = IBV_SEND_SIGNALED;
			r.wr_id = 5;
			complete(p, services[s], op, &r, 64);
		}
		side_expect_none(&p->a, SEND_CQ);
		stop(p);
	}
}

static void every_operation_that_takes_a_receive_can_be_solicited(struct pair *p)
{
	for (int s = 0; s < SERVICES; s++) {
		int ah = start(p, services[s], true);

		for (int op = 0; op < OPS; op++) {
			struct send_req r = request(p, op, ah, 64);

			if (!offered(services[s], op) || is_atomic(op))
				continue;
			expect_eq(side_arm(&p->b, RECV_CQ, true), 0);
			complete(p, services[s], op, &r, 64);
			expect_eq(side_event(&p->b, QUIET_MS), -1);
			r.flags |= IBV_SEND_SOLICITED;
			complete(p, services[s], op, &r, 64);
			expect_eq(side_event(&p->b, ops[op].receive ? WAIT_MS :
								      QUIET_MS),
				  ops[op].receive ? (int)RECV_CQ : -1);
		}
		stop(p);
	}
}

static void a_fence_changes_nothing_where_nothing_is_outstanding(struct pair *p)
{
	for (int s = 0; s < SERVICES; s++) {
		int ah = start(p, services[s], false);

		for (int op = 0; op < OPS; op++) {
			struct send_req r = request(p, op, ah, 64);

			if (!offered(services[s], op))
				continue;
			r.flags |= IBV_SEND_FENCE;
			complete(p, services[s], op, &r, 64);
		}
		stop(p);
	}
}

/* ---- keys of datagrams and partitions ---- */

static void a_changed_qkey_counts_from_then_on(struct pair *p)
{
	int ah = start(p, IBV_QPT_UD, false);
	struct ibv_qp_attr attr = { .qkey = QKEY + 1 };
	struct send_req r = request(p, 0, ah, 64);

	complete(p, IBV_QPT_UD, 0, &r, 64);
	expect_eq(side_modify(&p->b, 0, &attr, IBV_QP_QKEY), 0);
	side_recv(&p->b, 7, 0, ROOM);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, r.wr_id);
	side_expect_none(&p->b, RECV_CQ);
	r.qkey = QKEY + 1;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->b, RECV_CQ, 7);
}

static void the_port_has_the_default_partition_only(struct pair *p)
{
	struct ibv_port_attr port;
	struct ibv_device_attr dev;
	__be16 pkey = 0;

	side_open(&p->a, NULL);
	expect_eq(ibv_query_port(p->a.end->ctx, 1, &port), 0);
	expect_eq(port.pkey_tbl_len, 1);
	expect_eq(ibv_query_device(p->a.end->ctx, &dev), 0);
	expect_eq(dev.max_pkeys, 1);
	expect_eq(ibv_query_pkey(p->a.end->ctx, 1, 0, &pkey), 0);
	expect_eq(ntohs(pkey), 0xffff);
	expect(ibv_query_pkey(p->a.end->ctx, 1, 1, &pkey));
	expect_eq(ibv_get_pkey_index(p->a.end->ctx, 1, htons(0xffff)), 0);
	expect_eq(ibv_get_pkey_index(p->a.end->ctx, 1, htons(0x8001)), -1);
}

#define POST "ibv_post_send(3)"

static const struct test_case cases[] = {
	RULE(POST, each_service_has_its_operations_and_no_others),
	RULE(POST, every_operation_may_have_no_data),
	CASE(without_a_grh_each_service_means_this_host),
	RULE(POST, inline_data_reach_up_to_the_limit),
	RULE("IBTA 10.7.3.1",
	     what_is_not_signaled_completes_only_at_the_receiver),
	RULE(POST, every_operation_that_takes_a_receive_can_be_solicited),
	RULE("IBTA 10.8.3.3",
	     a_fence_changes_nothing_where_nothing_is_outstanding),
	RULE("ibv_modify_qp(3)", a_changed_qkey_counts_from_then_on),
	RULE_IN(ONLY_ONE_PROCESS, "IBTA 10.9.1.2",
		the_port_has_the_default_partition_only),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
