/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory windows (InfiniBand specification volume 1, 10.6.7.2): keys for a part of a
 * region, which work requests bind and invalidate.
 *
 * A window of type 1 is bound and rebound by ibv_bind_mw() and valid for every QP of its
 * protection domain. One of type 2 (2B) is bound by a work request while it is free, valid
 * only for the QP that bound it, and freed by LOCAL_INV or by a peer's SEND with invalidate.
 *
 * Windows are published in the table of keys like regions, and peers check them in the same
 * way. An operation that withdraws a key completes when no peer copies with the key any
 * more; until then hca_local_run() returns -EAGAIN and is called again.
 */
#include <errno.h>
#include <stdlib.h>

#include "hca/hca.h"
#include "hca/host/settings.h"
#include "hca/memory/domain.h"
#include "hca/memory/key.h"
#include "hca/memory/window.h"
#include "hca/object/live.h"
#include "hca/object/mr.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/path/path.h"
#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "util/list.h"
#include "util/spin.h"

/* All windows of the process; under hca_key_lock. */
static struct list windows = { &windows, &windows };

int hca_mw_alloc(struct ibv_pd *ibpd, enum ibv_mw_type type, struct ibv_mw **out)
{
	struct hca_mw *mw;
	int ret;

	if (!hca_live(ibpd, HCA_PD))
		return -EINVAL;
	if (hca_without(ibpd->context) & HCA_WITHOUT_WINDOWS)
		return -EOPNOTSUPP;
	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return -EINVAL;
	if (hca_context_inherited(ibpd->context))
		return -ENODEV;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	ret = hca_key_take(mw, true, &mw->index);
	if (ret) {
		free(mw);
		return ret;
	}
	mw->rkey = hca_key_next(mw->index);
	mw->ibv.context = ibpd->context;
	mw->ibv.pd = ibpd;
	mw->ibv.handle = mw->index;
	mw->ibv.rkey = mw->rkey;
	mw->ibv.type = type;
	hca_pd_get(hca_pd(ibpd));
	spin_lock(&hca_key_lock);
	list_push(&windows, &mw->entry);
	spin_unlock(&hca_key_lock);
	hca_live_begin(&mw->ibv, HCA_MW);
	*out = &mw->ibv;
	return 0;
}

/* ---- states; hca_key_lock is held ---- */

/* Withdraws the key: no access starts with it any more. The region counts the window until
 * mw_release(). */
static void mw_withdraw(struct hca_mw *mw)
{
	hca_key_withdraw(mw->rkey);
	mw->state = HCA_MW_FREE;
	mw->fencing = true;
}

/* No peer copies with the key any more: the region does not count the window any longer. */
static void mw_release(struct hca_mw *mw)
{
	mw->fencing = false;
	if (mw->mr)
		mw->mr->windows--;
	if (mw->qp)
		mw->qp->windows--;
	mw->mr = NULL;
	mw->qp = NULL;
}

static void mw_publish(struct hca_mw *mw, struct hca_qp *qp, struct hca_mr *mr,
		       const struct hca_swqe *e)
{
	bool of_qp = mw->ibv.type == IBV_MW_TYPE_2;
	const struct hca_key as = {
		.access = e->bind.access & HCA_WINDOW_RIGHTS,
		.iova = e->bind.access & IBV_ACCESS_ZERO_BASED ? 0 :
								 e->remote_addr,
		.length = e->bind.length,
		.addr = (uintptr_t)mr->base + (e->remote_addr - mr->iova),
		.pd_id = hca_pd(mw->ibv.pd)->id,
		.qpn = of_qp ? qp->ibv.qp_num : 0,
		.flags = HCA_KEY_WINDOW |
			 (mr->access & IBV_ACCESS_ON_DEMAND ?
				  HCA_KEY_ON_DEMAND : 0u),
		.region_id = mr->region ? mr->region->id : 0,
		.region_offset = hca_mr_region_offset(mr) +
				 (e->remote_addr - mr->iova),
	};

	mw->state = HCA_MW_BOUND;
	mw->mr = mr;
	mr->windows++;
	if (of_qp) {
		mw->qp = qp;
		qp->windows++;
	}
	hca_key_publish(mw->rkey, &as);
}

/* ---- binding ---- */

/* The region that `e` names, or NULL: a window must not be bound to the range or with the access
 * of `e`. */
static struct hca_mr *bind_region(const struct hca_mw *mw,
				  const struct hca_swqe *e)
{
	struct hca_mr *mr = hca_key_mr(hca_key_index(e->imm));
	struct hca_key k;

	if (!mr || !hca_key_look_own(e->imm, &k) ||
	    mr->null ||
	    hca_pd(mr->ibv.pd)->id != hca_pd(mw->ibv.pd)->id ||
	    !(mr->access & IBV_ACCESS_MW_BIND) ||
	    /* remote_addr is a virtual address, a zero-based region has none. */
	    (mr->access & IBV_ACCESS_ZERO_BASED))
		return NULL;
	if ((e->bind.access &
	     (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
	    !(mr->access & IBV_ACCESS_LOCAL_WRITE))
		return NULL;
	if (e->remote_addr < mr->iova || e->bind.length > mr->ibv.length ||
	    e->remote_addr - mr->iova > mr->ibv.length - e->bind.length)
		return NULL;
	return mr;
}

/* Checks `e`. 0 with the region, or with NULL if it only unbinds; or -EINVAL. */
static int bind_check(const struct hca_qp *qp, const struct hca_swqe *e,
		      struct hca_mw *mw, struct hca_mr **region)
{
	*region = NULL;
	if (!mw || hca_pd(mw->ibv.pd)->id != qp->pd->id ||
	    e->bind.access & ~HCA_WINDOW_ACCESS)
		return -EINVAL;
	if (mw->ibv.type == IBV_MW_TYPE_1) {
		if (e->bind.length == 0)
			return 0;
	} else if (mw->state != HCA_MW_FREE || e->bind.length == 0) {
		return -EINVAL;
	}
	*region = bind_region(mw, e);
	return *region ? 0 : -EINVAL;
}

static int run_bind(struct hca_qp *qp, struct hca_swqe *e, bool waited)
{
	uint32_t quiet = 0; /* a key with which no peer copies any more */
	struct hca_mr *mr;
	struct hca_mw *mw;
	int ret;

again:
	spin_lock(&hca_key_lock);
	mw = hca_key_mw(e->bind.window);
	ret = bind_check(qp, e, mw, &mr);
	if (ret)
		goto out;
	if (mw->state == HCA_MW_BOUND)
		mw_withdraw(mw);
	if (mw->fencing && mw->rkey != quiet) {
		quiet = mw->rkey;
		spin_unlock(&hca_key_lock);
		if (!waited && hca_fence_key_busy(quiet))
			return -EAGAIN;
		goto again;
	}
	mw_release(mw);
	mw->rkey = e->rkey;
	if (mr)
		mw_publish(mw, qp, mr, e);
out:
	spin_unlock(&hca_key_lock);
	return ret;
}

/* ---- invalidation ---- */

/* The window with key `rkey`, or NULL: the QP must not invalidate it (10.6.5.2). Work requests
 * never invalidate regions that were registered by a verb. */
static struct hca_mw *bound_window(const struct hca_qp *qp, uint32_t rkey)
{
	struct hca_mw *mw = hca_key_mw(hca_key_index(rkey));

	if (!mw || mw->rkey != rkey || mw->state != HCA_MW_BOUND ||
	    mw->ibv.type != IBV_MW_TYPE_2 || mw->qp != qp)
		return NULL;
	return mw;
}

static int run_invalidate(struct hca_qp *qp, struct hca_swqe *e, bool waited)
{
	struct hca_mw *mw;

	if (!(e->flags & HCA_SWQE_STARTED)) {
		spin_lock(&hca_key_lock);
		mw = bound_window(qp, e->rkey);
		if (mw)
			mw_withdraw(mw);
		spin_unlock(&hca_key_lock);
		if (!mw)
			return -EINVAL;
		e->flags |= HCA_SWQE_STARTED;
	}
	if (!waited && hca_fence_key_busy(e->rkey))
		return -EAGAIN;
	spin_lock(&hca_key_lock);
	mw = hca_key_mw(hca_key_index(e->rkey));
	/* The window may have been deallocated or bound again meanwhile. */
	if (mw && mw->rkey == e->rkey && mw->fencing)
		mw_release(mw);
	spin_unlock(&hca_key_lock);
	return 0;
}

int hca_key_invalidate(struct hca_qp *qp, uint32_t rkey)
{
	struct hca_mw *mw;

	spin_lock(&hca_key_lock);
	mw = bound_window(qp, rkey);
	/* Only the QP that sent the message could copy with the key, and it has completed
	 * its copies before the message: there are none to wait for. */
	if (mw) {
		mw_withdraw(mw);
		mw_release(mw);
	}
	spin_unlock(&hca_key_lock);
	return mw ? 0 : -EINVAL;
}

int hca_local_run(struct hca_qp *qp, struct hca_swqe *e, bool waited)
{
	return e->opcode == IBV_WR_BIND_MW ? run_bind(qp, e, waited) :
					     run_invalidate(qp, e, waited);
}

/* ---- posting ---- */

void hca_mw_fill_bind(struct hca_swqe *e, struct ibv_mw *ibmw, uint32_t rkey,
		     const struct ibv_mw_bind_info *info)
{
	const struct hca_mw *mw = hca_mw(ibmw);

	/* The program chooses only the tag of the key. The index is that of the window,
	 * because programs read the new key before the window is bound. */
	e->rkey = mw->index << 8 | (rkey & 0xff);
	e->remote_addr = info->addr;
	e->imm = info->mr ? info->mr->lkey : 0;
	e->bind.length = info->length;
	e->bind.access = info->mw_access_flags;
	e->bind.window = mw->index;
	e->flags |= HCA_SWQE_LOCAL;
	e->num_sge = 0;
	e->length = 0;
}

/* ---- destruction ---- */

void hca_mw_qp_gone(struct hca_qp *qp)
{
	spin_lock(&hca_key_lock);
	if (qp->windows) {
		list_for_each(mw, &windows, struct hca_mw, entry) {
			if (mw->qp != qp)
				continue;
			hca_key_withdraw(mw->rkey);
			mw->state = HCA_MW_ORPHAN;
			mw->fencing = true;
			mw->qp = NULL;
		}
	}
	spin_unlock(&hca_key_lock);
}

int hca_mw_dealloc(struct ibv_mw *ibmw)
{
	struct hca_mw *mw = hca_mw(ibmw);
	bool inherited, wait;

	if (!hca_live(ibmw, HCA_MW))
		return -EINVAL;
	hca_live_end(ibmw, HCA_MW);
	inherited = hca_context_inherited(ibmw->context);
	spin_lock(&hca_key_lock);
	hca_key_forget(mw->index);
	list_remove(&mw->entry);
	if (mw->state == HCA_MW_BOUND && !inherited)
		mw_withdraw(mw);
	wait = mw->fencing && !inherited;
	spin_unlock(&hca_key_lock);
	if (wait)
		hca_fence_key(mw->rkey);
	spin_lock(&hca_key_lock);
	mw_release(mw);
	hca_key_seen(mw->rkey);
	spin_unlock(&hca_key_lock);
	hca_key_put(mw->index);
	hca_pd_put(hca_pd(ibmw->pd));
	free(mw);
	return 0;
}
