/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that listen, connect, accept, reject and disconnect. */
#define LOG_ROOM "rdmacm"

#include <errno.h>
#include <string.h>

#include "rdmacm/device/device.h"
#include "rdmacm/forward/forward.h"
#include "rdmacm/id/port.h"
#include "rdmacm/qp/qp.h"
#include "rdmacm/resolve/resolve.h"
#include "util/log.h"

#define BACKLOG_MAX 1024
#define RETRY_MAX 7 /* retry counts have 3 bits; RNR: 7 is unlimited */

/* -EINVAL for values that rdma_connect(3) and rdma_accept(3) exclude. */
static int param_check(const struct cma_id *id, const struct rdma_conn_param *p)
{
	if (id->pub.ps != RDMA_PS_TCP)
		return 0;
	if (!p)
		return id->pub.qp ? 0 : -EINVAL;
	if (p->responder_resources != RDMA_MAX_RESP_RES &&
	    p->responder_resources > id->device->max_responder_resources)
		return -EINVAL;
	if (p->initiator_depth != RDMA_MAX_INIT_DEPTH &&
	    p->initiator_depth > id->device->max_initiator_depth)
		return -EINVAL;
	return 0;
}

/* Sets the private data of the next message; -EINVAL: more than it has room for. */
static int private_set(struct cma_id *id, enum cma_message message, const void *data, size_t len)
{
	size_t lead = id->connect_len, limit = id->connector->room(id, message);

	if (!data)
		len = 0;
	if (lead + len > limit) {
		log_warn("private data of %zu bytes, at most %zu fit",
			 lead + len, limit);
		return -EINVAL;
	}
	if (lead)
		memcpy(id->conn.private_data, id->connect_data, lead);
	if (len)
		memcpy(id->conn.private_data + lead, data, len);
	id->conn.private_len = (uint8_t)(lead + len);
	return 0;
}

static void param_take(struct cma_id *id, const struct rdma_conn_param *p)
{
	struct cma_conn *c = &id->conn;

	c->local_qpn = id->pub.qp ? id->pub.qp->qp_num : p ? p->qp_num : 0;
	c->srq = id->pub.qp ? !!id->pub.qp->srq : p && p->srq;
	c->flow_control = p && p->flow_control;
	c->rnr_retry_asked = p ? MIN(p->rnr_retry_count, RETRY_MAX) : RETRY_MAX;
	c->local_qpn &= 0xffffff;
}

/* Clears what only reliable services have; the peer does not look at it either. */
static void param_trim(struct cma_id *id)
{
	struct cma_conn *c = &id->conn;

	if (id->pub.qp_type != IBV_QPT_UC)
		return;
	c->responder_resources = c->initiator_depth = 0;
	c->retry_count = c->rnr_retry_asked = 0;
	c->ack_timeout = 0;
}

static int connect_start(struct cma_id *id, const struct rdma_conn_param *p)
{
	struct cma_conn *c = &id->conn;
	int ret;

	if (id->removed)
		return -ENODEV;
	if (id->phase != CMA_ROUTE_RESOLVED || id->begun)
		return -EINVAL;
	ret = param_check(id, p);
	if (!ret)
		ret = private_set(id, CMA_REQUEST, p ? p->private_data : NULL,
				  p ? p->private_data_len : 0);
	if (ret)
		return ret;
	param_take(id, p);
	c->initiator_depth = p && p->initiator_depth != RDMA_MAX_INIT_DEPTH ?
				     p->initiator_depth :
				     id->device->max_initiator_depth;
	c->responder_resources =
		p && p->responder_resources != RDMA_MAX_RESP_RES ?
			p->responder_resources :
			id->device->max_responder_resources;
	c->retry_count = p ? MIN(p->retry_count, RETRY_MAX) : RETRY_MAX;
	c->path_mtu = id->pub.route.path_rec->mtu;
	c->ack_timeout = id->ack_timeout >= 0 ?
			 (uint8_t)id->ack_timeout :
			 id->pub.route.path_rec->packet_life_time + 1;
	param_trim(id);

	id->begun = true;
	ret = id->connector->connect(id);
	if (ret)
		id->begun = false;
	return ret;
}

CMA_EXPORT int rdma_connect(struct rdma_cm_id *cm_id,
			    struct rdma_conn_param *conn_param)
{
	FORWARD(cm_id, forward_connect, rdma_connect, cm_id, conn_param);

	struct cma_id *id = cma_id_of(cm_id);
	int ret;

	pthread_mutex_lock(&id->lock);
	ret = connect_start(id, conn_param);
	if (!ret)
		id->connect_len = 0;
	pthread_mutex_unlock(&id->lock);
	CANCEL_BACK;
	if (!ret)
		ret = cma_id_complete(id);
	return cma_result(ret);
}

/* Bound to a wildcard address: by all ways of which there is a device; without any device, by the
 * first one. Where one way cannot listen, the others do; it has logged why. The error of the first one
 * that fails, if none can. */
static int listen_everywhere(struct cma_id *id)
{
	bool listens = false;
	int first = 0;

	for (enum cma_connector_number i = 0; i < CMA_CONNECTORS; i++) {
		int ret;

		if (cma_devices_present() ? !cma_devices_have(cma_connectors[i]->transport) : i > 0)
			continue;
		ret = cma_connector_open(id, i);
		if (!ret)
			ret = cma_connectors[i]->listen(id);
		listens |= !ret;
		first = first ? first : ret;
	}
	return listens ? 0 : first;
}

static int listen_start(struct cma_id *id, int backlog)
{
	static const struct sockaddr_in any = { .sin_family = AF_INET };
	int ret = 0;

	if (id->removed)
		return -ENODEV;
	if (id->phase == CMA_UNBOUND)
		ret = cma_bind(id, (const struct sockaddr *)&any);
	if (ret)
		return ret;
	if (id->phase != CMA_BOUND || id->begun)
		return -EINVAL;
	/* Bound to a wildcard, else the bind was refused. A real device may have them. */
	if (cma_id_is_datagram(id) && !id->shadow && !cma_devices_have_datagrams()) {
		log_warn("listening for datagrams: no device has any");
		return -EOPNOTSUPP;
	}
	ret = cma_port_take(id); /* a shared port (REUSEADDR) is not taken yet */
	if (ret)
		return ret;
	id->backlog = backlog > 0 && backlog < BACKLOG_MAX ? (unsigned)backlog :
							     BACKLOG_MAX;
	id->begun = true;
	ret = id->connector ? id->connector->listen(id) : listen_everywhere(id);
	if (ret) {
		id->backlog = 0;
		id->begun = false;
	}
	return ret;
}

CMA_EXPORT int rdma_listen(struct rdma_cm_id *cm_id, int backlog)
{
	FORWARD_INSIDE(rdma_listen, cm_id, backlog);

	struct cma_id *id = cma_id_of(cm_id);
	int ret = forward_listen(id, backlog);

	if (ret != FORWARD_OURS)
		return cma_result(ret);
	pthread_mutex_lock(&id->lock);
	ret = listen_start(id, backlog);
	pthread_mutex_unlock(&id->lock);
	if (ret)
		forward_drop(id);
	return cma_result(ret);
}

CMA_EXPORT int rdma_get_request(struct rdma_cm_id *listen,
				struct rdma_cm_id **id)
{
	FORWARD_INSIDE(rdma_get_request, listen, id);

	struct cma_id *listener = cma_id_of(listen);
	struct rdma_cm_event *event;
	int ret = 0;

	if (!listener->sync)
		return cma_result(-EINVAL);
	if (listen->event) {
		rdma_ack_cm_event(listen->event);
		listen->event = NULL;
	}
	/* After the removal no event can come but those that are queued. */
	if (listener->removed &&
	    !cma_channel_has_event(cma_channel_of(listen->channel), listener))
		return cma_result(-ENODEV);
	CANCEL_BACK;
	if (rdma_get_cm_event(listen->channel, &event))
		return -1;
	if (event->status)
		ret = event->status < 0 ? event->status : -event->status;
	else if (event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		ret = -ENODEV;
	else if (event->event != RDMA_CM_EVENT_CONNECT_REQUEST)
		ret = -EINVAL;
	if (!ret && listener->qp_init_attr) {
		struct ibv_qp_init_attr attr = *listener->qp_init_attr;

		if (rdma_create_qp(event->id, listen->pd, &attr))
			ret = -errno;
	}
	if (ret) {
		listen->event = event;
		return cma_result(ret);
	}
	*id = event->id;
	(*id)->event = event;
	return 0;
}

/* The values of the REP; where the caller gives none, those of the request. */
static int accept_prepare(struct cma_id *id, const struct rdma_conn_param *p)
{
	struct cma_conn *c = &id->conn;
	int ret = id->removed ? -ENODEV :
		  id->connector ? id->connector->accept_check(id) : -EINVAL;

	if (!ret)
		ret = param_check(id, p);
	if (!ret && !p && !id->pub.qp)
		ret = -EINVAL;
	if (!ret)
		ret = private_set(id, CMA_REPLY, p ? p->private_data : NULL,
				  p ? p->private_data_len : 0);
	if (ret)
		return ret;
	param_take(id, p);
	if (p && p->initiator_depth != RDMA_MAX_INIT_DEPTH)
		c->initiator_depth = p->initiator_depth;
	if (p && p->responder_resources != RDMA_MAX_RESP_RES)
		c->responder_resources = p->responder_resources;
	c->initiator_depth = MIN(c->initiator_depth,
				 id->device->max_initiator_depth);
	c->responder_resources = MIN(c->responder_resources,
				     id->device->max_responder_resources);
	if (id->ack_timeout >= 0)
		c->ack_timeout = (uint8_t)id->ack_timeout;
	param_trim(id);
	return 0;
}

CMA_EXPORT int rdma_accept(struct rdma_cm_id *cm_id,
			   struct rdma_conn_param *conn_param)
{
	FORWARD(cm_id, forward_accept, rdma_accept, cm_id, conn_param);

	struct cma_id *id = cma_id_of(cm_id);
	int ret;

	pthread_mutex_lock(&id->lock);
	ret = accept_prepare(id, conn_param);
	pthread_mutex_unlock(&id->lock);
	if (ret)
		return cma_result(ret);
	ret = id->connector->accept(id);
	if (ret)
		return cma_result(ret);
	CANCEL_BACK;
	if (!cma_id_is_datagram(id))
		return cma_result(cma_id_complete(id));
	/* Datagrams have no event after accept; the request's is acknowledged here. */
	if (id->sync && cm_id->event) {
		rdma_ack_cm_event(cm_id->event);
		cm_id->event = NULL;
	}
	return 0;
}

static int reject(struct rdma_cm_id *cm_id, const void *private_data, size_t len,
		  bool for_ece)
{
	struct cma_id *id = cma_id_of(cm_id);
	int ret = -EINVAL;

	pthread_mutex_lock(&id->lock);
	if (id->connector)
		ret = private_set(id, CMA_REJECTION, private_data, len);
	if (!ret)
		ret = id->connector->reject(id, for_ece);
	pthread_mutex_unlock(&id->lock);
	return cma_result(ret);
}

CMA_EXPORT int rdma_reject(struct rdma_cm_id *id, const void *private_data,
			   uint8_t private_data_len)
{
	FORWARD(id, forward_reject, rdma_reject, id, private_data,
		private_data_len);
	return reject(id, private_data, private_data_len, false);
}

CMA_EXPORT int rdma_reject_ece(struct rdma_cm_id *id, const void *private_data,
			       uint8_t private_data_len)
{
	FORWARD(id, forward_reject_ece, rdma_reject_ece, id, private_data,
		private_data_len);
	return reject(id, private_data, private_data_len, true);
}

CMA_EXPORT int rdma_establish(struct rdma_cm_id *cm_id)
{
	FORWARD(cm_id, forward_establish, rdma_establish, cm_id);

	struct cma_id *id = cma_id_of(cm_id);
	int ret = id->removed ? -ENODEV : -EINVAL;

	pthread_mutex_lock(&id->lock);
	if (!cm_id->qp && id->connector)
		ret = id->connector->establish(id);
	pthread_mutex_unlock(&id->lock);
	return cma_result(ret);
}

CMA_EXPORT int rdma_notify(struct rdma_cm_id *cm_id, enum ibv_event_type event)
{
	FORWARD(cm_id, forward_notify, rdma_notify, cm_id, event);

	struct cma_id *id = cma_id_of(cm_id);
	int ret = -EINVAL;

	pthread_mutex_lock(&id->lock);
	if (event == IBV_EVENT_COMM_EST && id->connector)
		ret = id->connector->notify(id);
	pthread_mutex_unlock(&id->lock);
	return cma_result(ret);
}

CMA_EXPORT int rdma_disconnect(struct rdma_cm_id *cm_id)
{
	FORWARD(cm_id, forward_disconnect, rdma_disconnect, cm_id);

	struct cma_id *id = cma_id_of(cm_id);
	int ret;

	if (!id->connector)
		return cma_result(-EINVAL);
	ret = id->connector->disconnect(id);
	if (ret == -EALREADY) {
		/* The connection has ended before: wait only for a queued event. */
		if (!cma_channel_has_event(cma_channel_of(cm_id->channel), id))
			return 0;
		ret = 0;
	}
	CANCEL_BACK;
	if (!ret)
		ret = cma_id_complete(id);
	return cma_result(ret);
}
