/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels. The descriptor is a counting eventfd (EFD_SEMAPHORE), one count
 * per queued event, so poll, epoll and O_NONBLOCK work as with the kernel's
 * descriptor, and a blocked rdma_get_cm_event() is in read(), a cancellation
 * point. If there are real devices, the public descriptor is an epoll descriptor
 * that watches this eventfd and the system's channel (forward_event.c).
 */
#define LOG_ROOM "rdmacm"
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm/cma.h"
#include "rdmacm/forward.h"
#include "util/log.h"
#include "util/wakeup.h"
#include "verbs/private.h"

int cma_channel_create(struct cma_channel **out)
{
	struct cma_channel *ch = calloc(1, sizeof(*ch));
	int ret;

	if (!ch)
		return -ENOMEM;
	ch->count_fd = wakeup_open_counter();
	if (ch->count_fd < 0) {
		ret = ch->count_fd;
		log_error("event channel: eventfd failed: %s", strerror(-ret));
		goto err_free;
	}
	ret = forward_channel_init(ch);
	if (ret)
		goto err_close;
	pthread_mutex_init(&ch->lock, NULL);
	list_init(&ch->events);
	*out = ch;
	return 0;

err_close:
	close(ch->count_fd);
err_free:
	free(ch);
	return ret;
}

void cma_channel_destroy(struct cma_channel *ch)
{
	struct list *entry;

	while ((entry = list_pop(&ch->events)))
		free(list_entry(entry, struct cma_event, entry));
	forward_channel_destroy(ch);
	close(ch->count_fd);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
}

struct cma_event *cma_event_new(struct cma_id *owner, struct rdma_cm_id *id,
				enum rdma_cm_event_type type, int status)
{
	struct cma_event *ev = calloc(1, sizeof(*ev));

	if (!ev) {
		log_error("event %s lost: out of memory", rdma_event_str(type));
		return NULL;
	}
	ev->owner = owner;
	ev->pub.id = id;
	ev->pub.event = type;
	ev->pub.status = status;
	list_init(&ev->entry);
	return ev;
}

/* Does the event say that the connection, if there was one, has ended? */
static bool is_last(enum rdma_cm_event_type type)
{
	return type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_TIMEWAIT_EXIT ||
	       type == RDMA_CM_EVENT_DEVICE_REMOVAL || type == RDMA_CM_EVENT_UNREACHABLE ||
	       type == RDMA_CM_EVENT_CONNECT_ERROR;
}

void cma_event_post(struct cma_event *ev)
{
	struct cma_channel *ch = cma_channel_of(ev->owner->pub.channel);

	/* The messages that the peer sent before are in the completion queues, and their events in
	 * their channels, before the program can see that no more will come. */
	if (is_last(ev->pub.event))
		busbar_take_in();
	pthread_mutex_lock(&ch->lock);
	list_push(&ch->events, &ev->entry);
	wakeup_post(ch->count_fd);
	pthread_mutex_unlock(&ch->lock);
}

int cma_event_report(struct cma_id *id, enum rdma_cm_event_type type, int status)
{
	struct cma_event *ev = cma_event_new(id, &id->pub, type, status);

	if (!ev)
		return -ENOMEM;
	cma_event_post(ev);
	return 0;
}

void cma_channel_take(struct cma_channel *ch, struct cma_id *owner,
		      struct list *out)
{
	pthread_mutex_lock(&ch->lock);
	list_for_each_safe(ev, &ch->events, struct cma_event, entry) {
		if (ev->owner != owner)
			continue;
		list_remove(&ev->entry);
		list_push(out, &ev->entry);
		/* A reader that was faster finds the queue short and reads again. */
		wakeup_take(ch->count_fd);
	}
	pthread_mutex_unlock(&ch->lock);
}

void cma_channel_put(struct cma_channel *ch, struct list *events)
{
	struct list *entry;

	pthread_mutex_lock(&ch->lock);
	while ((entry = list_pop(events))) {
		list_push(&ch->events, entry);
		wakeup_post(ch->count_fd);
	}
	pthread_mutex_unlock(&ch->lock);
}

bool cma_channel_has_event(struct cma_channel *ch, struct cma_id *owner)
{
	bool found = false;

	pthread_mutex_lock(&ch->lock);
	list_for_each(ev, &ch->events, struct cma_event, entry)
		found |= ev->owner == owner;
	pthread_mutex_unlock(&ch->lock);
	return found;
}

void cma_event_complete(struct cma_id *owner)
{
	pthread_mutex_lock(&owner->lock);
	owner->completed++;
	pthread_cond_broadcast(&owner->acked);
	pthread_mutex_unlock(&owner->lock);
}

CMA_EXPORT struct rdma_event_channel *rdma_create_event_channel(void)
{
	FORWARD_INSIDE(rdma_create_event_channel);

	struct cma_channel *ch;
	int ret = cma_devices_init();

	if (!ret)
		ret = cma_channel_create(&ch);
	if (ret) {
		errno = -ret;
		return NULL;
	}
	return &ch->pub;
}

CMA_EXPORT void rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	FORWARD_INSIDE(rdma_destroy_event_channel, channel);
	cma_channel_destroy(cma_channel_of(channel));
}

/* The next event, after one count was read. NULL: it was removed, or is not reported. */
static struct cma_event *event_take(struct cma_channel *ch)
{
	struct cma_event *ev = NULL;
	struct list *entry;

	pthread_mutex_lock(&ch->lock);
	entry = list_pop(&ch->events);
	if (entry) {
		ev = list_entry(entry, struct cma_event, entry);
		/* Under the lock: rdma_destroy_id() waits for reported events. */
		atomic_fetch_add(&ev->owner->reported, 1);
	}
	pthread_mutex_unlock(&ch->lock);
	if (!ev || cma_event_deliver(ev))
		return ev;
	cma_event_complete(ev->owner);
	free(ev);
	return NULL;
}

/* One event of soft0 or of the system's channel, without waiting. 0 and NULL: an
 * event was dropped, there may be more; -EAGAIN: none is queued. */
static int event_of_either(struct cma_channel *ch, struct cma_event **out)
{
	unsigned turn = atomic_fetch_add(&ch->turn, 1);
	int ret = -EAGAIN;

	/* The two queues alternate, so neither can starve the other one. */
	for (unsigned i = 0; i < 2 && ret == -EAGAIN; i++) {
		if ((turn + i) % 2) {
			ret = forward_event_take(ch, out);
		} else if (wakeup_take(ch->count_fd)) {
			*out = event_take(ch);
			ret = 0;
		}
	}
	return ret;
}

static int merged_get(struct cma_channel *ch, struct cma_event **out)
{
	struct pollfd pfd = { .fd = ch->pub.fd, .events = POLLIN };
	int cancel_state, flags, ret;

	*out = NULL;
	for (;;) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
		ret = event_of_either(ch, out);
		pthread_setcancelstate(cancel_state, NULL);
		if (*out)
			return 0;
		if (ret && ret != -EAGAIN)
			return ret;
		if (!ret)
			continue;
		flags = fcntl(ch->pub.fd, F_GETFL);
		if (flags < 0)
			return -errno;
		if (flags & O_NONBLOCK)
			return -EAGAIN;
		if (poll(&pfd, 1, -1) < 0)
			return -errno;
	}
}

CMA_EXPORT int rdma_get_cm_event(struct rdma_event_channel *channel,
				 struct rdma_cm_event **event)
{
	FORWARD_WAITING(rdma_get_cm_event, channel, event);

	struct cma_event *ev = NULL;
	struct cma_channel *ch;

	if (!channel || !event)
		return cma_result(-EINVAL);
	ch = cma_channel_of(channel);
	if (forward_channel_is_merged(ch)) {
		int ret = merged_get(ch, &ev);

		if (ret)
			return cma_result(ret);
	}
	while (!ev) {
		int cancel_state, ret = wakeup_wait(ch->pub.fd);

		if (ret)
			return cma_result(ret);
		/* The wait is a cancellation point; handling the event is not. */
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
		ev = event_take(ch);
		pthread_setcancelstate(cancel_state, NULL);
	}
	*event = &ev->pub;
	return 0;
}

CMA_EXPORT int rdma_ack_cm_event(struct rdma_cm_event *event)
{
	FORWARD_INSIDE(rdma_ack_cm_event, event);

	struct cma_event *ev;
	struct cma_id *owner;

	if (!event)
		return cma_result(-EINVAL);
	ev = cma_event_of(event);
	owner = ev->owner;
	if (ev->system)
		FORWARD_CALL(rdma_ack_cm_event, ev->system);
	free(ev);
	cma_event_complete(owner);
	return 0;
}

CMA_EXPORT const char *rdma_event_str(enum rdma_cm_event_type event)
{
	static const char *const names[] = {
		[RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
		[RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
		[RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
		[RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
		[RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
		[RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
		[RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
		[RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
		[RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
		[RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
		[RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
		[RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
		[RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
		[RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
		[RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
		[RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
	};

	if ((size_t)event < ARRAY_SIZE(names))
		return names[event];
	return "UNKNOWN EVENT";
}
