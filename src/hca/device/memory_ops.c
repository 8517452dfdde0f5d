/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The verbs of memory objects that programs call through a context's tables, with the
 * return conventions of their manual pages.
 */
#include <errno.h>

#include "hca/hca.h"
#include "util/cancel.h"

static struct ibv_mw *op_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	CANCEL_OFF;
	struct ibv_mw *mw;
	int ret = hca_mw_alloc(pd, type, &mw);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return mw;
}

static int op_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		      struct ibv_mw_bind *bind)
{
	CANCEL_OFF;
	return -hca_mw_bind(qp, mw, bind);
}

static int op_dealloc_mw(struct ibv_mw *mw)
{
	CANCEL_OFF;
	return -hca_mw_dealloc(mw);
}

static struct ibv_mr *op_alloc_null_mr(struct ibv_pd *pd)
{
	CANCEL_OFF;
	struct ibv_mr *mr;
	int ret = hca_mr_alloc_null(pd, &mr);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return mr;
}

static int op_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
			uint32_t flags, struct ibv_sge *sg_list,
			uint32_t num_sge)
{
	CANCEL_OFF;
	return -hca_mr_advise(pd, advice, flags, sg_list, num_sge);
}

void hca_memory_ops_init(struct verbs_context *ctx)
{
	ctx->alloc_null_mr = op_alloc_null_mr;
	ctx->advise_mr = op_advise_mr;
	ctx->context.ops.alloc_mw = op_alloc_mw;
	ctx->context.ops.bind_mw = op_bind_mw;
	ctx->context.ops.dealloc_mw = op_dealloc_mw;
}
