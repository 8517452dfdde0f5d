/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: one receive queue of several QPs, with an event when
 * fewer entries than a limit are left (InfiniBand specification volume 1, 10.2.9).
 */
#include <errno.h>
#include <stdlib.h>

#include "hca/hca.h"
#include "hca/objects.h"

int hca_srq_create(struct ibv_pd *ibpd, struct ibv_srq_init_attr *init,
		   struct ibv_srq **out)
{
	struct hca_srq *srq;
	int ret;

	if (init->attr.max_wr == 0 || init->attr.max_wr > HCA_MAX_QP_WR ||
	    init->attr.max_sge > HCA_MAX_SGE)
		return -EINVAL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return -ENOMEM;
	ret = hca_rq_init(&srq->rq, init->attr.max_wr, init->attr.max_sge,
			  hca_pd(ibpd), HCA_RESOURCE_SHARED_RECV_QUEUE,
			  &srq->memory);
	if (ret) {
		free(srq);
		return ret;
	}
	srq->ibv.context = ibpd->context;
	srq->ibv.srq_context = init->srq_context;
	srq->ibv.pd = ibpd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	/* The limit is armed by ibv_modify_srq only. */
	init->attr.srq_limit = 0;
	atomic_fetch_add(&hca_pd(ibpd)->users, 1);
	*out = &srq->ibv;
	return 0;
}

int hca_srq_modify(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct hca_srq *srq = hca_srq(ibsrq);

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return -EINVAL;
	if (mask & IBV_SRQ_MAX_WR)
		return -EOPNOTSUPP; /* no resizing: IBV_DEVICE_SRQ_RESIZE is off */
	if (mask & IBV_SRQ_LIMIT) {
		if (attr->srq_limit > srq->rq.limit)
			return -EINVAL;
		hca_lock(&srq->rq.consume_lock);
		atomic_store(&srq->event_below, attr->srq_limit);
		hca_srq_check_limit(srq);
		hca_unlock(&srq->rq.consume_lock);
	}
	return 0;
}

int hca_srq_query(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr)
{
	struct hca_srq *srq = hca_srq(ibsrq);

	*attr = (struct ibv_srq_attr){
		.max_wr = srq->rq.limit,
		.max_sge = srq->rq.max_sge,
		.srq_limit = atomic_load(&srq->event_below),
	};
	return 0;
}

int hca_srq_destroy(struct ibv_srq *ibsrq)
{
	struct hca_srq *srq = hca_srq(ibsrq);

	if (atomic_load(&srq->users) > 0)
		return -EBUSY;
	hca_async_srq_forget(srq);
	hca_memory_free(&srq->memory, HCA_RESOURCE_SHARED_RECV_QUEUE);
	atomic_fetch_sub(&hca_pd(ibsrq->pd)->users, 1);
	pthread_mutex_destroy(&ibsrq->mutex);
	pthread_cond_destroy(&ibsrq->cond);
	free(srq);
	return 0;
}

void hca_srq_check_limit(struct hca_srq *srq)
{
	uint32_t limit = atomic_load_explicit(&srq->event_below,
					      memory_order_relaxed);

	if (!limit || atomic_load_explicit(&srq->rq.head, memory_order_acquire) -
				      atomic_load_explicit(
					      &srq->rq.tail,
					      memory_order_relaxed) >=
			      limit)
		return;
	atomic_store(&srq->event_below, 0); /* once */
	hca_async_srq_event(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

int hca_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad)
{
	int ret;

	hca_enter();
	ret = hca_rq_post(&hca_srq(ibsrq)->rq, wr, bad);
	hca_leave();
	return ret;
}
