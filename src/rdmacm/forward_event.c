/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels with events of both libraries, and the translation of the system's events;
 * see forward.h.
 *
 * An event is taken from the system's library only when the program takes one: that
 * library changes the state of the QP then, and counts the event as reported.
 */
#define LOG_ROOM "rdmacm"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rdmacm/forward.h"
#include "util/log.h"

/* ---- channels ---- */

static int descriptor_watch(int epoll_fd, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &ev) ? -errno : 0;
}

static int descriptor_unblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

int forward_channel_init(struct cma_channel *ch)
{
	int ret;

	ch->pub.fd = ch->count_fd;
	if (!forward_ready())
		return 0;
	ch->pub.fd = epoll_create1(EPOLL_CLOEXEC);
	if (ch->pub.fd < 0) {
		ret = -errno;
		goto err;
	}
	/* Non-blocking: it is read to see whether there is an event. */
	ret = descriptor_unblock(ch->count_fd);
	if (!ret)
		ret = descriptor_watch(ch->pub.fd, ch->count_fd);
	if (!ret)
		return 0;
	close(ch->pub.fd);
err:
	log_error("event channel: epoll: %s", strerror(-ret));
	return ret;
}

int forward_channel_open(struct cma_channel *ch, struct rdma_event_channel **out)
{
	struct rdma_event_channel *known = NULL, *made;
	int ret;

	*out = atomic_load(&ch->system);
	if (*out)
		return 0;
	if (!forward_channel_is_merged(ch)) {
		log_warn("an event channel that was made before there was a real adapter has no events of one");
		return -EOPNOTSUPP;
	}
	made = FORWARD_CALL(rdma_create_event_channel);
	if (!made) {
		ret = errno ? -errno : -ENODEV;
		goto err;
	}
	ret = descriptor_unblock(made->fd);
	if (!ret)
		ret = descriptor_watch(ch->pub.fd, made->fd);
	if (ret)
		goto err_made;
	*out = made;
	if (atomic_compare_exchange_strong(&ch->system, &known, made))
		return 0;
	/* Another thread has made one meanwhile. Closing this one would not take it out of the
	 * epoll instance if a forked child has it, too. */
	epoll_ctl(ch->pub.fd, EPOLL_CTL_DEL, made->fd, NULL);
	FORWARD_CALL_VOID(rdma_destroy_event_channel, made);
	*out = known;
	return 0;

err_made:
	FORWARD_CALL_VOID(rdma_destroy_event_channel, made);
err:
	log_warn("the system's librdmacm.so.1 makes no event channel: %s",
		 strerror(-ret));
	return ret;
}

void forward_channel_destroy(struct cma_channel *ch)
{
	struct rdma_event_channel *system = atomic_load(&ch->system);

	if (forward_channel_is_merged(ch))
		close(ch->pub.fd);
	if (system)
		FORWARD_CALL_VOID(rdma_destroy_event_channel, system);
}

int forward_migrate(struct cma_id *id, struct cma_channel *ch)
{
	struct rdma_event_channel *channel;
	int ret = forward_channel_open(ch, &channel);

	if (ret)
		return ret;
	return FORWARD_CALL(rdma_migrate_id, id->shadow, channel) ? -errno : 0;
}

/* ---- events ---- */

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
