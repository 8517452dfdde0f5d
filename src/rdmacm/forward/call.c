/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls for an identifier that is used through its shadow alone: each is made on the
 * shadow. The shadow is always asynchronous; for a synchronous identifier
 * cma_id_complete() waits.
 */
#define LOG_ROOM "rdmacm"
#include <errno.h>
#include <string.h>

#include "rdmacm/forward/forward.h"
#include "util/log.h"

static struct rdma_cm_id *shadow_of(struct rdma_cm_id *id)
{
	return cma_id_of(id)->shadow;
}

/* The result of a call that is followed by an event. */
static int complete(struct rdma_cm_id *id, int failed)
{
	return failed ? -errno : cma_id_complete(cma_id_of(id));
}

/* -ENOSYS if the system's library, of a version after 1.0, has no such function. */
#define CALL_IF_THERE(name, ...)                               \
	(!FORWARD_SYSTEM(name)                      ? -ENOSYS : \
	 FORWARD_CALL(name, __VA_ARGS__)            ? -errno : \
						      0)

int forward_resolve_route(struct rdma_cm_id *id, int timeout_ms)
{
	if (!shadow_of(id)->verbs)
		return -EINVAL;
	return complete(id, FORWARD_CALL(rdma_resolve_route, shadow_of(id),
					 timeout_ms));
}

int forward_connect(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct cma_id *own = cma_id_of(id);
	struct rdma_conn_param with = {
		.retry_count = 7, .rnr_retry_count = 7,
		.responder_resources = RDMA_MAX_RESP_RES,
		.initiator_depth = RDMA_MAX_INIT_DEPTH,
	};
	uint8_t data[CM_REQ_PRIVATE];
	size_t len;

	if (!id->verbs)
		return -EINVAL;
	forward_push(own);
	if (!own->connect_len)
		return complete(id, FORWARD_CALL(rdma_connect, own->shadow, param));
	/* ai_connect of rdma_create_ep() precedes the caller's private data. */
	if (param)
		with = *param;
	len = with.private_data ? with.private_data_len : 0;
	if (own->connect_len + len > sizeof(data)) {
		log_warn("private data of %zu bytes, at most %zu fit",
			 own->connect_len + len, sizeof(data));
		return -EINVAL;
	}
	memcpy(data, own->connect_data, own->connect_len);
	if (len)
		memcpy(data + own->connect_len, with.private_data, len);
	with.private_data = data;
	with.private_data_len = (uint8_t)(own->connect_len + len);
	if (FORWARD_CALL(rdma_connect, own->shadow, &with))
		return -errno;
	own->connect_len = 0;
	return cma_id_complete(own);
}

int forward_accept(struct rdma_cm_id *id, struct rdma_conn_param *param)
{
	struct cma_id *own = cma_id_of(id);

	if (!param && !id->qp)
		return -EINVAL;
	forward_push(own);
	if (FORWARD_CALL(rdma_accept, own->shadow, param))
		return -errno;
	if (!cma_id_is_datagram(own))
		return cma_id_complete(own);
	/* Datagrams have no event after accept; the request's is acknowledged here. */
	if (own->sync && id->event) {
		rdma_ack_cm_event(id->event);
		id->event = NULL;
	}
	return 0;
}

int forward_reject(struct rdma_cm_id *id, const void *private_data, uint8_t len)
{
	return FORWARD_CALL(rdma_reject, shadow_of(id), private_data, len) ?
		       -errno : 0;
}

int forward_reject_ece(struct rdma_cm_id *id, const void *private_data,
		       uint8_t len)
{
	return CALL_IF_THERE(rdma_reject_ece, shadow_of(id), private_data, len);
}

int forward_establish(struct rdma_cm_id *id)
{
	forward_push(cma_id_of(id));
	return CALL_IF_THERE(rdma_establish, shadow_of(id));
}

int forward_notify(struct rdma_cm_id *id, enum ibv_event_type event)
{
	return FORWARD_CALL(rdma_notify, shadow_of(id), event) ? -errno : 0;
}

int forward_disconnect(struct rdma_cm_id *id)
{
	forward_push(cma_id_of(id));
	return complete(id, FORWARD_CALL(rdma_disconnect, shadow_of(id)));
}

int forward_join(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
	forward_push(cma_id_of(id));
	return complete(id, FORWARD_CALL(rdma_join_multicast, shadow_of(id), addr,
					 context));
}

int forward_join_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
		    void *context)
{
	int ret;

	forward_push(cma_id_of(id));
	ret = CALL_IF_THERE(rdma_join_multicast_ex, shadow_of(id), attr, context);
	return ret ? ret : cma_id_complete(cma_id_of(id));
}

int forward_leave(struct rdma_cm_id *id, struct sockaddr *addr)
{
	forward_push(cma_id_of(id));
	return FORWARD_CALL(rdma_leave_multicast, shadow_of(id), addr) ? -errno : 0;
}

int forward_set_option(struct rdma_cm_id *id, int level, int name, void *value,
		       size_t len)
{
	if (FORWARD_CALL(rdma_set_option, shadow_of(id), level, name, value, len))
		return -errno;
	/* Setting a path resolves the route, and an event follows. */
	return level == RDMA_OPTION_IB && name == RDMA_OPTION_IB_PATH ?
		       cma_id_complete(cma_id_of(id)) : 0;
}

int forward_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return CALL_IF_THERE(rdma_set_local_ece, shadow_of(id), ece);
}

int forward_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
	return CALL_IF_THERE(rdma_get_remote_ece, shadow_of(id), ece);
}
