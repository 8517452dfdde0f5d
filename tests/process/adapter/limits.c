/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the device and the port say of themselves holds, up to the limit and not
 * beyond (ibv_query_device(3), ibv_query_port(3), ibv_create_cq(3)), and small
 * print of lists: events that name their object, results in pieces.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "pair.h"

static struct ibv_device_attr device(struct side *s)
{
	struct ibv_device_attr dev;

	expect_eq(ibv_query_device(s->end->ctx, &dev), 0);
	return dev;
}

/* ---- queues ---- */

static struct ibv_qp *create_qp(struct end *e, uint32_t wr, uint32_t sge)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_RC, .send_cq = e->cq[0], .recv_cq = e->cq[1],
		.cap = { .max_send_wr = wr, .max_recv_wr = wr,
			 .max_send_sge = sge, .max_recv_sge = sge },
	};

	errno = 0;
	return ibv_create_qp(e->pd, &init);
}

static void queue_pairs_are_as_deep_as_the_device_says(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad = NULL;
	struct ibv_device_attr dev;
	struct end *e = p->a.end;
	struct ibv_qp *qp;

	side_open(&p->a, NULL);
	dev = device(&p->a);
	qp = create_qp(e, (uint32_t)dev.max_qp_wr, (uint32_t)dev.max_sge);
	expect(qp);
	expect_eq(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
						   IBV_QP_PORT |
						   IBV_QP_ACCESS_FLAGS), 0);
	for (int i = 0; i < dev.max_qp_wr; i++)
		expect_eq(ibv_post_recv(qp, &wr, &bad), 0);
	expect_eq(ibv_post_recv(qp, &wr, &bad), ENOMEM);
	expect(bad == &wr);
	expect_eq(ibv_destroy_qp(qp), 0);
	expect(!create_qp(e, (uint32_t)dev.max_qp_wr + 1, 1));
	expect_eq(errno, EINVAL);
	expect(!create_qp(e, 1, (uint32_t)dev.max_sge + 1));
	expect_eq(errno, EINVAL);
}

static void lists_are_as_long_as_the_device_says(struct pair *p)
{
	struct side_options opt = { .sges = MAX_SGES };
	struct recv_req in = { .wr_id = 1, .num_sge = MAX_SGES };
	struct send_req out;

	/* The harness knows the limit, too. */
	pair_start(p, &opt);
	expect_eq(device(&p->a).max_sge, MAX_SGES);
	expect_eq(device(&p->a).max_sge_rd, MAX_SGES);
	for (int op = 0; op < 3; op++) {
		static const enum ibv_wr_opcode ops[] = {
			IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ
		};

		out = rdma_req(&p->a, &p->b, ops[op], 2, 0, 8192, 0);
		out.num_sge = MAX_SGES;
		for (int i = 0; i < MAX_SGES; i++) {
			uint64_t at = (unsigned)i * 101;

			out.sge[i] = side_sge(&p->a, at, 101);
			in.sge[i] = side_sge(&p->b, 8192 + at, 101);
		}
		side_fill(&p->a, 0, 32 * 101, (uint64_t)op);
		if (ops[op] == IBV_WR_RDMA_READ) {
			side_fill(&p->b, 8192, 32 * 101, 7);
		} else {
			side_set(&p->b, 8192, 32 * 101, 0);
			if (ops[op] == IBV_WR_SEND)
				expect_eq(side_post_recv(&p->b, 0, &in, 1).ret,
					  0);
		}
		expect_eq(side_post_send(&p->a, 0, &out, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, 2);
		if (ops[op] == IBV_WR_SEND)
			side_wait_ok(&p->b, RECV_CQ, 1);
		if (ops[op] == IBV_WR_RDMA_READ)
			side_check(&p->a, 0, 32 * 101, 7);
		else
			side_check(&p->b, 8192, 32 * 101, (uint64_t)op);
	}
}

static void completion_queues_are_as_large_as_the_device_says(struct pair *p)
{
	struct ibv_device_attr dev;
	struct end *e = p->a.end;
	struct ibv_cq *cq;

	side_open(&p->a, NULL);
	dev = device(&p->a);
	for (int cqe = 1; cqe < 100; cqe += 7) {
		cq = ibv_create_cq(e->ctx, cqe, e, NULL, 0);
		expect(cq && cq->cqe >= cqe && cq->cq_context == e);
		expect_eq(ibv_destroy_cq(cq), 0);
	}
	cq = ibv_create_cq(e->ctx, dev.max_cqe, NULL, NULL, 0);
	expect(cq && cq->cqe >= dev.max_cqe);
	expect_eq(ibv_resize_cq(cq, dev.max_cqe + 1), EINVAL);
	expect_eq(ibv_resize_cq(cq, 0), EINVAL);
	expect_eq(ibv_destroy_cq(cq), 0);
#define REFUSED(cqe_, vector_)                                           \
	do {                                                             \
		errno = 0;                                               \
		expect(!ibv_create_cq(e->ctx, cqe_, NULL, NULL, vector_)); \
		expect_eq(errno, EINVAL);                                \
	} while (0)
	REFUSED(dev.max_cqe + 1, 0);
	REFUSED(0, 0);
	REFUSED(-1, 0);
	REFUSED(16, -1);
	REFUSED(16, e->ctx->num_comp_vectors);
}

static void a_queue_is_never_polled_for_more_than_was_asked(struct pair *p)
{
	struct ibv_wc wc[4];
	struct ibv_cq *cq;

	pair_start(p, NULL);
	cq = p->a.end->cq[SEND_CQ];
	for (uint64_t i = 0; i < 4; i++) {
		side_recv(&p->b, i, 0, 8);
		side_send(&p->a, i, 0, 8);
		side_wait_ok(&p->b, RECV_CQ, i);
	}
	wc[1].wr_id = 77;
	expect_eq(side_poll(&p->a, SEND_CQ, 1, WAIT_MS).wc[0].wr_id, 0);
	expect_eq(ibv_poll_cq(cq, 0, wc), 0);
	for (uint64_t i = 1; i < 4; i++) {
		int n = 0;

		while (n == 0)
			n = ibv_poll_cq(cq, 1, wc);
		expect_eq(n, 1);
		expect_eq(wc[0].wr_id, i);
		expect_eq(wc[1].wr_id, 77);
	}
}

/* ---- the port ---- */

static void ports_and_indices_that_do_not_exist_are_refused(struct pair *p)
{
	struct ibv_port_attr port;
	struct ibv_context *ctx;
	union ibv_gid gid;
	__be16 pkey;

	side_open(&p->a, NULL);
	ctx = p->a.end->ctx;
	expect_eq(device(&p->a).phys_port_cnt, 1);
	expect_eq(ibv_query_port(ctx, 1, &port), 0);
	expect_eq(port.state, IBV_PORT_ACTIVE);
	expect_eq(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	expect_eq(ibv_query_port(ctx, 0, &port), EINVAL);
	expect_eq(ibv_query_port(ctx, 2, &port), EINVAL);
	expect(port.gid_tbl_len > 0);
	expect_eq(ibv_query_gid(ctx, 1, 0, &gid), 0);
	expect(ibv_query_gid(ctx, 1, -1, &gid));
	expect(ibv_query_gid(ctx, 1, port.gid_tbl_len, &gid));
	expect(ibv_query_gid(ctx, 2, 0, &gid));
	expect(ibv_query_pkey(ctx, 1, -1, &pkey));
	expect(ibv_query_pkey(ctx, 2, 0, &pkey));
}

static void an_empty_place_of_the_table_is_told_from_none(struct pair *p)
{
	static const union ibv_gid zero;
	struct ibv_gid_entry table[1024], e;
	struct ibv_port_attr port;
	struct ibv_context *ctx;
	ssize_t filled, seen = 0;
	union ibv_gid gid;

	need_no_rnic("its table has one place");
	side_open(&p->a, NULL);
	ctx = p->a.end->ctx;
	expect_eq(ibv_query_port(ctx, 1, &port), 0);
	expect(port.gid_tbl_len <= 1024);
	filled = ibv_query_gid_table(ctx, table, (size_t)port.gid_tbl_len, 0);
	/* Room for an address that comes later. */
	expect(filled > 0 && filled < port.gid_tbl_len);
	for (int i = 0; i < port.gid_tbl_len; i++) {
		bool empty = seen == filled || table[seen].gid_index != (unsigned)i;

		memset(&gid, 0xee, sizeof(gid));
		expect_eq(ibv_query_gid(ctx, 1, i, &gid), 0);
		expect_eq(ibv_query_gid_ex(ctx, 1, (unsigned)i, &e, 0),
			  empty ? ENODATA : 0);
		expect(!memcmp(&gid, empty ? &zero : &table[seen].gid, 16));
		seen += !empty;
	}
	expect_eq(seen, filled);
	expect_eq(ibv_query_gid_ex(ctx, 1, (unsigned)port.gid_tbl_len, &e, 0),
		  EINVAL);
	expect_eq(ibv_query_gid_ex(ctx, 2, 0, &e, 0), EINVAL);
}

/* ---- small print ---- */

static int qp_of_event(struct end *e, void *arg)
{
	struct ibv_async_event event;
	int i = *(int *)arg;
	uint64_t end = now_ms() + WAIT_MS;

	while (ibv_get_async_event(e->ctx, &event)) /* it does not block */
		if (now_ms() > end)
			return -1;
	ibv_ack_async_event(&event);
	return event.event_type == IBV_EVENT_QP_ACCESS_ERR &&
		       event.element.qp == e->qp[i] ? 0 : -2;
}

static void an_event_names_its_queue_pair(struct pair *p)
{
	static const int order[] = { 2, 0, 1 };
	struct send_req r;

	pair_open(p, NULL);
	for (int i = 1; i < 3; i++) {
		expect_eq(side_qp_create(&p->a, NULL), i);
		expect_eq(side_qp_create(&p->b, NULL), i);
	}
	for (int i = 0; i < 3; i++)
		pair_connect_qp(p, i);
	/* Over a stream a WRITE would be complete before it is refused. */
	r = rdma_req(&p->a, &p->b, transport_under_test()->streams ? IBV_WR_RDMA_READ :
								     IBV_WR_RDMA_WRITE,
		     1, 0, 0, 8);
	r.rkey ^= 0x4000;
	for (int i = 0; i < 3; i++) {
		int which = order[i];

		expect_eq(side_post_send(&p->a, which, &r, 1).ret, 0);
		expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
		expect_eq(side_run(&p->b, qp_of_event, &which, sizeof(which)),
			  0);
	}
	expect_eq(side_async(&p->b, 0), -1);
}

static void the_result_of_an_atomic_may_come_in_pieces(struct pair *p)
{
	const struct side_options opt = {
		.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct send_req r;
	uint8_t pieces[32];

	p->conn.access_b = IBV_ACCESS_REMOTE_ATOMIC;
	pair_start(p, &opt);
	side_fill(&p->b, 64, 8, 3);
	side_set(&p->a, 0, 32, 0xee);
	r = rdma_req(&p->a, &p->b, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 64, 3);
	r.sge[1] = side_sge(&p->a, 10, 0);
	r.sge[2] = side_sge(&p->a, 20, 5);
	r.num_sge = 3;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_peek(&p->a, 0, pieces, sizeof(pieces));
	for (unsigned i = 0; i < 8; i++)
		expect_eq(pieces[i < 3 ? i : 20 + i - 3], pattern(3, i));
	expect_eq(pieces[3], 0xee);
	expect_eq(pieces[10], 0xee);
	expect_eq(pieces[25], 0xee);
}

static void a_result_without_a_place_is_a_local_error(struct pair *p)
{
	const struct side_options opt = {
		.mr_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC,
	};
	struct region mr;
	struct send_req r;

	p->conn.access_b = IBV_ACCESS_REMOTE_ATOMIC;
	pair_start(p, &opt);
	mr = side_reg(&p->a, 0, 4096, 0, 0); /* not writable */
	r = rdma_req(&p->a, &p->b, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 64, 8);
	r.sge[0].lkey = mr.lkey;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	expect_eq(side_async(&p->b, 0), -1);
}

static const struct test_case cases[] = {
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_device(3)",
		queue_pairs_are_as_deep_as_the_device_says),
	RULE("ibv_query_device(3)", lists_are_as_long_as_the_device_says),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_create_cq(3)",
		completion_queues_are_as_large_as_the_device_says),
	RULE("ibv_poll_cq(3)", a_queue_is_never_polled_for_more_than_was_asked),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_port(3)",
		ports_and_indices_that_do_not_exist_are_refused),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_query_gid_ex(3)",
		an_empty_place_of_the_table_is_told_from_none),
	RULE("ibv_get_async_event(3)", an_event_names_its_queue_pair),
	RULE("IBTA 9.4.5", the_result_of_an_atomic_may_come_in_pieces),
	RULE("IBTA 11.6.2", a_result_without_a_place_is_a_local_error),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
