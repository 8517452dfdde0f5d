/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests by ibv_post_send(). */
#include "preload/post.h"

#include "preload/listener.h"
#include "preload/record.h"
#include "preload/saved.h"

static void set_remote(struct preload_request *r, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_WRITE_WITH_IMM:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		r->remote_addr = wr->wr.rdma.remote_addr;
		r->rkey = wr->wr.rdma.rkey;
		break;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		r->remote_addr = wr->wr.atomic.remote_addr;
		r->rkey = wr->wr.atomic.rkey;
		break;
	default:
		break;
	}
}

static struct preload_request request_of(const struct ibv_send_wr *wr, bool completes_all)
{
	bool is_inline = wr->send_flags & IBV_SEND_INLINE;
	struct preload_request r = {
		.opcode = wr->opcode,
		.wr_id = wr->wr_id,
		.signaled = completes_all || (wr->send_flags & IBV_SEND_SIGNALED),
		.sge = is_inline ? NULL : wr->sg_list,
		.sge_count = is_inline ? 0 : wr->num_sge,
	};

	for (int i = 0; i < wr->num_sge; i++)
		r.bytes += wr->sg_list[i].length;
	set_remote(&r, wr);
	return r;
}

int post_heard(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct record *record = record_of(qp);
	bool all = record && record->completes_all;
	int ret;

	for (const struct ibv_send_wr *w = wr; w; w = w->next) {
		struct preload_request r = request_of(w, all);

		preload_listener.posting(qp, &r);
	}
	ret = saved_find(qp->context)->ops.post_send(qp, wr, bad);
	for (const struct ibv_send_wr *w = ret ? *bad : NULL; w; w = w->next) {
		struct preload_request r = request_of(w, all);

		preload_listener.refused(qp, &r, ret);
	}
	return ret;
}

int preload_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	const struct saved *s = saved_find(qp->context);

	return (s->key ? s->ops.post_send : qp->context->ops.post_send)(qp, wr, bad);
}

uint32_t preload_more_send_wr(const struct ibv_qp *qp)
{
	const struct record *r = record_of(qp);

	return r ? r->more_send_wr : 0;
}
