/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs and shared receive queues of identifiers: making, changes of state
 * during the connection, destruction.
 *
 * `qp_lock` is held during a change of state, so the QP is not destroyed meanwhile. A
 * change to RTR may wait for the progress thread; therefore that thread only tries
 * `qp_lock`. If it does not get it, it sets qp_error_due and the holder moves the QP
 * to the error state.
 */
#define LOG_ROOM "rdmacm"
#include <rdma/rdma_verbs.h>
#include <string.h>

#include "rdmacm/cma.h"
#include "rdmacm/forward.h"
#include "util/log.h"
#include "verbs/private.h"

static int qp_to_error(struct cma_id *id)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	/* Some programs (perftest) call ibv_destroy_qp() on it and never destroy the
	 * identifier. */
	if (!id->pub.qp || !busbar_qp_exists(id->pub.qp, id->qpn))
		return 0;
	return -ibv_modify_qp(id->pub.qp, &attr, IBV_QP_STATE);
}

static void qp_enter(struct cma_id *id)
{
	pthread_mutex_lock(&id->qp_lock);
}

static void qp_leave(struct cma_id *id)
{
	for (;;) {
		bool due;

		pthread_mutex_lock(&id->lock);
		due = id->qp_error_due;
		id->qp_error_due = false;
		if (!due)
			pthread_mutex_unlock(&id->qp_lock);
		pthread_mutex_unlock(&id->lock);
		if (!due)
			return;
		qp_to_error(id);
	}
}

void cma_qp_fail(struct cma_id *id)
{
	qp_enter(id);
	qp_to_error(id);
	qp_leave(id);
}

void cma_qp_fail_soon(struct cma_id *id)
{
	if (pthread_mutex_trylock(&id->qp_lock)) {
		id->qp_error_due = true;
		return;
	}
	qp_to_error(id);
	pthread_mutex_unlock(&id->qp_lock);
}

int cma_qp_attach(struct cma_id *id, const union ibv_gid *gid)
{
	int ret = 0;

	qp_enter(id);
	if (id->pub.qp)
		ret = -ibv_attach_mcast(id->pub.qp, gid, 0);
	qp_leave(id);
	return ret;
}

void cma_qp_detach(struct cma_id *id, const union ibv_gid *gid)
{
	qp_enter(id);
	if (id->pub.qp)
		ibv_detach_mcast(id->pub.qp, gid, 0);
	qp_leave(id);
}

/* ---- attributes of the states ---- */

/* Does the type send requests with acknowledgements (READs, atomics)? XRC has a
 * requesting and a responding QP type. */
static bool qp_requests(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
}

static bool qp_responds(enum ibv_qp_type type)
{
	return type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
}

static void attr_init(const struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	attr->pkey_index = 0;
	attr->port_num = id->pub.port_num;
	*mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	if (cma_id_is_datagram(id)) {
		attr->qkey = RDMA_UDP_QKEY;
		*mask |= IBV_QP_QKEY;
		return;
	}
	attr->qp_access_flags = 0;
	*mask |= IBV_QP_ACCESS_FLAGS;
	/* The peer's access rights follow from the connection's values. */
	if (id->cm.state == CM_IDLE)
		return;
	attr->qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
	if (qp_responds(id->pub.qp_type) && id->conn.responder_resources)
		attr->qp_access_flags |= IBV_ACCESS_REMOTE_READ |
					 IBV_ACCESS_REMOTE_ATOMIC;
}

static void attr_rtr(const struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	const struct cma_conn *c = &id->conn;

	*mask = IBV_QP_STATE;
	if (cma_id_is_datagram(id))
		return;
	memset(&attr->ah_attr, 0, sizeof(attr->ah_attr));
	attr->ah_attr.is_global = 1;
	attr->ah_attr.grh.dgid = id->pub.route.addr.addr.ibaddr.dgid;
	attr->ah_attr.grh.sgid_index = id->sgid_index;
	attr->ah_attr.grh.hop_limit = CMA_HOP_LIMIT;
	attr->ah_attr.grh.traffic_class = id->tos;
	attr->ah_attr.port_num = id->pub.port_num;
	attr->path_mtu = (enum ibv_mtu)c->path_mtu;
	attr->dest_qp_num = c->remote_qpn;
	attr->rq_psn = c->local_psn;
	*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
	if (!qp_responds(id->pub.qp_type))
		return;
	attr->max_dest_rd_atomic = MIN(c->responder_resources,
				       id->device->max_responder_resources);
	/* The kernel's communication manager leaves 0, which means 655 ms, the
	 * longest wait; a single late receive would stop traffic that long. */
	attr->min_rnr_timer = 8;
	*mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
}

static void attr_rts(const struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	const struct cma_conn *c = &id->conn;

	*mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	attr->sq_psn = cma_id_is_datagram(id) ? 0 : c->remote_psn;
	if (id->pub.qp_type == IBV_QPT_XRC_RECV) {
		attr->timeout = c->ack_timeout;
		*mask |= IBV_QP_TIMEOUT;
	}
	if (!qp_requests(id->pub.qp_type))
		return;
	attr->timeout = c->ack_timeout;
	attr->retry_cnt = c->retry_count;
	attr->rnr_retry = c->rnr_retry;
	attr->max_rd_atomic = MIN(c->initiator_depth,
				  id->device->max_initiator_depth);
	*mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
		 IBV_QP_MAX_QP_RD_ATOMIC;
}

static int attr_get(struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	int ret = 0;

	if (!id->device)
		return -EINVAL;
	if (id->removed)
		return -ENODEV;
	pthread_mutex_lock(&id->lock);
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		attr_init(id, attr, mask);
		break;
	case IBV_QPS_RTR:
		attr_rtr(id, attr, mask);
		break;
	case IBV_QPS_RTS:
		attr_rts(id, attr, mask);
		break;
	default:
		ret = -EINVAL;
		break;
	}
	pthread_mutex_unlock(&id->lock);
	return ret;
}

CMA_EXPORT int rdma_init_qp_attr(struct rdma_cm_id *id,
				 struct ibv_qp_attr *qp_attr, int *qp_attr_mask)
{
	FORWARD(id, forward_init_qp_attr, rdma_init_qp_attr, id, qp_attr,
		qp_attr_mask);
	return cma_result(attr_get(cma_id_of(id), qp_attr, qp_attr_mask));
}

static int qp_step(struct cma_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;
	int ret = attr_get(id, &attr, &mask);

	return ret ? ret : -ibv_modify_qp(qp, &attr, mask);
}

int cma_qp_connect(struct cma_id *id)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						 IBV_QPS_RTS };
	int ret = 0;

	qp_enter(id);
	for (size_t i = 0; i < ARRAY_SIZE(way) && id->pub.qp && !ret; i++) {
		ret = qp_step(id, id->pub.qp, way[i]);
		if (ret)
			log_error("qp 0x%06x: step %zu of INIT, RTR, RTS failed: %s",
				  id->pub.qp->qp_num, i + 1, strerror(-ret));
	}
	qp_leave(id);
	return ret;
}

/* ---- making and destroying ---- */

static void cqs_destroy(struct rdma_cm_id *id)
{
	if (id->recv_cq)
		ibv_destroy_cq(id->recv_cq);
	if (id->send_cq && id->send_cq != id->recv_cq)
		ibv_destroy_cq(id->send_cq);
	if (id->recv_cq_channel)
		ibv_destroy_comp_channel(id->recv_cq_channel);
	if (id->send_cq_channel && id->send_cq_channel != id->recv_cq_channel)
		ibv_destroy_comp_channel(id->send_cq_channel);
	id->recv_cq = id->send_cq = NULL;
	id->recv_cq_channel = id->send_cq_channel = NULL;
}

static int cq_create(struct rdma_cm_id *id, uint32_t size, struct ibv_cq **cq,
		     struct ibv_comp_channel **channel)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -errno;
	*cq = ibv_create_cq(id->verbs, (int)MAX(size, 1), id, *channel, 0);
	return *cq ? 0 : -errno;
}

/* Makes the completion queues, with channels, that the caller did not give. XRC: the
 * initiator has no receives, and the target receives through its SRQ's queue. */
static int cqs_create(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	bool xrc = attr->qp_type == IBV_QPT_XRC_SEND ||
		   attr->qp_type == IBV_QPT_XRC_RECV;
	int ret = 0;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return 0;
	if (!xrc && !attr->recv_cq && !id->recv_cq)
		ret = cq_create(id, attr->cap.max_recv_wr, &id->recv_cq,
				&id->recv_cq_channel);
	if (!ret && !attr->send_cq && !id->send_cq)
		ret = cq_create(id, attr->cap.max_send_wr, &id->send_cq,
				&id->send_cq_channel);
	if (ret)
		return ret;
	if (!xrc && !attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	return 0;
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
	return id->cm.state == CM_IDLE ? 0 : -EINVAL;
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
	ret = cqs_create(pub, attr);
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
	ret = qp_step(id, qp, IBV_QPS_INIT);
	/* A UD QP needs no peer: it goes to RTS at once. */
	if (!ret && cma_id_is_datagram(id))
		ret = qp_step(id, qp, IBV_QPS_RTR);
	if (!ret && cma_id_is_datagram(id))
		ret = qp_step(id, qp, IBV_QPS_RTS);
	if (ret)
		goto err_qp;
	if (qp->pd)
		pub->pd = qp->pd;
	qp_enter(id);
	id->qpn = qp->qp_num;
	pub->qp = qp;
	qp_leave(id);
	return 0;

err_qp:
	ibv_destroy_qp(qp);
err_cqs:
	cqs_destroy(pub);
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
	qp_enter(own);
	qp = id->qp;
	id->qp = NULL;
	qp_leave(own);
	if (qp)
		ibv_destroy_qp(qp);
	/* The CQ belongs to the SRQ of an XRC target, if it has one. */
	if (!id->srq || id->qp_type != IBV_QPT_XRC_RECV)
		cqs_destroy(id);
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
	      cq_create(id, attr->attr.max_wr, &id->recv_cq,
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
		cqs_destroy(id);
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
		cqs_destroy(id);
}

/* ---- the same for QPs of the system's library (forward_qp.c) ---- */

int cma_cqs_create(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	return cqs_create(id, attr);
}

int cma_cq_create_recv(struct rdma_cm_id *id, uint32_t size)
{
	return cq_create(id, size, &id->recv_cq, &id->recv_cq_channel);
}

void cma_cqs_destroy(struct rdma_cm_id *id)
{
	cqs_destroy(id);
}
