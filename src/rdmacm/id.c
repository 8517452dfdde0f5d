/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls that make, set, move and destroy identifiers. */

#include <arpa/inet.h>
#include <busbar/rdma_cma.h>
#include <errno.h>
#include <string.h>

#include "rdmacm/base/addr.h"
#include "rdmacm/forward/forward.h"
#include "rdmacm/id/id.h"
#include "rdmacm/resolve/resolve.h"

CMA_EXPORT int rdma_create_id2(struct rdma_event_channel *channel,
			       struct rdma_cm_id **id, void *context,
			       enum rdma_port_space ps, enum ibv_qp_type qp_type)
{
	CANCEL_OFF;
	struct cma_id *made;
	int ret = cma_devices_init();

	if (!ret)
		ret = cma_id_create(channel, context, ps, qp_type, &made);
	if (ret)
		return cma_result(ret);
	*id = &made->pub;
	return 0;
}

CMA_EXPORT int rdma_create_id(struct rdma_event_channel *channel,
			      struct rdma_cm_id **id, void *context,
			      enum rdma_port_space ps)
{
	FORWARD_INSIDE(rdma_create_id, channel, id, context, ps);

	enum ibv_qp_type type = ps == RDMA_PS_UDP || ps == RDMA_PS_IPOIB ?
					IBV_QPT_UD : IBV_QPT_RC;

	return rdma_create_id2(channel, id, context, ps, type);
}

CMA_EXPORT int rdma_destroy_id(struct rdma_cm_id *cm_id)
{
	FORWARD_INSIDE(rdma_destroy_id, cm_id);

	struct cma_id *id = cma_id_of(cm_id);
	int ret;

	/* rdma_destroy_id() of the system's library waits for the acknowledgement. */
	if (id->shadow && id->pub.event) {
		rdma_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	ret = forward_drop(id);
	if (ret)
		return cma_result(ret);
	cma_id_shut(id);
	if (id->pub.event)
		rdma_ack_cm_event(id->pub.event);
	pthread_mutex_lock(&id->lock);
	while (id->completed != atomic_load(&id->reported))
		pthread_cond_wait(&id->acked, &id->lock);
	pthread_mutex_unlock(&id->lock);
	cma_id_free(id);
	return 0;
}

CMA_EXPORT int rdma_migrate_id(struct rdma_cm_id *cm_id,
			       struct rdma_event_channel *channel)
{
	FORWARD_INSIDE(rdma_migrate_id, cm_id, channel);

	struct cma_id *id = cma_id_of(cm_id);
	struct cma_channel *old = cma_channel_of(cm_id->channel);
	bool sync = !channel, was_sync = id->sync;
	struct cma_channel *ch = NULL;
	int ret;

	if (was_sync && sync)
		return cma_result(-EINVAL);
	if (sync) {
		ret = cma_channel_create(&ch);
		if (ret)
			return cma_result(ret);
	} else {
		ch = cma_channel_of(channel);
	}
	if (was_sync && cm_id->event) {
		rdma_ack_cm_event(cm_id->event);
		cm_id->event = NULL;
	}
	ret = id->shadow ? forward_migrate(id, ch) : 0;
	if (ret) {
		if (sync)
			cma_channel_destroy(ch);
		return cma_result(ret);
	}
	pthread_mutex_lock(&id->lock);
	cma_id_move(id, ch, sync);
	list_for_each(child, &id->unclaimed, struct cma_id, sibling) {
		pthread_mutex_lock(&child->lock);
		cma_id_move(child, ch, false);
		pthread_mutex_unlock(&child->lock);
	}
	while (id->completed != atomic_load(&id->reported))
		pthread_cond_wait(&id->acked, &id->lock);
	pthread_mutex_unlock(&id->lock);
	if (was_sync)
		cma_channel_destroy(old);
	return 0;
}

/* Follows the kernel where rdma_set_option(3) does not say which are allowed. */
static bool option_allowed(const struct cma_id *id, int name)
{
	switch (name) {
	case RDMA_OPTION_ID_AFONLY:
		return id->phase == CMA_UNBOUND;
	case RDMA_OPTION_ID_REUSEADDR:
		return id->phase == CMA_UNBOUND ||
		       (id->phase == CMA_BOUND && !id->begun);
	case RDMA_OPTION_ID_ACK_TIMEOUT:
		/* Other types have no acknowledgements. */
		return id->pub.qp_type == IBV_QPT_RC ||
		       id->pub.qp_type == IBV_QPT_XRC_SEND;
	default:
		return true;
	}
}

static int option_set(struct cma_id *id, int name, const void *value, size_t len)
{
	size_t want = name == RDMA_OPTION_ID_REUSEADDR ||
				      name == RDMA_OPTION_ID_AFONLY ?
			      sizeof(int) : sizeof(uint8_t);
	int number = 0;

	if (name < RDMA_OPTION_ID_TOS || name > RDMA_OPTION_ID_ACK_TIMEOUT)
		return -ENOSYS;
	if (!value || len != want || !option_allowed(id, name))
		return -EINVAL;
	if (want == sizeof(int))
		memcpy(&number, value, sizeof(number));
	else
		number = *(const uint8_t *)value;
	switch (name) {
	case RDMA_OPTION_ID_TOS:
		id->tos = (uint8_t)number;
		return 0;
	case RDMA_OPTION_ID_REUSEADDR:
		id->reuse_addr = number;
		return 0;
	case RDMA_OPTION_ID_AFONLY:
		id->v6_only = number;
		return 0;
	default:
		if (number > 31)
			return -EINVAL;
		id->ack_timeout = number;
		return 0;
	}
}

CMA_EXPORT int rdma_set_option(struct rdma_cm_id *cm_id, int level, int optname,
			       void *optval, size_t optlen)
{
	FORWARD(cm_id, forward_set_option, rdma_set_option, cm_id, level, optname,
		optval, optlen);

	struct cma_id *id = cma_id_of(cm_id);
	bool path = level == RDMA_OPTION_IB && optname == RDMA_OPTION_IB_PATH;
	int ret;

	if (level != RDMA_OPTION_ID && !path)
		return cma_result(-ENOSYS);
	if (path && (!optval || !optlen ||
		     optlen % sizeof(struct ibv_path_data)))
		return cma_result(-EINVAL);
	pthread_mutex_lock(&id->lock);
	ret = path ? cma_route_set(id, optval,
				   optlen / sizeof(struct ibv_path_data)) :
		     option_set(id, optname, optval, optlen);
	pthread_mutex_unlock(&id->lock);
	if (!ret && id->shadow && !path)
		ret = forward_set_option(cm_id, level, optname, optval, optlen);
	CANCEL_BACK;
	if (!ret && path)
		ret = cma_id_complete(id); /* the path is set: ROUTE_RESOLVED follows */
	return cma_result(ret);
}

CMA_EXPORT __be16 rdma_get_src_port(struct rdma_cm_id *id)
{
	return htons(cma_addr_port(&id->route.addr.src_addr));
}

CMA_EXPORT __be16 rdma_get_dst_port(struct rdma_cm_id *id)
{
	return htons(cma_addr_port(&id->route.addr.dst_addr));
}

CMA_EXPORT int rdma_set_local_ece(struct rdma_cm_id *cm_id, struct ibv_ece *ece)
{
	FORWARD(cm_id, forward_set_local_ece, rdma_set_local_ece, cm_id, ece);

	struct cma_id *id = cma_id_of(cm_id);

	if (!ece || ece->vendor_id >> 24)
		return cma_result(-EINVAL);
	pthread_mutex_lock(&id->lock);
	id->local_ece = *ece;
	pthread_mutex_unlock(&id->lock);
	if (id->shadow)
		return cma_result(forward_set_local_ece(cm_id, ece));
	return 0;
}

CMA_EXPORT int rdma_get_remote_ece(struct rdma_cm_id *cm_id, struct ibv_ece *ece)
{
	FORWARD(cm_id, forward_get_remote_ece, rdma_get_remote_ece, cm_id, ece);

	struct cma_id *id = cma_id_of(cm_id);

	if (!ece)
		return cma_result(-EINVAL);
	pthread_mutex_lock(&id->lock);
	*ece = id->remote_ece;
	pthread_mutex_unlock(&id->lock);
	return 0;
}
