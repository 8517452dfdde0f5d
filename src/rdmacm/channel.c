/* SPDX-License-Identifier: BSD-2-Clause */
/* The public calls for event channels and their events. */
#include <errno.h>

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>

#include "rdmacm/forward/forward.h"
#include "util/wakeup.h"

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
			*out = cma_channel_next(ch);
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
	if (cma_channel_is_merged(ch)) {
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
		ev = cma_channel_next(ch);
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
