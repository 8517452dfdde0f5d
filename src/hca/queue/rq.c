/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Receive queues. Posting and consuming have separate locks, so that a long copy
 * into a receive buffer does not delay an application that posts the next one.
 */
#include <errno.h>
#include <string.h>

#include "hca/memory/domain.h"
#include "hca/queue/receive.h"
#include "util/probe.h"

int hca_rq_init(struct hca_rq *rq, uint32_t depth, uint32_t max_sge,
		struct hca_pd *pd, enum hca_resource kind,
		struct hca_memory *memory)
{
	uint32_t size = 1;
	int ret;

	while (size < depth)
		size <<= 1;
	rq->limit = depth;
	rq->mask = size - 1;
	rq->max_sge = max_sge;
	rq->stride = (uint32_t)(sizeof(struct hca_rwqe) +
				max_sge * sizeof(struct ibv_sge));
	ret = hca_memory_alloc(pd, (size_t)size * rq->stride, kind, memory);
	rq->wqes = memory->at;
	return ret;
}

void hca_rq_reset(struct hca_rq *rq)
{
	hca_lock(&rq->post_lock);
	hca_lock(&rq->consume_lock);
	atomic_store(&rq->tail, atomic_load(&rq->head));
	hca_unlock(&rq->consume_lock);
	hca_unlock(&rq->post_lock);
}

int hca_rq_resize(struct hca_rq *rq, uint32_t depth, struct hca_pd *pd,
		  enum hca_resource kind, struct hca_memory *memory)
{
	struct hca_memory fresh, old = *memory;
	uint32_t size = 1, head, tail;
	int ret;

	while (size < depth)
		size <<= 1;
	ret = hca_memory_alloc(pd, (size_t)size * rq->stride, kind, &fresh);
	if (ret)
		return ret;
	hca_lock(&rq->post_lock);
	hca_lock(&rq->consume_lock);
	head = atomic_load(&rq->head);
	tail = atomic_load(&rq->tail);
	if (head - tail > depth) {
		ret = -EINVAL;
		old = fresh;
		goto out;
	}
	for (uint32_t i = tail; i != head; i++)
		memcpy((uint8_t *)fresh.at + (size_t)(i & (size - 1)) * rq->stride,
		       hca_rq_entry(rq, i), rq->stride);
	rq->wqes = fresh.at;
	rq->mask = size - 1;
	rq->limit = depth;
	*memory = fresh;
out:
	hca_unlock(&rq->consume_lock);
	hca_unlock(&rq->post_lock);
	hca_memory_free(&old, kind);
	return ret;
}

static inline int post(struct hca_rq *rq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad)
{
	int ret = 0;

	hca_lock(&rq->post_lock);
	for (; wr; wr = wr->next) {
		uint32_t head = atomic_load_explicit(&rq->head,
						     memory_order_relaxed);
		struct hca_rwqe *e;

		if (unlikely((uint32_t)wr->num_sge > rq->max_sge)) {
			ret = EINVAL;
			break;
		}
		if (unlikely(head - atomic_load_explicit(
					    &rq->tail, memory_order_acquire) >=
			     rq->limit)) {
			ret = ENOMEM;
			break;
		}
		e = hca_rq_entry(rq, head);
		e->wr_id = wr->wr_id;
		e->num_sge = (uint32_t)wr->num_sge;
		for (uint32_t i = 0; i < e->num_sge; i++)
			e->sge[i] = wr->sg_list[i];
		PROBE(post_recv, rq->qpn, wr->wr_id, wr->num_sge);
		atomic_store_explicit(&rq->head, head + 1,
				      memory_order_release);
	}
	hca_unlock(&rq->post_lock);
	if (unlikely(ret))
		*bad = wr;
	return ret;
}

int hca_rq_post(struct hca_rq *rq, struct ibv_recv_wr *wr,
		struct ibv_recv_wr **bad)
{
	return post(rq, wr, bad);
}

int hca_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad)
{
	struct hca_qp *qp = hca_qp(ibqp);
	int ret;

	if (unlikely(hca_qp_state(qp) == IBV_QPS_RESET || qp->srq)) {
		*bad = wr;
		return EINVAL;
	}
	hca_enter();
	ret = post(&qp->rq, wr, bad);
	/* An XRC initiator has no receive queue, so ENOMEM (it is full) would be wrong. */
	if (unlikely(ret) && qp->ibv.qp_type == IBV_QPT_XRC_SEND)
		ret = EINVAL;
	if (unlikely(hca_qp_state(qp) == IBV_QPS_ERR)) {
		/* Pairs with the fence in hca_flush_promised(). */
		atomic_thread_fence(memory_order_seq_cst);
		if (!qp->promising.closing)
			hca_rq_flush(qp);
	}
	hca_promise_posted(qp);
	hca_leave();
	return ret;
}
