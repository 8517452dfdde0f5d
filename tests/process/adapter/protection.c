/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keys, ranges, rights and protection domains: who notices, with which status,
 * and what becomes of the queue pairs (InfiniBand specification volume 1,
 * 10.6.3 and the tables of 9.9).
 */
#include <errno.h>
#include <signal.h>
#include <string.h>

#include "pair.h"

static const int local = IBV_ACCESS_LOCAL_WRITE;
static const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
		       IBV_ACCESS_REMOTE_WRITE;
static const enum ibv_wr_opcode kinds[] = {
	IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
	IBV_WR_RDMA_WRITE_WITH_IMM,
};
static const uint32_t lengths[] = { 10, 1000, 40000 };

static void reconnect(struct pair *p)
{
	pair_reset_qp(p, 0);
	pair_connect_qp(p, 0);
}

/* The TERMINATE that ends a connection of iWARP: the program of the end to which it goes is told. */
static void terminated(struct side *s)
{
	side_wait_state(s, 0, IBV_QPS_ERR);
	expect_eq(side_async(s, WAIT_MS), IBV_EVENT_QP_FATAL);
	expect_eq(side_async(s, 0), -1);
}

/* The request fails at its own side, and the other one notices nothing; over a stream, that the
 * connection has ended. */
static void fails_locally(struct pair *p, const struct send_req *r)
{
	struct ibv_wc wc;

	side_recv(&p->b, 1, 0, 60000);
	expect_eq(side_post_send(&p->a, 0, r, 1).ret, 0);
	wc = side_wait(&p->a, SEND_CQ);
	expect_status(wc, IBV_WC_LOC_PROT_ERR);
	expect_eq(wc.wr_id, r->wr_id);
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	if (transport_under_test()->streams) {
		expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
		terminated(&p->b);
		expect_eq(side_async(&p->a, 0), -1);
		reconnect(p);
		return;
	}
	expect_eq(side_poll(&p->b, RECV_CQ, 1, 5).count, 0);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	reconnect(p);
}

static void with_lkey(struct pair *p, uint32_t lkey, uint64_t offset)
{
	for (unsigned k = 0; k < 4; k++) {
		for (unsigned i = 0; i < 3; i++) {
			struct send_req r = rdma_req(&p->a, &p->b, kinds[k],
						     k, offset, 0, lengths[i]);

			if (!offers(kinds[k]))
				continue;
			r.sge[0].lkey = lkey;
			fails_locally(p, &r);
			/* And as the second of two pieces. */
			r.sge[1] = r.sge[0];
			r.sge[0] = side_sge(&p->a, 0, 10);
			r.num_sge = 2;
			fails_locally(p, &r);
		}
	}
}

static void a_wrong_lkey_fails_at_the_sender(struct pair *p)
{
	pair_start(p, NULL);
	with_lkey(p, 0, 0);
	with_lkey(p, p->a.lkey + 1, 0);
	with_lkey(p, 0xffffffff, 0);
}

static void the_lkey_of_another_protection_domain_fails(struct pair *p)
{
	struct region mr;

	pair_start(p, NULL);
	mr = side_reg(&p->a, 0, 60000, all, 1);
	expect(mr.index >= 0);
	with_lkey(p, mr.lkey, 0);
}

static void the_lkey_of_a_deregistered_region_fails(struct pair *p)
{
	struct region mr;

	pair_start(p, NULL);
	mr = side_reg(&p->a, 0, 60000, all, 0);
	expect_eq(side_dereg(&p->a, mr.index), 0);
	with_lkey(p, mr.lkey, 0);
}

static void one_byte_beyond_the_region_fails(struct pair *p)
{
	struct region mr;

	pair_start(p, NULL);
	mr = side_reg(&p->a, 100, 1000, all, 0);
	for (unsigned k = 0; k < 4; k++) {
		struct send_req r = rdma_req(&p->a, &p->b, kinds[k], k, 100, 0,
					     1001);

		r.sge[0].lkey = mr.lkey;
		fails_locally(p, &r);
		r.sge[0] = side_sge(&p->a, 99, 1000);
		r.sge[0].lkey = mr.lkey;
		fails_locally(p, &r);
		/* The whole of it is fine. */
		r.sge[0] = side_sge(&p->a, 100, 1000);
		r.sge[0].lkey = mr.lkey;
		side_recv(&p->b, 1, 0, 2000);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, k);
		reconnect(p);
	}
}

static void a_read_into_memory_that_is_not_writable_fails(struct pair *p)
{
	struct region mr;

	pair_start(p, NULL);
	mr = side_reg(&p->a, 0, 60000, 0, 0);
	expect(mr.index >= 0);
	side_fill(&p->a, 0, 1000, 1);
	for (unsigned i = 0; i < 3; i++) {
		struct send_req r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 5,
					     0, 0, lengths[i]);

		r.sge[0].lkey = mr.lkey;
		fails_locally(p, &r);
	}
	side_check(&p->a, 0, 1000, 1);
}

static void earlier_sends_complete_before_a_local_error(struct pair *p)
{
	struct send_req r;

	need_arrival();
	/* Nothing is posted at the receiver yet: the first two wait. */
	pair_start(p, NULL);
	for (uint64_t i = 0; i < 4; i++) {
		r = send_req(&p->a, IBV_WR_SEND, i, 0, 100);
		if (i == 2)
			r.sge[0].lkey = 0xbad;
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	}
	side_expect_none(&p->a, SEND_CQ);
	for (uint64_t i = 0; i < 4; i++)
		side_recv(&p->b, i, 0, 100);
	side_wait_ok(&p->a, SEND_CQ, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_LOC_PROT_ERR);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_WR_FLUSH_ERR);
	expect_eq(side_poll(&p->b, RECV_CQ, 4, QUIET_MS).count, 2);
}

/* A receive that may not be written: both sides learn it. */
static void with_receive_key(struct pair *p, uint32_t lkey)
{
	for (unsigned i = 0; i < 3; i++) {
		struct recv_req rr = { .wr_id = 8, .num_sge = 1,
				       .sge = { side_sge(&p->b, 0, 50000) } };
		struct ibv_wc wc;

		rr.sge[0].lkey = lkey;
		side_fill(&p->b, 0, 50000, 3);
		expect_eq(side_post_recv(&p->b, 0, &rr, 1).ret, 0);
		side_recv(&p->b, 9, 0, 1000);
		side_send(&p->a, 1, 0, lengths[i]);
		side_send(&p->a, 2, 0, lengths[i]);
		wc = side_wait(&p->b, RECV_CQ);
		expect_status(wc, IBV_WC_LOC_PROT_ERR);
		expect_eq(wc.wr_id, 8);
		wc = side_wait(&p->b, RECV_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, 9);
		wc = side_wait(&p->a, SEND_CQ);
		expect_eq(wc.wr_id, 1);
		if (transport_under_test()->streams) {
			/* TCP had taken it, and the second one before or behind the TERMINATE. */
			expect_status(wc, IBV_WC_SUCCESS);
			expect_eq(side_wait(&p->a, SEND_CQ).wr_id, 2);
			terminated(&p->a);
			expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_FATAL);
		} else {
			expect_status(wc, IBV_WC_REM_OP_ERR);
			expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_WR_FLUSH_ERR);
		}
		expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
		expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
		side_check(&p->b, 0, 50000, 3);
		reconnect(p);
	}
}

static void a_receive_into_memory_without_local_write_fails_on_both_sides(struct pair *p)
{
	struct region mr;

	pair_start(p, NULL);
	mr = side_reg(&p->b, 0, 60000, IBV_ACCESS_REMOTE_READ, 0);
	expect(mr.index >= 0);
	with_receive_key(p, mr.lkey);
}

static void a_receive_with_a_bad_key_fails_on_both_sides(struct pair *p)
{
	struct region mr;

	pair_start(p, NULL);
	with_receive_key(p, 0x12345678);
	mr = side_reg(&p->b, 0, 60000, all, 1);
	with_receive_key(p, mr.lkey);
	mr = side_reg(&p->b, 0, 60000, all, 0);
	expect_eq(side_dereg(&p->b, mr.index), 0);
	with_receive_key(p, mr.lkey);
}

/* The sender's part of it over a stream. What TCP has taken is complete, and the TERMINATE that comes
 * behind it fails what is not. A missing right is always one of access. */
static void refused_on_stream(struct pair *p, const struct send_req *r)
{
	struct ibv_wc wc = side_wait(&p->a, SEND_CQ);

	if (r->opcode == IBV_WR_RDMA_READ)
		expect_status(wc, IBV_WC_REM_ACCESS_ERR);
	else
		expect_status(wc, IBV_WC_SUCCESS);
	expect_eq(wc.wr_id, r->wr_id);
	wc = side_wait(&p->a, SEND_CQ);
	expect_eq(wc.wr_id, 12);
	if (r->opcode == IBV_WR_RDMA_READ)
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	terminated(&p->a);
}

/* A remote access that is refused. `event`: what the responder's program is
 * told; its QP is in ERR and its receives come back flushed. */
static void refused(struct pair *p, const struct send_req *r,
		    enum ibv_wc_status status, int event)
{
	struct send_req next = send_req(&p->a, IBV_WR_SEND, 12, 0, 8);
	struct ibv_wc wc;

	side_fill(&p->a, 0, 50000, 6);
	side_fill(&p->b, 0, 50000, 7);
	side_recv(&p->b, 20, 60000, 100);
	side_recv(&p->b, 21, 60000, 100);
	expect_eq(side_post_send(&p->a, 0, r, 1).ret, 0);
	side_post_send(&p->a, 0, &next, 1);
	if (transport_under_test()->streams) {
		refused_on_stream(p, r);
		event = IBV_EVENT_QP_ACCESS_ERR;
	} else {
		wc = side_wait(&p->a, SEND_CQ);
		if (wc.status != status)
			fail("opcode %d: '%s' instead of '%s'", r->opcode,
			     ibv_wc_status_str(wc.status), ibv_wc_status_str(status));
		expect_eq(wc.wr_id, r->wr_id);
		wc = side_wait(&p->a, SEND_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, 12);
	}
	expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), event);
	for (uint64_t i = 20; i < 22; i++) {
		wc = side_wait(&p->b, RECV_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, i);
	}
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
	expect_eq(side_async(&p->b, 0), -1);
	side_check(&p->a, 0, 50000, 6);
	side_check(&p->b, 0, 50000, 7);
	reconnect(p);
}

static void refused_rdma(struct pair *p, uint32_t rkey, uint64_t offset,
			 uint32_t length, bool writes, bool reads)
{
	for (unsigned k = 1; k < 4; k++) {
		struct send_req r = rdma_req(&p->a, &p->b, kinds[k], 11, 0,
					     offset, length);

		r.rkey = rkey;
		r.imm = 5;
		if (!offers(kinds[k]))
			continue;
		if (kinds[k] == IBV_WR_RDMA_READ ? reads : writes)
			refused(p, &r, IBV_WC_REM_ACCESS_ERR,
				IBV_EVENT_QP_ACCESS_ERR);
	}
}

static void a_bad_rkey_is_refused_and_reported_at_the_responder(struct pair *p)
{
	struct region mr;

	pair_start(p, NULL);
	refused_rdma(p, 0, 0, 100, true, true);
	refused_rdma(p, p->b.rkey ^ 1, 0, 100, true, true);
	refused_rdma(p, 0xffffffff, 0, 40000, true, true);
	mr = side_reg(&p->b, 0, 50000, all, 0);
	expect_eq(side_dereg(&p->b, mr.index), 0);
	refused_rdma(p, mr.rkey, 0, 100, true, true);
}

/* More messages than the peer has room for, of another queue pair, while the peer stands still. */
static void fill_the_way(struct pair *p, int qp)
{
	struct send_req r[MAX_WRS];

	for (int i = 0; i < MAX_WRS; i++) {
		r[i] = send_req(&p->a, IBV_WR_SEND, 0, 0, 8);
		r[i].flags = 0;
	}
	for (int i = 0; i < 80; i++)
		expect_eq(side_post_send(&p->a, qp, r, MAX_WRS).ret, 0);
}

static void a_responder_that_is_behind_learns_of_a_bad_rkey_as_well(struct pair *p)
{
	static const enum ibv_wr_opcode ops[] = { IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ };
	const struct side_options filler = { .type = IBV_QPT_UC, .send_wr = 1000 };

	p->conn.timeout = 20;
	pair_start(p, NULL);
	expect_eq(side_qp_create(&p->a, &filler), 1);
	expect_eq(side_qp_create(&p->b, &filler), 1);
	pair_connect_qp(p, 1);
	for (unsigned i = 0; i < 4; i++) {
		/* Also one that is copied in parts. */
		struct send_req w = rdma_req(&p->a, &p->b, ops[i % 2], 7, 0, 0,
					     i < 2 ? 8 : 40000);
		struct polled got;

		w.rkey += 0x100;
		side_recv(&p->b, 3, 0, 100);
		side_stop(&p->b);
		fill_the_way(p, 1);
		expect_eq(side_post_send(&p->a, 0, &w, 1).ret, 0);
		got = side_poll(&p->a, SEND_CQ, 1, QUIET_MS / 3);
		side_signal(&p->b, SIGCONT);
		if (!got.count)
			got.wc[0] = side_wait(&p->a, SEND_CQ);
		expect_status(got.wc[0], IBV_WC_REM_ACCESS_ERR);
		expect_status(side_wait(&p->b, RECV_CQ), IBV_WC_WR_FLUSH_ERR);
		expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
		expect_eq(side_state(&p->a, 0), IBV_QPS_ERR);
		expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
		pair_reset_qp(p, 0);
		pair_connect_qp(p, 0);
	}
}

static void the_rkey_of_another_protection_domain_is_refused(struct pair *p)
{
	struct region mr;

	pair_start(p, NULL);
	mr = side_reg(&p->b, 0, 50000, all, 1);
	refused_rdma(p, mr.rkey, 0, 100, true, true);
}

static void one_byte_beyond_the_remote_region_is_refused(struct pair *p)
{
	struct region mr;

	pair_start(p, NULL);
	mr = side_reg(&p->b, 1000, 2000, all, 0);
	refused_rdma(p, mr.rkey, 1000, 2001, true, true);
	refused_rdma(p, mr.rkey, 999, 2000, true, true);
	refused_rdma(p, mr.rkey, 2999, 2, true, true);
	refused_rdma(p, mr.rkey, 3000, 1, true, true);
	refused_rdma(p, mr.rkey, (uint64_t)0 - p->b.addr, 1, true, true);
	refused_rdma(p, mr.rkey, UINT64_MAX - p->b.addr, 4000, true, true);
}

static void a_region_gives_only_the_rights_it_was_registered_with(struct pair *p)
{
	struct region w, r, none;
	struct send_req req;

	pair_start(p, NULL);
	w = side_reg(&p->b, 0, 50000, local | IBV_ACCESS_REMOTE_WRITE, 0);
	r = side_reg(&p->b, 0, 50000, IBV_ACCESS_REMOTE_READ, 0);
	none = side_reg(&p->b, 0, 50000, local, 0);
	refused_rdma(p, w.rkey, 0, 100, false, true);
	refused_rdma(p, r.rkey, 0, 100, true, false);
	refused_rdma(p, none.rkey, 0, 100, true, true);
	req = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 1, 0, 0, 100);
	req.rkey = w.rkey;
	expect_eq(side_post_send(&p->a, 0, &req, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	req = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 2, 0, 0, 100);
	req.rkey = r.rkey;
	expect_eq(side_post_send(&p->a, 0, &req, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 2);
}

static void a_queue_pair_without_the_right_makes_the_request_invalid(struct pair *p)
{
	struct send_req r;

	p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, NULL);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_READ, 11, 0, 0, 100);
	refused(p, &r, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	pair_reset_qp(p, 0);
	p->conn.access_b = IBV_ACCESS_REMOTE_READ;
	pair_connect_qp(p, 0);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 11, 0, 0, 100);
	refused(p, &r, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 11, 0, 0, 100);
	refused(p, &r, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

static void rights_of_a_queue_pair_may_change_while_it_is_connected(struct pair *p)
{
	struct ibv_qp_attr attr = { .qp_access_flags = 0 };
	struct send_req r;

	pair_start(p, NULL);
	side_fill(&p->a, 0, 100, 5);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE, 11, 0, 0, 100);
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 11);
	side_check(&p->b, 0, 100, 5);
	expect_eq(side_modify(&p->b, 0, &attr, IBV_QP_ACCESS_FLAGS), 0);
	refused(p, &r, IBV_WC_REM_INV_REQ_ERR, IBV_EVENT_QP_REQ_ERR);
}

static void an_access_of_no_bytes_needs_no_key(struct pair *p)
{
	pair_start(p, NULL);
	for (unsigned k = 1; k < 4; k++) {
		struct send_req r = rdma_req(&p->a, &p->b, kinds[k], k, 0, 0, 0);

		r.rkey = 0xbad;
		r.remote_addr = 0;
		r.num_sge = 0;
		side_recv(&p->b, 1, 0, 0);
		expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
		side_wait_ok(&p->a, SEND_CQ, k);
	}
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 1).byte_len, 0);
}

static void registration_refuses_what_makes_no_sense(struct pair *p)
{
	struct region mr;

	side_open(&p->a, NULL);
	mr = side_reg(&p->a, 0, 4096, IBV_ACCESS_REMOTE_WRITE, 0);
	expect_eq(mr.index, -1);
	expect_eq(mr.error, EINVAL);
	mr = side_reg(&p->a, 0, 4096, IBV_ACCESS_REMOTE_ATOMIC, 0);
	expect_eq(mr.index, -1);
	mr = side_reg(&p->a, 0, UINT64_MAX - 4096, local, 0);
	expect_eq(mr.index, -1);
	mr = side_reg(&p->a, 1 << 16, UINT64_C(1) << 40, local, 0);
	expect_eq(mr.index, -1);
}

/* The responder's connection is of no use afterwards (class C of 9.9.3): its receives
 * are flushed, the first of them is not used for the message that was refused. */
static void a_refused_write_with_immediate_is_no_reception(struct pair *p)
{
	struct send_req r;
	struct ibv_wc wc;

	need_arrival();
	p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, NULL);
	for (uint64_t i = 0; i < 2; i++)
		side_recv(&p->b, 10 + i, 4096, 64);
	side_set(&p->b, 0, 200, 0xee);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 0, 100);
	r.rkey ^= 1;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	expect_status(side_wait(&p->a, SEND_CQ), IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	expect_eq(side_state(&p->b, 0), IBV_QPS_ERR);
	for (uint64_t i = 0; i < 2; i++) {
		wc = side_wait(&p->b, RECV_CQ);
		expect_status(wc, IBV_WC_WR_FLUSH_ERR);
		expect_eq(wc.wr_id, 10 + i);
	}
	side_expect_none(&p->b, RECV_CQ);
	side_peek(&p->b, 0, &wc, sizeof(wc));
	for (unsigned i = 0; i < sizeof(wc); i++)
		expect_eq(((uint8_t *)&wc)[i], 0xee);
	/* Nor is anything left of it for the next connection. */
	pair_reset_qp(p, 0);
	pair_connect_qp(p, 0);
	side_recv(&p->b, 20, 4096, 64);
	r.rkey ^= 1;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	wc = side_wait_ok(&p->b, RECV_CQ, 20);
	expect_eq(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
}

/* UC: what is refused is dropped, and nobody learns of it (class D1 and E1). */
static void an_unreliable_one_leaves_the_receive_where_it_is(struct pair *p)
{
	const struct side_options uc = { .type = IBV_QPT_UC };
	struct send_req r;

	p->conn.access_b = IBV_ACCESS_REMOTE_WRITE;
	pair_start(p, &uc);
	side_recv(&p->b, 10, 4096, 64);
	r = rdma_req(&p->a, &p->b, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 0, 100);
	r.rkey ^= 1;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	side_expect_none(&p->b, RECV_CQ);
	expect_eq(side_state(&p->b, 0), IBV_QPS_RTS);
	r.rkey ^= 1;
	expect_eq(side_post_send(&p->a, 0, &r, 1).ret, 0);
	side_wait_ok(&p->a, SEND_CQ, 1);
	expect_eq(side_wait_ok(&p->b, RECV_CQ, 10).opcode,
		  IBV_WC_RECV_RDMA_WITH_IMM);
}

static const struct test_case cases[] = {
	RULE("IBTA 9.9.3", a_refused_write_with_immediate_is_no_reception),
	RULE("IBTA 9.9.3", an_unreliable_one_leaves_the_receive_where_it_is),
	RULE("IBTA 11.6.2", a_wrong_lkey_fails_at_the_sender),
	RULE("IBTA 10.2.3", the_lkey_of_another_protection_domain_fails),
	RULE("IBTA 11.6.2", the_lkey_of_a_deregistered_region_fails),
	RULE("IBTA 11.6.2", one_byte_beyond_the_region_fails),
	RULE("ibv_reg_mr(3)", a_read_into_memory_that_is_not_writable_fails),
	RULE("IBTA 9.9.2", earlier_sends_complete_before_a_local_error),
	RULE("IBTA 9.9.3",
	     a_receive_into_memory_without_local_write_fails_on_both_sides),
	RULE("IBTA 9.9.3", a_receive_with_a_bad_key_fails_on_both_sides),
	RULE("IBTA 9.7.4.1.5",
	     a_bad_rkey_is_refused_and_reported_at_the_responder),
	CASE_IN(ONLY_TWO_PROCESSES, a_responder_that_is_behind_learns_of_a_bad_rkey_as_well),
	RULE("IBTA 9.7.4.1.5",
	     the_rkey_of_another_protection_domain_is_refused),
	RULE("IBTA 9.7.4.1.5", one_byte_beyond_the_remote_region_is_refused),
	RULE("IBTA 9.7.4.1.5",
	     a_region_gives_only_the_rights_it_was_registered_with),
	RULE("IBTA 9.7.4.1",
	     a_queue_pair_without_the_right_makes_the_request_invalid),
	RULE("ibv_modify_qp(3)",
	     rights_of_a_queue_pair_may_change_while_it_is_connected),
	RULE("IBTA 9.7.4.1.5", an_access_of_no_bytes_needs_no_key),
	RULE_IN(ONLY_ONE_PROCESS, "ibv_reg_mr(3)",
		registration_refuses_what_makes_no_sense),
};

int main(int argc, char **argv)
{
	return RUN_CASES(argc, argv, cases);
}
