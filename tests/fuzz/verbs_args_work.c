/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting, polling and events, with random values; see verbs_args.c. */
#include <fcntl.h>

#include "verbs_args.h"

struct ibv_sge any_sge(bool readable)
{
	const struct ibv_mr *mr = pick(&v.mrs);
	struct ibv_sge g = {
		.addr = (uintptr_t)v.memory + draw(MEMORY / 2),
		.length = draw(3) ? draw(draw(2) ? 200 : 2000) :
				    draw(MEMORY / 2),
		.lkey = mr && draw(8) ? mr->lkey : number(),
	};

	if (!readable && one_in(10))
		g.addr = (uint64_t)number() << 20;
	if (!readable && one_in(10))
		g.length = number();
	return g;
}

/* The part of a request that is its operation's; valid mostly, or anything but
 * pointers. */
static void any_operation(struct ibv_send_wr *wr, const struct ibv_qp *qp)
{
	const struct ibv_mr *mr = pick(&v.mrs);
	uint32_t rkey = mr && draw(8) ? mr->rkey : number();
	uint64_t at = mr && draw(8) ? (uintptr_t)mr->addr + draw(1000) : number();

	any_words(&wr->wr, sizeof(wr->wr));
	any_words(&wr->qp_type, sizeof(wr->qp_type));
	any_words(&wr->bind_mw, sizeof(wr->bind_mw));
	wr->imm_data = one_in(2) ? rkey : number();
	wr->qp_type.xrc.remote_srqn = any_srqn();
	if (wr->opcode == IBV_WR_TSO) {
		wr->tso.hdr = v.memory;
	} else {
		wr->bind_mw.mw = one_in(8) ? NULL : pick(&v.mws);
		if (wr->bind_mw.mw && draw(2))
			wr->bind_mw.rkey = ibv_inc_rkey(wr->bind_mw.mw->rkey);
		wr->bind_mw.bind_info = any_bind_info();
	}
	if (qp->qp_type == IBV_QPT_UD) {
		wr->wr.ud.ah = pick(&v.ahs);
		wr->wr.ud.remote_qpn = any_qpn();
		wr->wr.ud.remote_qkey = one_in(4) ? number() : draw(3);
		return;
	}
	/* rdma and atomic begin alike. */
	wr->wr.atomic.remote_addr = at;
	if (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	    wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr->wr.atomic.rkey = rkey;
	else
		wr->wr.rdma.rkey = rkey;
}

void call_post_send(void)
{
	struct ibv_qp *qp = pick(&v.qps);
	struct ibv_send_wr wr[4], *bad = NULL;
	struct ibv_sge sge[4][8];
	int count = 1 + (int)draw(4);
	int ret;

	CALL("ibv_post_send");
	if (!qp)
		return;
	for (int i = 0; i < count; i++) {
		bool is_inline = one_in(4);

		for (int k = 0; k < 8; k++)
			sge[i][k] = any_sge(is_inline);
		wr[i] = (struct ibv_send_wr){
			.wr_id = number(), .sg_list = sge[i],
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.num_sge = one_in(12) && !is_inline ?
					   -(int)draw(3) :
					   (int)draw(draw(2) ? 2 : 9),
			/* Few services have all. */
			.opcode = draw(2) ? IBV_WR_SEND :
					    (enum ibv_wr_opcode)mostly(12),
			.send_flags = one_in(12) ? number() : flags(0x7),
		};
		/* More than there are, which must not be looked at. */
		if (one_in(20))
			wr[i].num_sge = (int)(number() | 1u << 6);
		wr[i].send_flags &= ~(unsigned)IBV_SEND_INLINE;
		if (is_inline)
			wr[i].send_flags |= IBV_SEND_INLINE;
		if (one_in(6))
			sge[i][0].length = 8;
		any_operation(&wr[i], qp);
	}
	ret = ibv_post_send(qp, wr, &bad);
	if (!done(ret))
		must(bad >= wr && bad < wr + count);
}

void call_post_recv(void)
{
	struct ibv_qp *qp = pick(&v.qps);
	struct ibv_srq *srq = pick(&v.srqs);
	struct ibv_sge sge[8];
	struct ibv_recv_wr wr[2], *bad = NULL;
	int ret = 0;

	CALL("ibv_post_recv");
	for (int i = 0; i < 8; i++)
		sge[i] = any_sge(false);
	for (int i = 0; i < 2; i++)
		wr[i] = (struct ibv_recv_wr){
			.wr_id = number(), .next = i ? NULL : &wr[1],
			.sg_list = sge,
			.num_sge = one_in(12) ? -(int)draw(3) : (int)draw(9),
		};
	if (draw(2) && qp)
		ret = ibv_post_recv(qp, wr, &bad);
	else if (srq)
		ret = ibv_post_srq_recv(srq, wr, &bad);
	if (!done(ret))
		must(bad == &wr[0] || bad == &wr[1]);
}

void call_poll_cq(void)
{
	struct ibv_cq *cq = pick(&v.cqs);
	struct ibv_wc wc[8];
	int most = one_in(8) ? -(int)draw(3) : (int)draw(9), n;

	CALL("ibv_poll_cq");
	if (!cq)
		return;
	n = ibv_poll_cq(cq, most, wc);
	/* Negative when the queue has overrun. */
	must(n <= (most > 0 ? most : 0));
	for (int i = 0; i < n; i++)
		must(wc[i].status <= IBV_WC_TM_RNDV_INCOMPLETE);
	CALL("ibv_req_notify_cq");
	done(ibv_req_notify_cq(cq, (int)draw(2)));
}

void call_start_poll(void)
{
	struct ibv_cq_ex *cq = pick(&v.ex_cqs);
	struct ibv_poll_cq_attr a = { .comp_mask = one_in(8) ? number() : 0 };
	int ret;

	CALL("ibv_start_poll");
	if (!cq)
		return;
	ret = ibv_start_poll(cq, &a);
	if (!done(ret))
		return;
	do {
		must(cq->status <= IBV_WC_TM_RNDV_INCOMPLETE);
		ibv_wc_read_opcode(cq);
		ibv_wc_read_vendor_err(cq);
		ibv_wc_read_wc_flags(cq);
	} while (draw(4) && done(ibv_next_poll(cq)));
	ibv_end_poll(cq);
}

void call_modify_cq(void)
{
	struct ibv_modify_cq_attr a = {
		.attr_mask = flags(3),
		.moderate = { (uint16_t)number(), (uint16_t)number() },
	};
	struct ibv_cq *cq = pick(&v.cqs);

	CALL("ibv_modify_cq");
	if (cq)
		done(ibv_modify_cq(cq, &a));
}

void call_events(void)
{
	struct ibv_comp_channel *ch = pick(&v.channels);
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *context;

	CALL("ibv_get_cq_event");
	if (ch && done_or_minus1(ibv_get_cq_event(ch, &cq, &context)))
		ibv_ack_cq_events(cq, 1);
	CALL("ibv_get_async_event");
	if (done_or_minus1(ibv_get_async_event(v.ctx, &event)))
		ibv_ack_async_event(&event);
}
