/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Posting by builder calls, in any order and for any operation; memory windows;
 * XRC domains, SRQs and queue pairs. With random values; see verbs_args.c.
 */
#include <fcntl.h>

#include "verbs_args.h"

void any_words(void *to, size_t bytes)
{
	for (size_t i = 0; i + 4 <= bytes; i += 4) {
		uint32_t n = number();

		for (int k = 0; k < 4; k++)
			((uint8_t *)to)[i + (size_t)k] = (uint8_t)(n >> 8 * k);
	}
}

uint32_t any_srqn(void)
{
	struct ibv_srq *srq = pick(&v.xrc_srqs);
	uint32_t n;

	if (!srq || !draw(8) || ibv_get_srq_num(srq, &n))
		n = draw(1024);
	return n | (one_in(4) ? number() << 24 : 0);
}

struct ibv_mw_bind_info any_bind_info(void)
{
	struct ibv_mw_bind_info b;
	const struct ibv_mr *mr;

	any_words(&b, sizeof(b));
	b.mr = one_in(6) ? NULL : pick(&v.mrs);
	mr = b.mr;
	if (mr && draw(3)) {
		b.addr = (uintptr_t)mr->addr + draw(100);
		b.length = draw(1000);
		b.mw_access_flags = flags(0x3f);
	}
	return b;
}

/* ---- objects ---- */

void call_xrc(void)
{
	struct ibv_xrcd_init_attr xa = {
		.comp_mask = one_in(8) ? number() : 3, .fd = -1,
		.oflags = one_in(8) ? (int)number() : O_CREAT,
	};
	struct ibv_srq_init_attr_ex sa;
	struct ibv_srq *srq;
	uint32_t n;

	CALL("ibv_open_xrcd");
	if (has_room(&v.xrcds))
		keep(&v.xrcds, pointer(ibv_open_xrcd(v.ctx, &xa)));
	CALL("ibv_create_srq_ex");
	any_words(&sa, sizeof(sa));
	sa.srq_context = NULL;
	sa.attr.max_wr = mostly(100);
	sa.attr.max_sge = mostly(6);
	sa.comp_mask = one_in(6) ? number() :
				   IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
					   IBV_SRQ_INIT_ATTR_XRCD |
					   IBV_SRQ_INIT_ATTR_CQ;
	sa.srq_type = one_in(6) ? (enum ibv_srq_type)number() : IBV_SRQT_XRC;
	sa.pd = pick(&v.pds);
	sa.xrcd = pick(&v.xrcds);
	sa.cq = pick(&v.cqs);
	srq = has_room(&v.srqs) && has_room(&v.xrc_srqs) ?
		      pointer(ibv_create_srq_ex(v.ctx, &sa)) : NULL;
	CALL("ibv_get_srq_num");
	if (srq && done(ibv_get_srq_num(srq, &n)))
		keep(&v.xrc_srqs, srq);
	else
		keep(&v.srqs, srq);
}

void call_create_xrc_qp(void)
{
	struct ibv_qp_init_attr_ex a;

	CALL("ibv_create_qp_ex, XRC");
	if (!has_room(&v.qps))
		return;
	any_words(&a, sizeof(a));
	a.qp_context = NULL;
	a.send_cq = pick(&v.cqs);
	a.recv_cq = pick(&v.cqs);
	a.srq = NULL;
	a.cap = (struct ibv_qp_cap){ mostly(40), mostly(40), mostly(8), mostly(8),
				     mostly(300) };
	if (a.cap.max_send_wr > 1000)
		a.cap.max_send_wr = 1000;
	a.qp_type = draw(2) ? IBV_QPT_XRC_SEND : IBV_QPT_XRC_RECV;
	a.pd = pick(&v.pds);
	a.xrcd = pick(&v.xrcds);
	a.rwq_ind_tbl = NULL;
	a.rx_hash_conf.rx_hash_key = NULL;
	if (draw(8)) {
		a.comp_mask = a.qp_type == IBV_QPT_XRC_SEND ?
				      IBV_QP_INIT_ATTR_PD |
					      IBV_QP_INIT_ATTR_SEND_OPS_FLAGS :
				      IBV_QP_INIT_ATTR_XRCD;
		a.send_ops_flags = flags(0x3ff) & ~0x184u;
	}
	keep(&v.qps, pointer(ibv_create_qp_ex(v.ctx, &a)));
}

void call_window(void)
{
	struct ibv_mw *mw;
	struct ibv_mw_bind b = { .wr_id = number(), .send_flags = flags(0xf),
				 .bind_info = any_bind_info() };
	struct ibv_qp *qp = pick(&v.qps);

	CALL("ibv_alloc_mw");
	if (has_room(&v.mws) && v.pds.count)
		keep(&v.mws, pointer(ibv_alloc_mw(pick(&v.pds),
						  (enum ibv_mw_type)mostly(3))));
	mw = pick(&v.mws);
	CALL("ibv_bind_mw");
	if (mw && qp)
		done(ibv_bind_mw(qp, mw, &b));
	CALL("ibv_dealloc_mw");
	if (mw && one_in(3) && done(ibv_dealloc_mw(mw)))
		forget(&v.mws, mw);
}

/* ---- builders ---- */

static void begin(struct ibv_qp_ex *x)
{
	const struct ibv_mr *mr = pick(&v.mrs);
	uint32_t rkey = mr && draw(6) ? mr->rkey : number();
	uint64_t at = mr && draw(6) ? (uintptr_t)mr->addr + draw(1000) : number();
	struct ibv_mw_bind_info info = any_bind_info();
	struct ibv_mw *mw = pick(&v.mws);

	switch (draw(11)) {
	case 0: ibv_wr_send_imm(x, number()); break;
	case 1: ibv_wr_send_inv(x, rkey); break;
	case 2: ibv_wr_local_inv(x, mw && draw(2) ? mw->rkey : rkey); break;
	case 3:
		if (mw)
			ibv_wr_bind_mw(x, mw, draw(2) ? ibv_inc_rkey(mw->rkey) :
							number(), &info);
		break;
	case 4: ibv_wr_rdma_write(x, rkey, at); break;
	case 5: ibv_wr_rdma_write_imm(x, rkey, at, number()); break;
	case 6: ibv_wr_rdma_read(x, rkey, at); break;
	case 7: ibv_wr_atomic_cmp_swp(x, rkey, at & ~7ull, number(), number()); break;
	case 8: ibv_wr_atomic_fetch_add(x, rkey, at, number()); break;
	default: ibv_wr_send(x); break;
	}
}

static void set_data(struct ibv_qp_ex *x)
{
	struct ibv_data_buf bufs[4];
	struct ibv_sge g[40];

	for (int k = 0; k < 40; k++)
		g[k] = any_sge(false);
	for (int k = 0; k < 4; k++)
		bufs[k] = (struct ibv_data_buf){ v.memory + draw(1000),
						 mostly(100) % MEMORY };
	switch (draw(6)) {
	case 0:
		ibv_wr_set_sge_list(x, one_in(8) ? 9 + draw(32) : draw(9), g);
		break;
	case 1:
		ibv_wr_set_inline_data(x, v.memory, mostly(400) % MEMORY);
		break;
	case 2:
		ibv_wr_set_inline_data_list(x, draw(5), bufs);
		break;
	case 3:
		g[0].length = 8;
		/* fall through */
	default:
		ibv_wr_set_sge(x, g[0].lkey, g[0].addr, g[0].length);
		break;
	}
}

void call_build_send(void)
{
	struct ibv_qp *qp = pick(&v.qps);
	struct ibv_qp_ex *x = qp ? ibv_qp_to_qp_ex(qp) : NULL;

	CALL("ibv_wr_*");
	if (!x)
		return;
	ibv_wr_start(x);
	for (unsigned n = draw(6); n > 0; n--) {
		bool strange = one_in(20); /* setters of others, twice, before all */

		x->wr_id = number();
		x->wr_flags = one_in(10) ? number() : flags(0xf);
		if (!strange || draw(2))
			begin(x);
		if (qp->qp_type == IBV_QPT_UD ? draw(40) > 0 : strange)
			ibv_wr_set_ud_addr(x, one_in(40) ? NULL : pick(&v.ahs),
					   any_qpn(), number());
		if (qp->qp_type == IBV_QPT_XRC_SEND || strange)
			ibv_wr_set_xrc_srqn(x, any_srqn());
		for (unsigned k = strange ? draw(4) : 1; k > 0; k--)
			set_data(x);
	}
	if (one_in(4))
		ibv_wr_abort(x);
	else
		done(ibv_wr_complete(x));
}
