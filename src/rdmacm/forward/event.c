/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The translation of the system's events; see forward.h.
 *
 * An event is taken from the system's library only when the program takes one: that
 * library changes the state of the QP then, and counts the event as reported.
 */
#define LOG_ROOM "rdmacm"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rdmacm/forward/forward.h"
#include "rdmacm/id/id.h"
#include "util/log.h"

int forward_migrate(struct cma_id *id, struct cma_channel *ch)
{
	struct rdma_event_channel *channel;
	int ret = cma_channel_system(ch, &channel);

	if (ret)
		return ret;
	return FORWARD_CALL(rdma_migrate_id, id->shadow, channel) ? -errno : 0;
}

/* The program's identifier for a connection request, on the listener's channel or,
 * for a synchronous listener, on a channel of its own. */
static int child_create(const struct cma_id *listener, struct rdma_cm_id *shadow,
			struct cma_id **out)
{
	struct cma_id *child;
	int ret = cma_id_create(listener->sync ? NULL : listener->pub.channel,
				listener->pub.context, listener->pub.ps,
				shadow->qp_type, &child);

	if (ret)
		return ret;
	child->shadow = shadow;
	if (child->sync)
		ret = forward_migrate(child, cma_channel_of(child->pub.channel));
	if (ret) {
		log_error("request of a peer dropped: %s", strerror(-ret));
		cma_id_free(child);
		return ret;
	}
	shadow->context = child;
	*out = child;
	return 0;
}

static void event_drop(struct rdma_cm_event *system)
{
	struct rdma_cm_id *request = system->listen_id ? system->id : NULL;

	FORWARD_CALL(rdma_ack_cm_event, system);
	if (request)
		FORWARD_CALL(rdma_destroy_id, request);
}

static struct cma_event *event_translate(struct rdma_cm_event *system)
{
	bool request = system->event == RDMA_CM_EVENT_CONNECT_REQUEST;
	struct cma_id *owner = request ? system->listen_id->context :
					 system->id->context;
	struct cma_id *id = owner;
	struct cma_event *ev = cma_event_new(owner, NULL, system->event,
					     system->status);

	if (!ev)
		return NULL;
	if (request && child_create(owner, system->id, &id)) {
		free(ev);
		return NULL;
	}
	ev->system = system;
	ev->pub.id = &id->pub;
	ev->pub.listen_id = request ? &owner->pub : NULL;
	/* The private data stay in the system's event until it is acknowledged. */
	ev->pub.param = system->param;
	if (forward_owns(id))
		forward_pull(id);
	atomic_fetch_add(&owner->reported, 1);
	return ev;
}

int forward_event_take(struct cma_channel *ch, struct cma_event **out)
{
	struct rdma_event_channel *channel = atomic_load(&ch->system);
	struct rdma_cm_event *system;

	*out = NULL;
	if (!channel)
		return -EAGAIN;
	if (FORWARD_CALL(rdma_get_cm_event, channel, &system))
		return errno ? -errno : -EIO;
	*out = event_translate(system);
	if (!*out)
		event_drop(system);
	return 0;
}
