/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting, polling and events, with random values; see verbs_args.c. */
#include <fcntl.h>

#include "verbs_args.h"

static struct ibv_sge any_sge(bool readable)
{
	const struct ibv_mr *mr = pick(&v.mrs);
	struct ibv_sge g = {
		.addr = (uintptr_t)v.memory + draw(MEMORY / 2),
		.length = draw(3) ? draw(2000) : draw(MEMORY / 2),
		.lkey = mr && draw(8) ? mr->lkey : number(),
	};

	if (!readable && one_in(10))
		g.addr = (uint64_t)number() << 20;
	if (!readable && one_in(10))
		g.length = number();
	return g;
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
		const struct ibv_mr *mr = pick(&v.mrs);
		bool is_inline = one_in(4);

		for (int k = 0; k < 8; k++)
			sge[i][k] = any_sge(is_inline);
		wr[i] = (struct ibv_send_wr){
			.wr_id = number(), .sg_list = sge[i],
			.next = i + 1 < count ? &wr[i + 1] : NULL,
			.num_sge = one_in(12) && !is_inline ?
					   -(int)draw(3) : (int)draw(9),
			.opcode = (enum ibv_wr_opcode)mostly(12),
			.send_flags = flags(0x7) |
				      (is_inline ? IBV_SEND_INLINE : 0),
			.imm_data = number(),
		};
		if (!is_inline)
			wr[i].send_flags &= ~(unsigned)IBV_SEND_INLINE;
		if (qp->qp_type == IBV_QPT_UD) {
			wr[i].wr.ud.ah = pick(&v.ahs);
			wr[i].wr.ud.remote_qpn = any_qpn();
			wr[i].wr.ud.remote_qkey = mostly(3);
			continue;
		}
		/* rdma and atomic begin alike. */
		wr[i].wr.atomic.remote_addr = mr ? (uintptr_t)mr->addr +
						    draw(1000) : number();
		wr[i].wr.rdma.rkey = mr ? mr->rkey : number();
		if (wr[i].opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
		    wr[i].opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
			wr[i].wr.atomic.rkey = mr ? mr->rkey : number();
	}
	ret = ibv_post_send(qp, wr, &bad);
	if (!done(ret))
		must(bad >= wr && bad < wr + count);
}

void call_build_send(void)
{
	struct ibv_qp *qp = pick(&v.qps);
	struct ibv_qp_ex *x = qp ? ibv_qp_to_qp_ex(qp) : NULL;

	CALL("ibv_wr_*");
	if (!x)
		return;
	ibv_wr_start(x);
	for (unsigned n = draw(5); n > 0; n--) {
		struct ibv_sge g[8];

		for (int k = 0; k < 8; k++)
			g[k] = any_sge(true);
		x->wr_id = number();
		x->wr_flags = flags(0x7);
		ibv_wr_send(x);
		if (qp->qp_type == IBV_QPT_UD)
			ibv_wr_set_ud_addr(x, pick(&v.ahs), any_qpn(),
					   mostly(3));
		if (draw(2))
			ibv_wr_set_sge_list(x, draw(9), g);
		else if (draw(2))
			ibv_wr_set_inline_data(x, v.memory, mostly(400) % MEMORY);
		else
			ibv_wr_set_sge(x, g[0].lkey, g[0].addr, g[0].length);
	}
	if (one_in(3))
		ibv_wr_abort(x);
	else
		done(ibv_wr_complete(x));
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
