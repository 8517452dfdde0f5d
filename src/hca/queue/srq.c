/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Shared receive queues: one receive queue for several QPs, with an event when
 * fewer entries than a limit are left (InfiniBand specification volume 1, 10.2.9).
 * An XRC SRQ has a number, by which senders select it, and a CQ. QPs are not
 * attached to it: the target QPs of its XRC domain deliver to it (annex A14).
 *
 * IBV_EVENT_SRQ_ERR is never raised: entries are in memory that only the adapter
 * writes, so reading one cannot fail.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/event/async.h"
#include "hca/hca.h"
#include "hca/host/settings.h"
#include "hca/memory/domain.h"
#include "hca/object/live.h"
#include "hca/object/quota.h"
#include "hca/queue/post.h"
#include "hca/share/process.h"

static int check_sizes(const struct ibv_srq_attr *attr)
{
	return attr->max_wr == 0 || attr->max_wr > HCA_MAX_QP_WR ||
			       attr->max_sge > HCA_MAX_SGE ?
		       -EINVAL :
		       0;
}

static int srq_alloc(struct ibv_pd *ibpd, struct ibv_srq_attr *attr,
		     void *srq_context, struct hca_srq **out)
{
	struct hca_srq *srq;
	int ret;

	if (!hca_live(ibpd, HCA_PD))
		return -EINVAL;
	if (hca_without(ibpd->context) & HCA_WITHOUT_SRQ)
		return -EOPNOTSUPP;
	ret = check_sizes(attr);
	if (ret)
		return ret;
	ret = hca_quota_take(HCA_QUOTA_SRQ);
	if (ret)
		return ret;
	ret = -ENOMEM;
	srq = calloc(1, sizeof(*srq));
	if (srq)
		ret = hca_rq_init(&srq->rq, attr->max_wr, attr->max_sge,
				  hca_pd(ibpd), HCA_RESOURCE_SHARED_RECV_QUEUE,
				  &srq->memory);
	if (ret) {
		free(srq);
		hca_quota_give(HCA_QUOTA_SRQ);
		return ret;
	}
	srq->ibv.context = ibpd->context;
	srq->ibv.srq_context = srq_context;
	srq->ibv.pd = ibpd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
	/* The limit is armed by ibv_modify_srq() only. */
	attr->srq_limit = 0;
	hca_pd_get(hca_pd(ibpd));
	*out = srq;
	return 0;
}

static void srq_free(struct hca_srq *srq)
{
	hca_memory_free(&srq->memory, HCA_RESOURCE_SHARED_RECV_QUEUE);
	hca_pd_put(hca_pd(srq->ibv.pd));
	pthread_mutex_destroy(&srq->ibv.mutex);
	pthread_cond_destroy(&srq->ibv.cond);
	free(srq);
	hca_quota_give(HCA_QUOTA_SRQ);
}

int hca_srq_create(struct ibv_pd *ibpd, struct ibv_srq_init_attr *init,
		   struct ibv_srq **out)
{
	struct hca_srq *srq;
	int ret = srq_alloc(ibpd, &init->attr, init->srq_context, &srq);

	if (ret)
		return ret;
	hca_live_begin(&srq->ibv, HCA_SRQ);
	*out = &srq->ibv;
	return 0;
}

static int create_xrc(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *a,
		      struct ibv_srq **out)
{
	const uint32_t needed = IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ;
	struct hca_srq *srq;
	int ret;

	if ((a->comp_mask & needed) != needed || !a->xrcd || !a->cq ||
	    !hca_live(a->xrcd, HCA_XRCD) || !hca_live(a->cq, HCA_CQ) ||
	    a->xrcd->context != ctx || a->cq->context != ctx)
		return -EINVAL;
	ret = srq_alloc(a->pd, &a->attr, a->srq_context, &srq);
	if (ret)
		return ret;
	srq->xrcd = hca_xrcd(a->xrcd);
	srq->cq = hca_cq(a->cq);
	ret = hca_srqn_alloc(srq);
	if (ret) {
		srq_free(srq);
		return ret;
	}
	srq->ibv.handle = srq->number;
	memset(srq->counters, 0, sizeof(*srq->counters));
	atomic_fetch_add(&srq->xrcd->users, 1);
	atomic_fetch_add(&srq->cq->users, 1);
	srq->pub->xrcd = srq->xrcd->id;
	atomic_store(&srq->pub->pd_id, hca_pd(a->pd)->id);
	atomic_store(&srq->pub->srqn, srq->number);
	hca_live_begin(&srq->ibv, HCA_SRQ);
	*out = &srq->ibv;
	return 0;
}

int hca_srq_create_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *a,
		      struct ibv_srq **out)
{
	enum ibv_srq_type type = a->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ?
					 a->srq_type :
					 IBV_SRQT_BASIC;

	if (a->comp_mask >= IBV_SRQ_INIT_ATTR_RESERVED)
		return -EINVAL;
	/* Tag matching is not supported, nor its attributes with another type. */
	if (type == IBV_SRQT_TM || (a->comp_mask & IBV_SRQ_INIT_ATTR_TM))
		return -EOPNOTSUPP;
	if (!(a->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !hca_live(a->pd, HCA_PD) ||
	    a->pd->context != ctx)
		return -EINVAL;
	if (type == IBV_SRQT_XRC)
		return create_xrc(ctx, a, out);
	if (type != IBV_SRQT_BASIC)
		return -EINVAL;
	/* struct ibv_srq_init_attr_ex begins with the members of the other; ibv_create_srq_ex(3)
	 * relies on this, too. */
	return hca_srq_create(a->pd, (struct ibv_srq_init_attr *)a, out);
}

int hca_srq_number(struct ibv_srq *ibsrq, uint32_t *number)
{
	const struct hca_srq *srq = hca_srq(ibsrq);

	if (!srq->xrcd)
		return -EINVAL;
	*number = srq->number;
	return 0;
}

/* If one of the values is refused, nothing is changed (ibv_modify_srq(3)). */
int hca_srq_modify(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask)
{
	struct hca_srq *srq = hca_srq(ibsrq);
	uint32_t depth, limit;

	if (!hca_live(ibsrq, HCA_SRQ))
		return -EINVAL;
	depth = mask & IBV_SRQ_MAX_WR ? attr->max_wr : srq->rq.limit;
	limit = mask & IBV_SRQ_LIMIT ? attr->srq_limit :
				       atomic_load(&srq->event_below);
	if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) || depth == 0 ||
	    depth > HCA_MAX_QP_WR || limit > depth)
		return -EINVAL;
	if (mask & IBV_SRQ_MAX_WR) {
		int ret = hca_rq_resize(&srq->rq, depth, hca_pd(ibsrq->pd),
					HCA_RESOURCE_SHARED_RECV_QUEUE,
					&srq->memory);

		if (ret)
			return ret;
	}
	if (mask & IBV_SRQ_LIMIT) {
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

	if (!hca_live(ibsrq, HCA_SRQ))
		return -EINVAL;
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

	if (!hca_live(ibsrq, HCA_SRQ))
		return -EINVAL;
	if (atomic_load(&srq->users) > 0)
		return -EBUSY;
	hca_live_end(ibsrq, HCA_SRQ);
	if (srq->xrcd) {
		atomic_store(&srq->pub->srqn, 0);
		hca_srqn_hide(srq->number);
		hca_fence_srq(srq);
		hca_fence_qp(NULL);
		hca_counters_retire_srq(srq);
		hca_number_free(srq->number);
		atomic_fetch_sub(&srq->cq->users, 1);
		atomic_fetch_sub(&srq->xrcd->users, 1);
	}
	hca_async_srq_forget(srq);
	srq_free(srq);
	return 0;
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
