/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Channels with events of both libraries: the public descriptor is an epoll descriptor that
 * watches the eventfd of our events and the channel of the system's library.
 */
#define LOG_ROOM "rdmacm"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rdmacm/event/event.h"
#include "rdmacm/system/system.h"
#include "util/log.h"

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

int cma_channel_fd_make(struct cma_channel *ch)
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

int cma_channel_system(struct cma_channel *ch, struct rdma_event_channel **out)
{
	struct rdma_event_channel *known = NULL, *made;
	int ret;

	*out = atomic_load(&ch->system);
	if (*out)
		return 0;
	if (!cma_channel_is_merged(ch)) {
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

void cma_channel_system_close(struct cma_channel *ch)
{
	struct rdma_event_channel *system = atomic_load(&ch->system);

	if (cma_channel_is_merged(ch))
		close(ch->pub.fd);
	if (system)
		FORWARD_CALL_VOID(rdma_destroy_event_channel, system);
}
