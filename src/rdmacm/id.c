/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifiers: making, options, change of channel, destruction. */
#define LOG_ROOM "rdmacm"
#include <arpa/inet.h>
#include <busbar/rdma_cma.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/cma.h"
#include "rdmacm/forward.h"
#include "rdmacm/network.h"
#include "util/log.h"
#include "util/settings.h"

struct cma_settings cma_settings;

static const struct setting settings[] = {
	{ .env = "BUSBAR_CM_TIMEOUT_MS", .fallback = "68000",
	  .help = "how long a connection request waits for the peer's answer",
	  .type = SETTING_UINT,
	  .offset = offsetof(struct cma_settings, timeout_ms),
	  .min = 10, .max = 3600000 },
};

__attribute__((constructor)) static void cma_load(void)
{
	const char *level = getenv("BUSBAR_LOG");

	/* libibverbs reports an invalid value. */
	if (level && log_level_parse(level) >= 0)
		log_set_level((enum log_level)log_level_parse(level));
	settings_load(settings, ARRAY_SIZE(settings), &cma_settings);
}

bool cma_service_exists(enum rdma_port_space ps, enum ibv_qp_type type)
{
	bool connected = type == IBV_QPT_RC || type == IBV_QPT_UC ||
			 type == IBV_QPT_XRC_SEND || type == IBV_QPT_XRC_RECV;

	switch (ps) {
	case RDMA_PS_TCP:
		return connected;
	case RDMA_PS_UDP:
		return type == IBV_QPT_UD;
	case RDMA_PS_IPOIB:
		return type == IBV_QPT_UD || type == IBV_QPT_UC;
	case RDMA_PS_IB:
		return connected || type == IBV_QPT_UD;
	default:
		return false;
	}
}

static uint32_t comm_id_first;

static void comm_id_start(void)
{
	comm_id_first = cma_random(UINT32_MAX);
}

/*
 * The next communication identifier. Peers tell connections apart by it, so they are
 * counted: of ten thousand random ones two would be equal in one of a hundred runs.
 * The first is random, because a former process may have used the same numbers.
 */
static uint32_t comm_id_next(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Atomic uint32_t count;
	uint32_t id;

	pthread_once(&once, comm_id_start);
	do
		id = comm_id_first + atomic_fetch_add(&count, 1);
	while (!id); /* 0 means none */
	return id;
}

int cma_id_create(struct rdma_event_channel *channel, void *context,
		  enum rdma_port_space ps, enum ibv_qp_type qp_type,
		  struct cma_id **out)
{
	struct cma_channel *own = NULL;
	struct cma_id *id;
	int ret = 0;

	if (!cma_service_exists(ps, qp_type))
		return -EINVAL;
	id = calloc(1, sizeof(*id));
	if (!id)
		return -ENOMEM;
	if (!channel) {
		ret = cma_channel_create(&own);
		if (ret)
			goto err_free;
		channel = &own->pub;
		id->sync = true;
	}
	pthread_mutex_init(&id->lock, NULL);
	pthread_mutex_init(&id->qp_lock, NULL);
	pthread_cond_init(&id->acked, NULL);
	id->pub.channel = channel;
	id->pub.context = context;
	id->pub.ps = ps;
	id->pub.qp_type = qp_type;
	id->ack_timeout = -1;
	id->port_fd = -1;
	cm_machine_init(&id->cm, comm_id_next());
	id->conn.local_psn = cma_random(0xffffff);
	list_init(&id->groups);
	list_init(&id->unclaimed);
	list_init(&id->sibling);
	list_init(&id->device_entry);
	cma_link_init(id);
	*out = id;
	return 0;

err_free:
	free(id);
	return ret;
}

void cma_id_free(struct cma_id *id)
{
	cma_device_leave(id);
	if (id->sync)
		cma_channel_destroy(cma_channel_of(id->pub.channel));
	pthread_cond_destroy(&id->acked);
	pthread_mutex_destroy(&id->qp_lock);
	pthread_mutex_destroy(&id->lock);
	free(id->pub.route.path_rec);
	free(id->qp_init_attr);
	free(id->connect_data);
	free(id);
}

void cma_id_shut(struct cma_id *id)
{
	struct list events, *entry;

	cma_device_leave(id);
	pthread_mutex_lock(&id->lock);
	cma_conn_input(id, CM_DO_DESTROY, NULL);
	orphan_adopt(id);
	pthread_mutex_unlock(&id->lock);
	cma_link_close(id);
	cma_groups_free(id);

	list_init(&events);
	cma_channel_take(cma_channel_of(id->pub.channel), id, &events);
	while ((entry = list_pop(&events))) {
		struct cma_event *ev = list_entry(entry, struct cma_event, entry);

		if (ev->pub.event == RDMA_CM_EVENT_CONNECT_REQUEST) {
			struct cma_id *child = cma_id_of(ev->pub.id);

			list_remove(&child->sibling);
			cma_id_shut(child);
			cma_id_free(child);
		}
		free(ev);
	}
}

/*
 * The connection ends as if the identifier were destroyed: the peer is told, and
 * nothing but DEVICE_REMOVAL is reported any more, after the events that are queued.
 * The port becomes free.
 */
void cma_id_remove(struct cma_id *id)
{
	pthread_mutex_lock(&id->lock);
	id->link_retry = false;
	cma_conn_input(id, CM_DO_DESTROY, NULL);
	atomic_store(&id->removed, true);
	cma_link_unlisten(id);
	cma_port_release(id);
	cma_event_report(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	pthread_mutex_unlock(&id->lock);
}

int cma_id_bind_device(struct cma_id *id, const struct cma_gid_place *place)
{
	int ret;

	if (cma_id_is_datagram(id) && !place->device->datagrams) {
		log_warn("device %s has no datagrams",
			 ibv_get_device_name(place->device->verbs->device));
		return -EOPNOTSUPP;
	}
	ret = cma_device_join(place->device, id);
	if (ret)
		return ret;
	id->device = place->device;
	id->pub.verbs = place->device->verbs;
	id->pub.port_num = place->port_num;
	if (!id->pub.pd)
		id->pub.pd = place->device->pd;
	id->sgid_index = place->index;
	id->active_mtu = place->mtu;
	id->interface = place->interface;
	id->pub.route.addr.addr.ibaddr.sgid = place->gid;
	id->pub.route.addr.addr.ibaddr.pkey = htons(0xffff);
	return 0;
}

void cma_id_move(struct cma_id *id, struct cma_channel *ch, bool sync)
{
	struct list events;

	list_init(&events);
	cma_channel_take(cma_channel_of(id->pub.channel), id, &events);
	id->pub.channel = &ch->pub;
	id->sync = sync;
	cma_channel_put(ch, &events);
}

int cma_id_complete(struct cma_id *id)
{
	int ret;

	if (!id->sync)
		return 0;
	if (id->pub.event) {
		rdma_ack_cm_event(id->pub.event);
		id->pub.event = NULL;
	}
	if (rdma_get_cm_event(id->pub.channel, &id->pub.event))
		return -errno;
	if (id->pub.event->event == RDMA_CM_EVENT_DEVICE_REMOVAL)
		return -ENODEV;
	ret = id->pub.event->status;
	if (!ret)
		return 0;
	if (id->pub.event->event == RDMA_CM_EVENT_REJECTED)
		return -ECONNREFUSED;
	return ret < 0 ? ret : -ret;
}

/* The program takes a CONNECT_REQUEST: the child leaves the listener. */
static bool request_deliver(struct cma_event *ev)
{
	struct cma_id *child = cma_id_of(ev->pub.id);
	struct cma_id *listener = ev->owner;
	struct cma_channel *own = NULL;
	bool sync;

	pthread_mutex_lock(&listener->lock);
	list_remove(&child->sibling);
	listener->unclaimed_count--;
	sync = listener->sync;
	pthread_mutex_unlock(&listener->lock);

	if (sync && cma_channel_create(&own)) {
		cma_id_shut(child);
		cma_id_free(child);
		return false;
	}
	pthread_mutex_lock(&child->lock);
	child->listener = NULL;
	if (sync)
		cma_id_move(child, own, true);
	pthread_mutex_unlock(&child->lock);
	return true;
}

/*
 * The peer sent a REP. If the identifier has the QP, its state is changed here, in the
 * application's thread, and the RTU is sent; otherwise the application does so
 * (rdma_establish()).
 */
static bool response_deliver(struct cma_event *ev)
{
	struct cma_id *id = ev->owner;
	int ret = 0;

	if (!id->pub.qp)
		return true;
	ret = cma_qp_connect(id);
	pthread_mutex_lock(&id->lock);
	if (id->cm.state != CM_REP_RCVD) {
		/* The connection has ended meanwhile; that event is queued. */
		pthread_mutex_unlock(&id->lock);
		return false;
	}
	if (ret) {
		cma_conn_input(id, CM_DO_REJECT, NULL);
		id->connect_failed = true;
		ev->pub.event = RDMA_CM_EVENT_CONNECT_ERROR;
		ev->pub.status = ret;
	} else {
		cma_conn_input(id, CM_DO_ESTABLISH, NULL);
		ev->pub.event = RDMA_CM_EVENT_ESTABLISHED;
	}
	pthread_mutex_unlock(&id->lock);
	if (ret)
		cma_qp_fail(id);
	return true;
}

bool cma_event_deliver(struct cma_event *ev)
{
	switch (ev->pub.event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return request_deliver(ev);
	case RDMA_CM_EVENT_CONNECT_RESPONSE:
		return response_deliver(ev);
	case RDMA_CM_EVENT_MULTICAST_JOIN:
		return cma_group_deliver(ev);
	case RDMA_CM_EVENT_REJECTED:
		if (ev->owner->connect_failed)
			return false;
		cma_qp_fail(ev->owner);
		return true;
	case RDMA_CM_EVENT_DISCONNECTED:
		return !ev->owner->connect_failed;
	default:
		return true;
	}
}

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
		       (id->phase == CMA_BOUND && id->cm.state == CM_IDLE);
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
