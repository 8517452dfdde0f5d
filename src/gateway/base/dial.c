/* SPDX-License-Identifier: BSD-2-Clause */
/* See dial.h. */
#include "gateway/base/dial.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/base/lookup.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/wakeup.h"

#define LOOK_NS UINT64_C(20000000)

static uint64_t left_ns(const struct dial_limit *l, uint64_t now_ns)
{
	return now_ns < l->until_ns ? l->until_ns - now_ns : 0;
}

/* 0, -ECANCELED or -ETIMEDOUT. */
static int check(const struct dial_limit *l)
{
	if (l->cancelled && atomic_load(l->cancelled))
		return -ECANCELED;
	return left_ns(l, clock_now_ns()) ? 0 : -ETIMEDOUT;
}

int dial_wait(int fd, short events, const struct dial_limit *l)
{
	struct pollfd fds[] = { { .fd = fd, .events = events },
				{ .fd = l->wake_fd, .events = POLLIN } };
	uint64_t left = left_ns(l, clock_now_ns());
	bool looks = l->cancelled && l->wake_fd < 0;
	struct timespec t = timespec_from_ns(looks ? MIN(left, LOOK_NS) : left);
	int ret = check(l);

	if (ret)
		return ret;
	ppoll(fds, ARRAY_SIZE(fds), &t, NULL);
	if (fds[1].revents)
		wakeup_drain(l->wake_fd);
	return check(l);
}

int dial_await(int fd, const struct dial_limit *l)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof(int);
	int error = 0, ret;

	while (poll(&p, 1, 0) < 1) {
		ret = dial_wait(fd, POLLOUT, l);
		if (ret)
			return ret;
	}
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? -errno : -error;
}

bool dial_is_own(int fd)
{
	struct sockaddr_storage own = { 0 }, peer = { 0 };
	socklen_t own_len = sizeof(own), peer_len = sizeof(peer);

	return !getsockname(fd, (struct sockaddr *)&own, &own_len) &&
	       !getpeername(fd, (struct sockaddr *)&peer, &peer_len) && own.ss_family != AF_UNIX &&
	       !memcmp(&own, &peer, sizeof(own));
}

int dial_connect(int fd, const struct sockaddr *to, socklen_t len, const struct dial_limit *l)
{
	int ret = 0;

	if (connect(fd, to, len))
		ret = errno == EINPROGRESS ? dial_await(fd, l) : -errno;
	return !ret && dial_is_own(fd) ? -ECONNREFUSED : ret;
}

int dial_address(const struct addrinfo *to, const struct dial_limit *l)
{
	int fd = socket(to->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, to->ai_protocol);
	int ret, on = 1;

	if (fd < 0)
		return -errno;
	if (to->ai_family != AF_UNIX)
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	ret = dial_connect(fd, to->ai_addr, to->ai_addrlen, l);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int find(const char *host, const char *port, const struct dial_limit *l,
		struct addrinfo **out, char *why, size_t size)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	int error = lookup_address_within(host, port, &hints, out, left_ns(l, clock_now_ns()),
					  l->cancelled);

	if (!error)
		return 0;
	snprintf(why, size, "%s: %s", host, gai_strerror(error));
	return check(l) ?: -EHOSTUNREACH;
}

int dial_host(const char *host, const char *port, const struct dial_limit *l, char *why,
	      size_t size)
{
	struct addrinfo *list, *a;
	unsigned count = 0;
	int ret = find(host, port, l, &list, why, size);

	if (ret)
		return ret;
	for (a = list; a; a = a->ai_next)
		count++;
	ret = -EHOSTUNREACH;
	for (a = list; a && ret < 0 && ret != -ECANCELED; a = a->ai_next, count--) {
		struct dial_limit share = *l;
		uint64_t now = clock_now_ns();

		share.until_ns = now + left_ns(l, now) / count;
		ret = dial_address(a, &share);
	}
	freeaddrinfo(list);
	if (ret < 0)
		snprintf(why, size, "%s", strerror(-ret));
	return ret;
}
