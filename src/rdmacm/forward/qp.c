/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of identifiers on real devices. The system's library makes the QPs, so
 * that it can change their states. Completion queues are made here: their context
 * must be the program's identifier, as the inline functions of <rdma/rdma_verbs.h>
 * expect.
 */
#define LOG_ROOM "rdmacm"
#include <rdma/rdma_verbs.h>

#include "rdmacm/forward/forward.h"
#include "rdmacm/qp/qp.h"
#include "util/log.h"

int forward_init_qp_attr(struct rdma_cm_id *id, struct ibv_qp_attr *attr, int *mask)
{
	if (!FORWARD_SYSTEM(rdma_init_qp_attr))
		return -ENOSYS;
	return FORWARD_CALL(rdma_init_qp_attr, cma_id_of(id)->shadow, attr, mask) ?
		       -errno : 0;
}

static int qp_check(const struct rdma_cm_id *id,
		    const struct ibv_qp_init_attr_ex *attr)
{
	if (!id->verbs || id->qp)
		return -EINVAL;
	if ((id->recv_cq && attr->recv_cq && id->recv_cq != attr->recv_cq) ||
	    (id->send_cq && attr->send_cq && id->send_cq != attr->send_cq))
		return -EINVAL;
	if (attr->qp_type == IBV_QPT_UC && id->qp_type != IBV_QPT_UC) {
		log_error("uc queue pair on a real device: its identifier must have been made for uc, by rdma_create_ep() with ai_qp_type IBV_QPT_UC");
		return -EOPNOTSUPP;
	}
	return 0;
}

int forward_create_qp(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *shadow = cma_id_of(id)->shadow;
	int ret = qp_check(id, attr);

	if (ret)
		return ret;
	/* An XRC target has neither a send nor a receive queue. */
	if (attr->qp_type != IBV_QPT_XRC_RECV)
		ret = cma_cqs_create(id, attr);
	if (ret)
		goto err_cqs;
	forward_push(cma_id_of(id));
	if (FORWARD_CALL(rdma_create_qp_ex, shadow, attr)) {
		ret = errno ? -errno : -ENOMEM;
		goto err_cqs;
	}
	id->pd = shadow->pd;
	id->qp = shadow->qp;
	return 0;

err_cqs:
	cma_cqs_destroy(id);
	return ret;
}

void forward_destroy_qp(struct rdma_cm_id *id)
{
	struct rdma_cm_id *shadow = cma_id_of(id)->shadow;

	forward_push(cma_id_of(id));
	if (shadow->qp)
		FORWARD_CALL_VOID(rdma_destroy_qp, shadow);
	id->qp = NULL;
	/* The CQ of an XRC SRQ is destroyed with the SRQ. */
	if (id->qp_type != IBV_QPT_XRC_RECV || !id->srq)
		cma_cqs_destroy(id);
}

int forward_create_srq(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	struct rdma_cm_id *shadow = cma_id_of(id)->shadow;
	int ret = 0;

	if (!id->verbs)
		return -EINVAL;
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq) {
		ret = cma_cq_create(id, attr->attr.max_wr, &id->recv_cq,
				    &id->recv_cq_channel);
		if (ret)
			goto err_cq;
		attr->cq = id->recv_cq;
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	}
	forward_push(cma_id_of(id));
	if (FORWARD_CALL(rdma_create_srq_ex, shadow, attr)) {
		ret = errno ? -errno : -ENOMEM;
		goto err_cq;
	}
	id->srq = shadow->srq;
	if (!id->pd)
		id->pd = shadow->pd;
	return 0;

err_cq:
	cma_cqs_destroy(id);
	return ret;
}
