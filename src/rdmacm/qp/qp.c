/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Queue pairs of identifiers: changes of state during the connection; completion queues.
 *
 * `qp_lock` is held during a change of state, so the QP is not destroyed meanwhile. A
 * change to RTR may wait for the progress thread; therefore that thread only tries
 * `qp_lock`. If it does not get it, it sets qp_error_due and the holder moves the QP
 * to the error state.
 */
#define LOG_ROOM "rdmacm"
#include "rdmacm/qp/qp.h"

#include <errno.h>
#include <string.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/base/base.h"
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

void cma_qp_enter(struct cma_id *id)
{
	pthread_mutex_lock(&id->qp_lock);
}

void cma_qp_leave(struct cma_id *id)
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
	cma_qp_enter(id);
	qp_to_error(id);
	cma_qp_leave(id);
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

int cma_qp_attach(struct cma_id *id, const union ibv_gid *gid, uint16_t lid)
{
	int ret = 0;

	cma_qp_enter(id);
	if (id->pub.qp)
		ret = -ibv_attach_mcast(id->pub.qp, gid, lid);
	cma_qp_leave(id);
	return ret;
}

void cma_qp_detach(struct cma_id *id, const union ibv_gid *gid, uint16_t lid)
{
	cma_qp_enter(id);
	if (id->pub.qp)
		ibv_detach_mcast(id->pub.qp, gid, lid);
	cma_qp_leave(id);
}

int cma_qp_attr(struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	int ret;

	if (!id->device)
		return -EINVAL;
	if (id->removed)
		return -ENODEV;
	pthread_mutex_lock(&id->lock);
	ret = id->connector->qp_attr(id, attr, mask);
	pthread_mutex_unlock(&id->lock);
	return ret;
}

int cma_qp_step(struct cma_id *id, struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = { .qp_state = state };
	int mask = 0;
	int ret = cma_qp_attr(id, &attr, &mask);

	return ret ? ret : -ibv_modify_qp(qp, &attr, mask);
}

int cma_qp_connect(struct cma_id *id)
{
	static const enum ibv_qp_state way[] = { IBV_QPS_INIT, IBV_QPS_RTR,
						 IBV_QPS_RTS };
	int ret = 0;

	cma_qp_enter(id);
	for (size_t i = 0; i < ARRAY_SIZE(way) && id->pub.qp && !ret; i++) {
		ret = cma_qp_step(id, id->pub.qp, way[i]);
		if (ret)
			log_error("qp 0x%06x: step %zu of INIT, RTR, RTS failed: %s",
				  id->pub.qp->qp_num, i + 1, strerror(-ret));
	}
	cma_qp_leave(id);
	return ret;
}

void cma_ud_fill(struct rdma_ud_param *ud, const struct cma_id *id,
		 const union ibv_gid *to, uint32_t qpn, uint32_t qkey)
{
	ud->ah_attr.is_global = 1;
	ud->ah_attr.grh.dgid = *to;
	ud->ah_attr.grh.sgid_index = id->sgid_index;
	ud->ah_attr.grh.hop_limit = CMA_HOP_LIMIT;
	ud->ah_attr.grh.traffic_class = id->tos;
	ud->ah_attr.port_num = id->pub.port_num;
	ud->ah_attr.dlid = cma_lid_of(to);
	ud->qp_num = qpn;
	ud->qkey = qkey;
}

/* ---- completion queues ---- */

void cma_cqs_destroy(struct rdma_cm_id *id)
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

int cma_cq_create(struct rdma_cm_id *id, uint32_t size, struct ibv_cq **cq,
		     struct ibv_comp_channel **channel)
{
	*channel = ibv_create_comp_channel(id->verbs);
	if (!*channel)
		return -errno;
	*cq = ibv_create_cq(id->verbs, (int)MAX(size, 1), id, *channel, 0);
	return *cq ? 0 : -errno;
}

int cma_cqs_create(struct rdma_cm_id *id, struct ibv_qp_init_attr_ex *attr)
{
	bool xrc = attr->qp_type == IBV_QPT_XRC_SEND ||
		   attr->qp_type == IBV_QPT_XRC_RECV;
	int ret = 0;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return 0;
	if (!xrc && !attr->recv_cq && !id->recv_cq)
		ret = cma_cq_create(id, attr->cap.max_recv_wr, &id->recv_cq,
				&id->recv_cq_channel);
	if (!ret && !attr->send_cq && !id->send_cq)
		ret = cma_cq_create(id, attr->cap.max_send_wr, &id->send_cq,
				&id->send_cq_channel);
	if (ret)
		return ret;
	if (!xrc && !attr->recv_cq)
		attr->recv_cq = id->recv_cq;
	if (!attr->send_cq)
		attr->send_cq = id->send_cq;
	return 0;
}
