/* SPDX-License-Identifier: BSD-2-Clause */
/* Posting the binding of a window of type 1 (ibv_bind_mw(3)); mw.c carries it out. */
#include <errno.h>

#include "hca/hca.h"
#include "hca/memory/window.h"
#include "hca/object/mr.h"
#include "hca/object/qp.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"

int hca_mw_bind(struct ibv_qp *ibqp, struct ibv_mw *ibmw,
		struct ibv_mw_bind *bind)
{
	const struct ibv_mw_bind_info *info = &bind->bind_info;
	struct hca_qp *qp = hca_qp(ibqp);
	struct hca_swqe *e;
	int ret;

	if (ibmw->type != IBV_MW_TYPE_1 ||
	    info->mw_access_flags & ~HCA_WINDOW_ACCESS ||
	    (info->length && !info->mr) ||
	    (info->mr && (hca_mr(info->mr)->null ||
			  hca_mr(info->mr)->access & IBV_ACCESS_ZERO_BASED)))
		return -EINVAL;
	hca_enter();
	hca_lock(&qp->sq_lock);
	ret = hca_sq_open(qp, IBV_WR_BIND_MW, bind->wr_id, bind->send_flags, &e);
	if (!ret) {
		hca_mw_fill_bind(e, ibmw, ibv_inc_rkey(ibmw->rkey), info);
		ibmw->rkey = e->rkey;
		qp->sq.head++;
		hca_sq_run(qp);
	}
	hca_sq_leave(qp);
	return ret;
}
