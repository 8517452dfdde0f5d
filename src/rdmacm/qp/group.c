/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast groups of the communication manager (rdma_join_multicast(3)). Inside a
 * host there is no subnet manager that keeps the members: the group's GID follows
 * from its IP address, a join reports an event, and the identifier's QP is
 * attached to the group when the program takes that event. In a simulated subnet there is one: the port
 * joins by it, and the group has the LID that it says.
 */
#define LOG_ROOM "rdmacm"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/host/subnet_peer.h"
#include "rdmacm/base/addr.h"
#include "rdmacm/qp/qp.h"
#include "util/log.h"
#include "verbs/private.h"

/* QP number to which datagrams for a group are sent. */
#define QPN_MULTICAST 0xffffff

struct cma_group {
	struct list entry;
	uint32_t serial;     /* by which its MULTICAST_JOIN event names it */
	struct sockaddr_storage addr;
	union ibv_gid gid;
	struct hca_subnet_path path; /* zeros, but in a simulated subnet */
	bool sends_only;
	bool attached;
};

/* id->lock is held for this and the next function. */
static struct cma_group *group_by_serial(struct cma_id *id, uint32_t serial)
{
	list_for_each(g, &id->groups, struct cma_group, entry)
		if (g->serial == serial)
			return g;
	return NULL;
}

static struct cma_group *group_by_addr(struct cma_id *id,
				       const struct sockaddr *addr)
{
	struct sockaddr_storage want;

	cma_addr_copy(&want, addr);
	list_for_each(g, &id->groups, struct cma_group, entry)
		if (cma_addr_same_host((struct sockaddr *)&g->addr,
				       (struct sockaddr *)&want))
			return g;
	return NULL;
}

/* The program takes a MULTICAST_JOIN event: attaches the QP. */
static bool deliver(struct cma_event *ev)
{
	struct cma_id *id = ev->owner;
	struct cma_group *g;
	union ibv_gid gid;
	uint16_t lid = 0;
	bool attach;
	int ret = 0;

	pthread_mutex_lock(&id->lock);
	g = group_by_serial(id, ev->group_serial);
	attach = g && !g->sends_only && id->pub.qp;
	if (g) {
		gid = g->gid;
		lid = g->path.lid;
	}
	pthread_mutex_unlock(&id->lock);
	if (!g)
		return false; /* the group was left meanwhile */
	if (attach)
		ret = cma_qp_attach(id, &gid, lid);
	if (ret) {
		ev->pub.event = RDMA_CM_EVENT_MULTICAST_ERROR;
		ev->pub.status = ret;
	}
	pthread_mutex_lock(&id->lock);
	g = group_by_serial(id, ev->group_serial);
	if (g)
		g->attached = attach && !ret;
	pthread_mutex_unlock(&id->lock);
	if (!g && attach && !ret)
		cma_qp_detach(id, &gid, lid);
	return g;
}

static struct cma_event *event_new(struct cma_id *id, const struct cma_group *g,
				   void *context)
{
	struct cma_event *ev = cma_event_new(id, &id->pub,
					     RDMA_CM_EVENT_MULTICAST_JOIN, 0);
	struct rdma_ud_param *ud;

	if (!ev)
		return NULL;
	ev->deliver = deliver;
	ev->group_serial = g->serial;
	ud = &ev->pub.param.ud;
	ud->private_data = context;
	cma_ud_fill(ud, id, &g->gid, QPN_MULTICAST, RDMA_UDP_QKEY);
	if (g->path.lid) {
		ud->ah_attr.dlid = g->path.lid;
		ud->ah_attr.sl = g->path.sl;
	}
	return ev;
}

int cma_group_join(struct cma_id *id, const struct sockaddr *addr, bool sends_only,
		   void *context)
{
	struct cma_event *ev;
	struct cma_group *g;
	int ret;

	if (id->removed)
		return -ENODEV;
	if (!cma_id_is_datagram(id) || !id->device ||
	    !cma_addr_is_multicast(addr))
		return -EINVAL;
	if (!id->device->multicast) {
		log_warn("device %s has no multicast", ibv_get_device_name(id->pub.verbs->device));
		return -EOPNOTSUPP;
	}
	if (group_by_addr(id, addr))
		return -EADDRINUSE;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->serial = ++id->group_serial;
	g->sends_only = sends_only;
	cma_addr_copy(&g->addr, addr);
	cma_addr_to_gid((struct sockaddr *)&g->addr, &g->gid);
	ret = busbar_subnet_on() ? busbar_subnet_join(&g->gid, sends_only, &g->path) : 0;
	ev = ret ? NULL : event_new(id, g, context);
	if (!ev) {
		free(g);
		return ret ? ret : -ENOMEM;
	}
	list_push(&id->groups, &g->entry);
	cma_event_post(ev);
	return 0;
}

/* Drops the queued MULTICAST_JOIN event of a group that is left, and its count in the
 * descriptor. The identifier's lock is held. */
static void event_drop(struct cma_id *id, uint32_t serial)
{
	struct cma_channel *ch = cma_channel_of(id->pub.channel);
	struct list events;

	list_init(&events);
	cma_channel_take(ch, id, &events);
	list_for_each_safe(ev, &events, struct cma_event, entry) {
		if (ev->pub.event != RDMA_CM_EVENT_MULTICAST_JOIN ||
		    ev->group_serial != serial)
			continue;
		list_remove(&ev->entry);
		free(ev);
	}
	cma_channel_put(ch, &events);
}

struct cma_group *cma_group_leave(struct cma_id *id, const struct sockaddr *addr)
{
	struct cma_group *g = group_by_addr(id, addr);

	if (g) {
		list_remove(&g->entry);
		event_drop(id, g->serial);
	}
	return g;
}

void cma_group_free(struct cma_id *id, struct cma_group *g)
{
	if (g->attached)
		cma_qp_detach(id, &g->gid, g->path.lid);
	free(g);
}

void cma_groups_detach(struct cma_id *id)
{
	list_for_each(g, &id->groups, struct cma_group, entry) {
		if (g->attached)
			cma_qp_detach(id, &g->gid, g->path.lid);
		g->attached = false;
	}
}

void cma_groups_free(struct cma_id *id)
{
	struct list *entry;

	cma_groups_detach(id);
	while ((entry = list_pop(&id->groups)))
		free(list_entry(entry, struct cma_group, entry));
}
