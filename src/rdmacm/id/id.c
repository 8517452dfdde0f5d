/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifiers: making, binding to a device, its failure, change of channel, destruction. */
#define LOG_ROOM "rdmacm"
#include "rdmacm/id/id.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>

#include "rdmacm/id/port.h"
#include "rdmacm/qp/qp.h"
#include "util/log.h"

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

/*
 * The device has failed. The connection ends as if the identifier were destroyed: the peer is
 * told, and nothing but DEVICE_REMOVAL is reported any more, after the events that are queued.
 * The port becomes free.
 */
static void id_removed(struct cma_device_user *user)
{
	struct cma_id *id = container_of(user, struct cma_id, device_user);

	pthread_mutex_lock(&id->lock);
	id->connector->remove(id);
	id->begun = true;
	id->backlog = 0;
	atomic_store(&id->removed, true);
	cma_port_release(id);
	cma_event_report(id, RDMA_CM_EVENT_DEVICE_REMOVAL, 0);
	pthread_mutex_unlock(&id->lock);
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
	list_init(&id->groups);
	list_init(&id->unclaimed);
	list_init(&id->sibling);
	list_init(&id->device_user.entry);
	id->device_user.removed = id_removed;
	*out = id;
	return 0;

err_free:
	free(id);
	return ret;
}

void cma_id_free(struct cma_id *id)
{
	cma_device_leave(&id->device_user);
	for (unsigned i = 0; i < CMA_CONNECTORS; i++)
		if (id->sides[i])
			cma_connectors[i]->free(id);
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

	cma_device_leave(&id->device_user);
	for (unsigned i = 0; i < CMA_CONNECTORS; i++)
		if (id->sides[i])
			cma_connectors[i]->close(id);
	cma_port_release(id);
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

int cma_id_bind_device(struct cma_id *id, const struct cma_gid_place *place)
{
	int ret;

	if (cma_id_is_datagram(id) && !place->device->datagrams) {
		log_warn("device %s has no datagrams",
			 ibv_get_device_name(place->device->verbs->device));
		return -EOPNOTSUPP;
	}
	ret = cma_connector_choose(id, place->device->verbs->device);
	if (!ret)
		ret = cma_device_join(place->device, &id->device_user);
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

bool cma_request_deliver(struct cma_event *ev)
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
