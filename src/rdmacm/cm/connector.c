/* SPDX-License-Identifier: BSD-2-Clause */
/* What an identifier does, by messages of connection management. */

#include <errno.h>
#include <stdlib.h>

#include "rdmacm/cm/cm.h"
#include "rdmacm/qp/qp.h"
#include "util/clock.h"
#include "verbs/private.h"

/*
 * How long a connection request waits for a listener to appear. On a network the
 * request needs some time, and programs rely on it: perftest closes its listener
 * and opens it again, while its client may already connect a second time.
 */
#define LISTENER_WAIT_NS (50 * UINT64_C(1000000))

static int find_way(bool local)
{
	int ret;

	if (local && (!busbar_gsi_exists() || busbar_local_exists()))
		return 0;
	if (!busbar_gsi_exists())
		return -ENETUNREACH;
	ret = link_network_open();
	return ret ? ret : 1;
}

static int side_open(struct cma_id *id)
{
	return cma_side_open(id, cma_call_expired);
}

static size_t room(const struct cma_id *id, enum cma_message message)
{
	bool datagram = cma_id_is_datagram(id);

	switch (message) {
	case CMA_REQUEST:
		return (datagram ? CM_SIDR_REQ_PRIVATE : CM_REQ_PRIVATE) - cma_private_lead(id);
	case CMA_REPLY:
		return datagram ? CM_SIDR_REP_PRIVATE : CM_REP_PRIVATE;
	default:
		return datagram ? CM_SIDR_REP_PRIVATE : CM_REJ_PRIVATE;
	}
}

static int connect_to(struct cma_id *id)
{
	struct cma_side *s = cma_side_of(id);
	int ret = cma_call(id);

	if (ret && ret != -ECONNREFUSED && ret != -EAGAIN && ret != -EACCES)
		return ret;
	s->link_retry = ret == -EAGAIN || ret == -ECONNREFUSED;
	s->listener_until_ns = clock_monotonic_ns_slow() + LISTENER_WAIT_NS;
	cma_conn_input(id, cma_id_is_datagram(id) ? CM_DO_LOOKUP : CM_DO_CONNECT, NULL);
	if (ret == -EACCES)
		return cma_conn_input(id, CM_REFUSED, NULL);
	return 0;
}

static int listen_on(struct cma_id *id)
{
	int ret;

	cma_conn_input(id, CM_DO_LISTEN, NULL);
	ret = cma_call_listen(id);
	if (ret)
		cma_side_of(id)->cm.state = CM_IDLE;
	return ret;
}

static int accept_check(const struct cma_id *id)
{
	struct cm_step step;

	return cm_state_step(cma_side_of(id)->cm.state, CM_DO_ACCEPT, &step);
}

static int accept_request(struct cma_id *id)
{
	int ret = cma_id_is_datagram(id) ? 0 : cma_qp_connect(id);

	if (ret)
		return ret;
	pthread_mutex_lock(&id->lock);
	ret = cma_conn_input(id, CM_DO_ACCEPT, NULL);
	pthread_mutex_unlock(&id->lock);
	if (ret)
		cma_qp_fail(id);
	return ret;
}

static int reject(struct cma_id *id, bool for_ece)
{
	int ret;

	id->conn.reject_reason = for_ece ? CM_REASON_VENDOR_OPTION : CM_REASON_CONSUMER;
	ret = cma_conn_input(id, CM_DO_REJECT, NULL);
	id->conn.reject_reason = 0;
	return ret;
}

static int establish(struct cma_id *id)
{
	return cma_conn_input(id, CM_DO_ESTABLISH, NULL);
}

static int notify(struct cma_id *id)
{
	return cma_conn_input(id, CM_DO_NOTIFY, NULL);
}

static int disconnect(struct cma_id *id)
{
	int ret;

	/* Before the DREQ. */
	cma_qp_fail(id);
	pthread_mutex_lock(&id->lock);
	ret = cma_conn_input(id, CM_DO_DISCONNECT, NULL);
	pthread_mutex_unlock(&id->lock);
	return ret;
}

static void side_remove(struct cma_id *id)
{
	cma_side_of(id)->link_retry = false;
	cma_conn_input(id, CM_DO_DESTROY, NULL);
	if (id->backlog)
		cma_call_unlisten(id);
}

static void side_close(struct cma_id *id)
{
	struct cma_side *s = cma_side_of(id);

	pthread_mutex_lock(&id->lock);
	cma_conn_input(id, CM_DO_DESTROY, NULL);
	orphan_adopt(s);
	pthread_mutex_unlock(&id->lock);
	cma_side_close(s);
}

static void side_free(struct cma_id *id)
{
	free(cma_side_of(id));
}

static const struct cma_connector connector = {
	.transport = IBV_TRANSPORT_IB,
	.find_way = find_way,
	.open = side_open,
	.room = room,
	.connect = connect_to,
	.listen = listen_on,
	.accept_check = accept_check,
	.accept = accept_request,
	.reject = reject,
	.establish = establish,
	.notify = notify,
	.disconnect = disconnect,
	.qp_attr = cma_attr_get,
	.remove = side_remove,
	.close = side_close,
	.free = side_free,
};

__attribute__((constructor)) static void connector_load(void)
{
	cma_connectors[CMA_CONNECTOR_CM] = &connector;
}
