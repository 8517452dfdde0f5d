/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that make and destroy queue pairs and shared receive queues. */
#include <errno.h>
#include <rdma/rdma_verbs.h>

#include "rdmacm/device/device.h"
#include "rdmacm/forward/forward.h"
#include "rdmacm/qp/qp.h"

CMA_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id,
				 struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	FORWARD(id, forward_init_qp_attr, rdma_init_qp_attr, id, qp_attr,
		qp_attr_mask);
	return cma_result(cma_qp_attr(cma_id_of(id), qp_attr, qp_attr_mask));
}

static int qp_check(struct cma_id *id, const struct ibv_qp_init_attr_ex *attr)
{
	bool datagram = attr->qp_type == IBV_QPT_UD;

	if (id->removed)
		return -ENODEV;
	if (!id->device || id->pub.qp)
		return -EINVAL;
	if (attr->qp_type == IBV_QPT_XRC_RECV ?
		    attr->xrcd->context != id->pub.verbs :
		    attr->pd->context != id->pub.verbs)
		return -EINVAL;
	if (datagram != cma_id_is_datagram(id))
		return -EINVAL;
	if (attr->qp_type == id->pub.qp_type)
		return 0;
	/* A caller may change between RC and UC; a callee has the type of the REQ. */
	if ((attr->qp_type != IBV_QPT_RC && attr->qp_type != IBV_QPT_UC) ||
	    (id->pub.qp_type != IBV_QPT_RC && id->pub.qp_type != IBV_QPT_UC))
		return -EINVAL;
	return id->begun ? -EINVAL : 0;
}

/* Sets the protection domain, or XRC domain of an XRC target, to the default. */
static int domain_fill(struct cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		attr->comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_PD;
		if (attr->comp_mask & IBV_QP_INIT_ATTR_XRCD && attr->xrcd)
			return 0;
		if (!id->device)
			return -EINVAL;
		attr->comp_mask |= IBV_QP_INIT_ATTR_XRCD;
		attr->xrcd = cma_device_xrcd(id->device);
		return attr->xrcd ? 0 : -errno;
	}
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_QP_INIT_ATTR_PD;
		attr->pd = id->pub.pd;
	}
	return attr->pd ? 0 : -EINVAL;
}

static int qp_create(struct cma_id *id, struct ibv_qp_init_attr_ex *attr)
{
	struct rdma_cm_id *pub = &id->pub;
	struct ibv_qp *qp;
	int ret;

	if (forward_owns(id))
		return forward_create_qp(pub, attr);
	ret = domain_fill(id, attr);
	if (!ret)
		ret = qp_check(id, attr);
	if (ret)
		return ret;
	if ((pub->recv_cq && attr->recv_cq && pub->recv_cq != attr->recv_cq) ||
	    (pub->send_cq && attr->send_cq && pub->send_cq != attr->send_cq))
		return -EINVAL;
	ret = cma_cqs_create(pub, attr);
	if (ret)
		goto err_cqs;
	if (pub->srq && !attr->srq && attr->qp_type != IBV_QPT_XRC_RECV &&
	    attr->qp_type != IBV_QPT_XRC_SEND)
		attr->srq = pub->srq;
	qp = ibv_create_qp_ex(pub->verbs, attr);
	if (!qp) {
		ret = errno ? -errno : -ENOMEM;
		goto err_cqs;
	}
	/* Written only on change: the progress thread reads a listener's type. */
	if (pub->qp_type != attr->qp_type)
		pub->qp_type = attr->qp_type;
	ret = cma_qp_step(id, qp, IBV_QPS_INIT);
	/* A UD QP needs no peer: it goes to RTS at once. */
	if (!ret && cma_id_is_datagram(id))
		ret = cma_qp_step(id, qp, IBV_QPS_RTR);
	if (!ret && cma_id_is_datagram(id))
		ret = cma_qp_step(id, qp, IBV_QPS_RTS);
	if (ret)
		goto err_qp;
	if (qp->pd)
		pub->pd = qp->pd;
	cma_qp_enter(id);
	id->qpn = qp->qp_num;
	pub->qp = qp;
	cma_qp_leave(id);
	return 0;

err_qp:
	ibv_destroy_qp(qp);
err_cqs:
	cma_cqs_destroy(pub);
	return ret;
}

CMA_EXPORT int rdma_create_qp_ex(struct rdma_cm_id *id,
				 struct ibv_qp_init_attr_ex *qp_init_attr)
{
	FORWARD_INSIDE(rdma_create_qp_ex, id, qp_init_attr);
	return cma_result(qp_create(cma_id_of(id), qp_init_attr));
}

CMA_EXPORT int rdma_create_qp(struct rdma_cm_id *id, struct ibv_pd *pd,
			      struct ibv_qp_init_attr *in)
{
	FORWARD_INSIDE(rdma_create_qp, id, pd, in);

	struct ibv_qp_init_attr_ex attr = {
		.qp_context = in->qp_context,
		.send_cq = in->send_cq,
		.recv_cq = in->recv_cq,
		.srq = in->srq,
		.cap = in->cap,
		.qp_type = in->qp_type,
		.sq_sig_all = in->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd ? pd : id->pd,
	};
	int ret = qp_create(cma_id_of(id), &attr);

	in->cap = attr.cap;
	if (!ret) {
		in->send_cq = attr.send_cq;
		in->recv_cq = attr.recv_cq;
		in->srq = attr.srq;
	}
	return cma_result(ret);
}

CMA_EXPORT void rdma_destroy_qp(struct rdma_cm_id *id)
{
	FORWARD_INSIDE(rdma_destroy_qp, id);

	struct cma_id *own = cma_id_of(id);
	struct ibv_qp *qp;

	if (forward_owns(own)) {
		forward_destroy_qp(id);
		return;
	}
	/* A QP that is attached to a group could not be destroyed. */
	cma_groups_detach(own);
	cma_qp_enter(own);
	qp = id->qp;
	id->qp = NULL;
	cma_qp_leave(own);
	if (qp)
		ibv_destroy_qp(qp);
	/* The CQ belongs to the SRQ of an XRC target, if it has one. */
	if (!id->srq || id->qp_type != IBV_QPT_XRC_RECV)
		cma_cqs_destroy(id);
}

/* An XRC SRQ has a domain and a completion queue of its own. */
static int srq_fill_xrc(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
	int ret;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
		attr->xrcd = cma_device_xrcd(cma_id_of(id)->device);
		if (!attr->xrcd)
			return -errno;
	}
	if (attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ && attr->cq)
		return 0;
	ret = id->recv_cq ? 0 :
	      cma_cq_create(id, attr->attr.max_wr, &id->recv_cq,
			&id->recv_cq_channel);
	attr->comp_mask |= IBV_SRQ_INIT_ATTR_CQ;
	attr->cq = id->recv_cq;
	return ret;
}

CMA_EXPORT int rdma_create_srq_ex(struct rdma_cm_id *id,
				  struct ibv_srq_init_attr_ex *attr)
{
	FORWARD_INSIDE(rdma_create_srq_ex, id, attr);

	struct ibv_srq *srq;
	int ret = 0;

	if (!id->verbs || id->srq || !(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE))
		return cma_result(-EINVAL);
	if (attr->srq_type != IBV_SRQT_BASIC && forward_owns(cma_id_of(id)))
		return cma_result(forward_create_srq(id, attr));
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
		attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
		attr->pd = id->pd;
	}
	if (attr->pd && attr->pd->context != id->verbs)
		return cma_result(-EINVAL);
	if (attr->srq_type == IBV_SRQT_XRC)
		ret = srq_fill_xrc(id, attr);
	if (ret)
		goto err_cqs;
	srq = ibv_create_srq_ex(id->verbs, attr);
	if (!srq) {
		ret = -errno;
		goto err_cqs;
	}
	if (!id->pd)
		id->pd = attr->pd;
	id->srq = srq;
	return 0;

err_cqs:
	if (!id->qp || id->qp->qp_type == IBV_QPT_XRC_RECV)
		cma_cqs_destroy(id);
	return cma_result(ret);
}

CMA_EXPORT int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
			       struct ibv_srq_init_attr *attr)
{
	FORWARD_INSIDE(rdma_create_srq, id, pd, attr);

	struct ibv_srq_init_attr_ex ex = {
		.srq_context = attr->srq_context,
		.attr = attr->attr,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		/* The only type that QPs of this type can use. */
		.srq_type = id->qp_type == IBV_QPT_XRC_RECV ? IBV_SRQT_XRC :
							       IBV_SRQT_BASIC,
		.pd = pd,
	};
	int ret = rdma_create_srq_ex(id, &ex);

	attr->attr = ex.attr;
	return ret;
}

CMA_EXPORT void rdma_destroy_srq(struct rdma_cm_id *id)
{
	FORWARD_INSIDE(rdma_destroy_srq, id);

	if (id->srq)
		ibv_destroy_srq(id->srq);
	id->srq = NULL;
	if (!id->qp || id->qp->qp_type == IBV_QPT_XRC_RECV)
		cma_cqs_destroy(id);
}
