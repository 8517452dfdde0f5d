/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows of a side; see window.h. */
#include "window.h"

#include <errno.h>

struct alloc_note {
	int type, pd;
	struct window out;
};

static int do_alloc(struct end *e, void *arg)
{
	struct alloc_note *n = arg;

	n->out = (struct window){ .index = -1, .error = ENOSPC };
	for (int i = 0; i < SIDE_MRS; i++) {
		if (e->mw[i])
			continue;
		errno = 0;
		e->mw[i] = ibv_alloc_mw(n->pd ? e->other_pd : e->pd,
					(enum ibv_mw_type)n->type);
		n->out.error = errno;
		if (!e->mw[i])
			return 0;
		n->out.index = i;
		n->out.rkey = e->mw[i]->rkey;
		return 0;
	}
	return 0;
}

struct window side_mw_alloc(struct side *s, enum ibv_mw_type type, int pd)
{
	struct alloc_note n = { .type = (int)type, .pd = pd };

	need_no_rnic("it has no windows");
	side_run(s, do_alloc, &n, sizeof(n));
	return n.out;
}

static int do_dealloc(struct end *e, void *arg)
{
	int i = *(int *)arg;
	int ret = ibv_dealloc_mw(e->mw[i]);

	if (!ret)
		e->mw[i] = NULL;
	return ret;
}

int side_mw_dealloc(struct side *s, int index)
{
	return side_run(s, do_dealloc, &index, sizeof(index));
}

static int do_post(struct end *e, void *arg)
{
	struct binding *b = arg;
	struct ibv_mw *mw = e->mw[b->window];
	const struct ibv_mw_bind_info info = {
		.mr = b->region < 0 ? NULL : e->mr[b->region],
		.addr = b->addr,
		.length = b->length,
		.mw_access_flags = b->access,
	};
	struct ibv_mw_bind verb = { .wr_id = b->wr_id, .send_flags = b->flags,
				    .bind_info = info };
	struct ibv_send_wr wr = { .wr_id = b->wr_id, .send_flags = b->flags,
				  .opcode = IBV_WR_BIND_MW }, *bad;
	struct ibv_qp_ex *ex;
	int ret;

	switch (b->how) {
	case BIND_BY_VERB:
		ret = ibv_bind_mw(e->qp[b->qp], mw, &verb);
		break;
	case BIND_BY_POST:
		wr.bind_mw.mw = mw;
		wr.bind_mw.rkey = b->rkey;
		wr.bind_mw.bind_info = info;
		ret = ibv_post_send(e->qp[b->qp], &wr, &bad);
		break;
	default:
		ex = ibv_qp_to_qp_ex(e->qp[b->qp]);
		ibv_wr_start(ex);
		ex->wr_id = b->wr_id;
		ex->wr_flags = b->flags;
		ibv_wr_bind_mw(ex, mw, b->rkey, &info);
		ret = ibv_wr_complete(ex);
		break;
	}
	b->rkey_after = b->how == BIND_BY_VERB ?
				mw->rkey : (mw->rkey & ~0xffu) | (b->rkey & 0xff);
	return ret;
}

int side_mw_post(struct side *s, struct binding *b)
{
	return side_run(s, do_post, b, sizeof(*b));
}

struct binding binding_of(const struct side *s, enum bind_how how,
			  const struct window *w, const struct region *mr,
			  uint64_t offset, uint64_t length)
{
	return (struct binding){
		.how = how,
		.window = w->index,
		.region = mr ? mr->index : -1,
		.wr_id = 77,
		.flags = IBV_SEND_SIGNALED,
		.addr = s->addr + offset,
		.length = length,
		.access = window_rights(),
		.rkey = ibv_inc_rkey(w->rkey),
	};
}

uint32_t side_mw_bind(struct side *s, struct binding *b)
{
	struct ibv_wc wc;

	expect_eq(side_mw_post(s, b), 0);
	wc = side_wait_ok(s, SEND_CQ, b->wr_id);
	expect_eq(wc.opcode, IBV_WC_BIND_MW);
	expect_eq(wc.qp_num, s->qpn[b->qp]);
	return b->rkey_after;
}

struct region side_reg_bindable(struct side *s, uint64_t offset, uint64_t length)
{
	struct region mr = side_reg(s, offset, length,
				    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
				    0);

	expect(mr.index >= 0);
	return mr;
}

struct ibv_wc side_invalidate(struct side *s, int qp, uint32_t rkey)
{
	struct send_req r = { .wr_id = 88, .opcode = IBV_WR_LOCAL_INV,
			      .flags = IBV_SEND_SIGNALED, .imm = rkey };
	struct ibv_wc wc;

	expect_eq(side_post_send(s, qp, &r, 1).ret, 0);
	wc = side_wait(s, SEND_CQ);
	expect_eq(wc.wr_id, 88);
	return wc;
}

static struct send_req reading_nothing(const struct side *s, const struct side *to)
{
	struct send_req r = rdma_req(s, to, IBV_WR_RDMA_READ, 99, 0, 0, 0);

	r.num_sge = 0;
	return r;
}

/* The completion that is no success, if there is one. */
static struct ibv_wc worse(struct ibv_wc wc, struct ibv_wc behind)
{
	return wc.status == IBV_WC_SUCCESS && behind.status != IBV_WC_SUCCESS ? behind : wc;
}

struct ibv_wc result_of(struct side *s, const struct side *to, int qp, const struct send_req *r)
{
	const bool confirmed = r->opcode == IBV_WR_RDMA_WRITE && transport_under_test()->streams;
	/* Posted together: else a refusal could flush the second one. */
	struct send_req both[2] = { *r, reading_nothing(s, to) };
	struct ibv_wc wc;

	expect_eq(side_post_send(s, qp, both, confirmed ? 2 : 1).ret, 0);
	wc = side_wait(s, SEND_CQ);
	expect_eq(wc.wr_id, r->wr_id);
	return confirmed ? worse(wc, side_wait(s, SEND_CQ)) : wc;
}

struct ibv_wc access_with(struct side *s, const struct side *to,
			  enum ibv_wr_opcode opcode, int qp, uint32_t rkey,
			  uint64_t remote_addr)
{
	bool atomic = opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		      opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct send_req r = rdma_req(s, to, opcode, 99, 0, 0, atomic ? 8 : 64);

	r.rkey = rkey;
	r.remote_addr = remote_addr;
	r.compare_add = 1;
	return result_of(s, to, qp, &r);
}

/* ---- side b has them, side a uses them ---- */

const enum ibv_wr_opcode mw_accesses[MW_ACCESSES] = {
	IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_RDMA_WRITE_WITH_IMM,
	IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_CMP_AND_SWP,
};

void mw_start(struct pair *p, const struct side_options *opt)
{
	p->conn.access_a = p->conn.access_b = window_rights();
	/* A peer in error is given up soon. */
	pair_end_soon(p, 10, 1);
	pair_start(p, opt);
}

void mw_reconnect(struct pair *p, int qp)
{
	pair_reset_qp(p, qp);
	pair_connect_qp(p, qp);
	while (side_async(&p->b, 0) >= 0)
		;
}

void mw_second_qp(struct pair *p)
{
	expect_eq(side_qp_create(&p->a, NULL), 1);
	expect_eq(side_qp_create(&p->b, NULL), 1);
	pair_connect_qp(p, 1);
}

void mw_works(struct pair *p, int qp, uint32_t rkey, uint64_t addr)
{
	for (unsigned i = 0; i < MW_ACCESSES; i++) {
		struct recv_req rr = { .wr_id = 1 };

		if (mw_accesses[i] == IBV_WR_RDMA_WRITE_WITH_IMM)
			expect_eq(side_post_recv(&p->b, qp, &rr, 1).ret, 0);
		expect_status(access_with(&p->a, &p->b, mw_accesses[i], qp, rkey,
					  addr), IBV_WC_SUCCESS);
		if (mw_accesses[i] == IBV_WR_RDMA_WRITE_WITH_IMM)
			side_wait_ok(&p->b, RECV_CQ, 1);
	}
}

void mw_refused(struct pair *p, int qp, uint32_t rkey, uint64_t addr,
		       enum ibv_wr_opcode opcode)
{
	expect_status(access_with(&p->a, &p->b, opcode, qp, rkey, addr),
		      IBV_WC_REM_ACCESS_ERR);
	expect_eq(side_async(&p->b, WAIT_MS), IBV_EVENT_QP_ACCESS_ERR);
	mw_reconnect(p, qp);
}

void mw_all_refused(struct pair *p, int qp, uint32_t rkey, uint64_t addr)
{
	for (unsigned i = 0; i < MW_ACCESSES; i++)
		mw_refused(p, qp, rkey, addr, mw_accesses[i]);
}

void mw_each(struct pair *p, window_fn *fn)
{
	const struct side_options opt = { .extended = true };

	mw_start(p, &opt);
	for (enum bind_how how = BIND_BY_VERB; how <= BIND_BY_BUILD; how++) {
		enum ibv_mw_type type = how == BIND_BY_VERB ? IBV_MW_TYPE_1 :
							      IBV_MW_TYPE_2;
		struct region mr = side_reg_bindable(&p->b, 4096, 32768);
		struct window w = side_mw_alloc(&p->b, type, 0);
		struct binding bind = binding_of(&p->b, how, &w, &mr, AT, LENGTH);

		fn(p, &mr, &w, &bind);
		expect_eq(side_mw_dealloc(&p->b, w.index), 0);
		expect_eq(side_dereg(&p->b, mr.index), 0);
	}
}

struct bound_window mw_bound(struct pair *p, enum bind_how how)
{
	struct bound_window t;

	t.mr = side_reg_bindable(&p->b, 4096, 32768);
	t.w = side_mw_alloc(&p->b, how == BIND_BY_VERB ? IBV_MW_TYPE_1 :
							 IBV_MW_TYPE_2, 0);
	t.bind = binding_of(&p->b, how, &t.w, &t.mr, AT, LENGTH);
	side_mw_bind(&p->b, &t.bind);
	return t;
}

void mw_bind_fails(struct pair *p, struct binding *b)
{
	struct send_req next = send_req(&p->b, IBV_WR_SEND, 2, 0, 8);
	struct ibv_wc wc;

	b->flags = 0; /* an error completes even if it is not signaled */
	expect_eq(side_mw_post(&p->b, b), 0);
	expect_eq(side_post_send(&p->b, b->qp, &next, 1).ret, 0);
	wc = side_wait(&p->b, SEND_CQ);
	expect_status(wc, IBV_WC_MW_BIND_ERR);
	expect_eq(wc.wr_id, b->wr_id);
	expect_eq(wc.qp_num, p->b.qpn[b->qp]);
	wc = side_wait(&p->b, SEND_CQ);
	expect_status(wc, IBV_WC_WR_FLUSH_ERR);
	expect_eq(wc.wr_id, 2);
	expect_eq(side_state(&p->b, b->qp), IBV_QPS_ERR);
	expect_eq(side_state(&p->a, b->qp), IBV_QPS_RTS);
	mw_reconnect(p, b->qp);
}
