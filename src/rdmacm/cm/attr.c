/* SPDX-License-Identifier: BSD-2-Clause */
/* From the values of a connection: attributes with which queue pairs go through their states. */

#include <errno.h>
#include <string.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/base/base.h"
#include "rdmacm/cm/cm.h"

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
	if (cma_side_of(id)->cm.state == CM_IDLE)
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
	attr->ah_attr.dlid = cma_lid_of(&id->pub.route.addr.addr.ibaddr.dgid);
	if (id->pub.route.path_rec)
		attr->ah_attr.sl = id->pub.route.path_rec->sl;
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

int cma_attr_get(const struct cma_id *id, struct ibv_qp_attr *attr, int *mask)
{
	switch (attr->qp_state) {
	case IBV_QPS_INIT:
		attr_init(id, attr, mask);
		return 0;
	case IBV_QPS_RTR:
		attr_rtr(id, attr, mask);
		return 0;
	case IBV_QPS_RTS:
		attr_rts(id, attr, mask);
		return 0;
	default:
		return -EINVAL;
	}
}
