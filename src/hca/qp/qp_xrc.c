/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * XRC target QPs: the responding half of an extended reliable connection
 * (InfiniBand specification volume 1, annex A14). A target has a state, access rights and
 * asynchronous events. It has no queues, CQ or protection domain; those of the XRC SRQ are
 * used that a message names.
 *
 * A target exists as long as it is open anywhere in the process. So ibv_create_qp_ex() and
 * ibv_open_qp() return handles, and the last one that is destroyed destroys the QP. Other
 * processes cannot open it (docs/differences.md).
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hca/event/async.h"
#include "hca/hca.h"
#include "hca/host/names.h"
#include "hca/limits.h"
#include "hca/memory/promising.h"
#include "hca/object/context.h"
#include "hca/object/live.h"
#include "hca/object/public.h"
#include "hca/object/srq.h"
#include "hca/path/path.h"
#include "hca/qp/route.h"
#include "hca/qp/xrc.h"
#include "hca/queue/flush.h"
#include "hca/run/progress.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"
#include "util/spin.h"

/* Protects the lists of handles and the lookup of targets. */
static pthread_mutex_t targets_lock = PTHREAD_MUTEX_INITIALIZER;

void hca_xrc_targets_forked(void)
{
	pthread_mutex_init(&targets_lock, NULL);
}

static struct hca_qp *qp_alloc(void)
{
	struct hca_qp *qp =
		aligned_alloc(CACHE_LINE, (sizeof(*qp) + CACHE_LINE - 1) &
						  ~(size_t)(CACHE_LINE - 1));

	if (!qp)
		return NULL;
	memset(qp, 0, sizeof(*qp));
	qp->ibv.qp_type = IBV_QPT_XRC_RECV;
	hca_path_none(qp);
	list_init(&qp->handles);
	list_init(&qp->handle_entry);
	pthread_mutex_init(&qp->ibv.mutex, NULL);
	pthread_cond_init(&qp->ibv.cond, NULL);
	return qp;
}

static void qp_free(struct hca_qp *qp)
{
	pthread_mutex_destroy(&qp->ibv.mutex);
	pthread_cond_destroy(&qp->ibv.cond);
	free(qp);
}

/* The retry timer of a target, which is never armed: it transmits nothing. */
static void never(struct progress_timer *t)
{
}

static int target_new(const struct hca_xrcd_id *domain, uint32_t device,
		      struct hca_qp **out)
{
	struct hca_qp *qp = qp_alloc();
	uint32_t qpn;
	int ret;

	if (!qp)
		return -ENOMEM;
	qp->recv = &qp->rq;
	progress_timer_init(&qp->retry, never);
	ret = hca_qpn_alloc(qp, &qpn);
	if (ret) {
		qp_free(qp);
		return ret;
	}
	qp->ibv.qp_num = qp->ibv.handle = qpn;
	hca_promise_init(qp, hca_flush_promised);
	hca_counters_reset(qp);
	qp->pub->xrcd = *domain;
	atomic_store(&qp->pub->type, IBV_QPT_XRC_RECV);
	atomic_store(&qp->pub->device, device);
	atomic_store(&qp->pub->transport, 0);
	atomic_store(&qp->pub->dest_qpn, 0);
	atomic_store(&qp->pub->pd_id, 0);
	atomic_store(&qp->pub->state, IBV_QPS_RESET);
	atomic_store(&qp->pub->qpn, qpn);
	*out = qp;
	return 0;
}

static void target_end(struct hca_qp *qp)
{
	hca_qp_set_state(qp, IBV_QPS_RESET);
	atomic_store(&qp->pub->qpn, 0);
	hca_counters_retire(qp);
	hca_number_free(qp->ibv.qp_num);
	hca_path_close(qp);
	hca_fence_qp(qp);
	memset(&qp->pub->xrcd, 0, sizeof(qp->pub->xrcd));
	qp_free(qp);
}

static struct hca_qp *handle_new(struct ibv_context *ctx,
				 struct ibv_xrcd *xrcd, void *qp_context)
{
	struct hca_qp *h = qp_alloc();

	if (!h)
		return NULL;
	h->ibv.context = ctx;
	h->ibv.qp_context = qp_context;
	h->xrcd = hca_xrcd(xrcd);
	return h;
}

/* targets_lock is held. */
static void handle_attach(struct hca_qp *h, struct hca_qp *target)
{
	h->target = target;
	h->ibv.qp_num = h->ibv.handle = target->ibv.qp_num;
	h->ibv.state = hca_qp_state(target);
	atomic_fetch_add(&h->xrcd->users, 1);
	spin_lock(&target->handles_lock);
	list_push(&target->handles, &h->handle_entry);
	spin_unlock(&target->handles_lock);
}

int hca_target_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *a,
		      struct ibv_qp **out)
{
	const uint32_t known = IBV_QP_INIT_ATTR_XRCD | IBV_QP_INIT_ATTR_PD |
			       IBV_QP_INIT_ATTR_CREATE_FLAGS;
	struct hca_qp *h, *target;
	int ret;

	if (!(a->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !hca_live(a->xrcd, HCA_XRCD) ||
	    a->xrcd->context != ctx)
		return -EINVAL;
	if ((a->comp_mask & ~known) ||
	    ((a->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) && a->create_flags))
		return -EOPNOTSUPP;
	h = handle_new(ctx, a->xrcd, a->qp_context);
	if (!h)
		return -ENOMEM;
	ret = target_new(&h->xrcd->id,
			 (uint32_t)hca_context(ctx)->device->index, &target);
	if (!ret) {
		ret = hca_context_check(ctx);
		if (ret)
			target_end(target);
	}
	if (ret) {
		qp_free(h);
		return ret;
	}
	/* A target has no queues: sizes requested are ignored. */
	memset(&a->cap, 0, sizeof(a->cap));
	pthread_mutex_lock(&targets_lock);
	handle_attach(h, target);
	pthread_mutex_unlock(&targets_lock);
	hca_live_begin(&h->ibv, HCA_QP);
	*out = &h->ibv;
	return 0;
}

/* The target of this process with that number and domain, or NULL. targets_lock is held. */
static struct hca_qp *target_find(uint32_t qpn, const struct hca_xrcd *xrcd)
{
	struct hca_qp *qp = hca_qp_find(qpn);

	return qp && qp->ibv.qp_type == IBV_QPT_XRC_RECV &&
			       hca_xrcd_same(&qp->pub->xrcd, &xrcd->id) ?
		       qp :
		       NULL;
}

static void found(const struct hca_name_seen *seen, void *arg)
{
	if (!*seen->rest)
		*(bool *)arg = true;
}

/* Does the number belong to another process? */
static bool is_foreign(uint32_t qpn)
{
	uint32_t block = qpn >> HCA_QPN_BLOCK_BITS;
	bool foreign = false;
	char name[32];

	if (qpn > HCA_PSN_MASK || atomic_load(&hca_process.blocks[block]))
		return false;
	snprintf(name, sizeof(name), HCA_NAME_OF_BLOCKS "%u", block);
	hca_names_each(name, found, &foreign);
	if (foreign)
		log_warn("target QP 0x%x is another process's: only its own process can open it",
			 qpn);
	return foreign;
}

int hca_qp_open(struct ibv_context *ctx, const struct ibv_qp_open_attr *a,
		struct ibv_qp **out)
{
	const uint32_t needed = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
				IBV_QP_OPEN_ATTR_TYPE;
	struct hca_qp *h, *target;

	if ((a->comp_mask & needed) != needed ||
	    a->comp_mask >= IBV_QP_OPEN_ATTR_RESERVED || !hca_live(a->xrcd, HCA_XRCD) ||
	    a->xrcd->context != ctx || a->qp_type != IBV_QPT_XRC_RECV)
		return -EINVAL;
	if (hca_context_check(ctx))
		return -EIO;
	h = handle_new(ctx, a->xrcd,
		       a->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? a->qp_context :
								 NULL);
	if (!h)
		return -ENOMEM;
	pthread_mutex_lock(&targets_lock);
	target = target_find(a->qp_num, h->xrcd);
	if (target)
		handle_attach(h, target);
	pthread_mutex_unlock(&targets_lock);
	if (!target) {
		qp_free(h);
		return is_foreign(a->qp_num) ? -EOPNOTSUPP : -EINVAL;
	}
	hca_live_begin(&h->ibv, HCA_QP);
	*out = &h->ibv;
	return 0;
}

void hca_target_put(struct hca_qp *h)
{
	struct hca_qp *target = h->target;
	bool last;

	pthread_mutex_lock(&targets_lock);
	spin_lock(&target->handles_lock);
	list_remove(&h->handle_entry);
	last = list_empty(&target->handles);
	spin_unlock(&target->handles_lock);
	/* Under targets_lock, so that no other thread finds the target. */
	if (last)
		target_end(target);
	pthread_mutex_unlock(&targets_lock);
	hca_async_qp_forget(h);
	atomic_fetch_sub(&h->xrcd->users, 1);
	qp_free(h);
}
