/* SPDX-License-Identifier: BSD-2-Clause */
/* The listener of this library; see data.h. */
#include "preload/listener.h"

static void no_request(struct ibv_qp *qp, const struct preload_request *r)
{
}

static void no_refused(struct ibv_qp *qp, const struct preload_request *r, int error)
{
}

static bool no_completion(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	return true;
}

static void no_asks(const struct ibv_qp_init_attr *attr, struct ibv_qp_cap *cap)
{
}

static void no_made(struct ibv_qp *qp, bool completes_all)
{
}

static void no_goes(struct ibv_qp *qp)
{
}

struct preload_listener preload_listener = {
	.posting = no_request,
	.refused = no_refused,
	.completion = no_completion,
	.qp_asks = no_asks,
	.qp_made = no_made,
	.qp_goes = no_goes,
};
