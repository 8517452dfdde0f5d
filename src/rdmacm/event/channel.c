/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Event channels. The descriptor is a counting eventfd (EFD_SEMAPHORE), one count
 * per queued event, so poll, epoll and O_NONBLOCK work as with the kernel's
 * descriptor, and a blocked rdma_get_cm_event() is in read(), a cancellation
 * point. If there are real devices, the public descriptor is an epoll descriptor
 * that watches this eventfd and the system's channel (merge.c).
 */
#define LOG_ROOM "rdmacm"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rdmacm/event/event.h"
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
	ret = cma_channel_fd_make(ch);
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
	cma_channel_system_close(ch);
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

struct cma_event *cma_channel_next(struct cma_channel *ch)
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
	if (!ev || !ev->deliver || ev->deliver(ev))
		return ev;
	cma_event_complete(ev->owner);
	free(ev);
	return NULL;
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
