/* SPDX-License-Identifier: BSD-2-Clause */
/* The place of all streams, and their TCP sockets. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/iwarp/stream.h"
#include "util/cancel_net.h"

/* A peer that is silent is asked whether it lives, and is dead when it does not acknowledge. */
#define KEEP_IDLE_S 5
#define KEEP_INTERVAL_S 1
#define KEEP_PROBES 5
#define SILENT_MS ((int)(IWARP_SILENT_NS / 1000000))
/* Where the kernel does not know one. */
#define MSS_LEAST 536u

struct iwarp_port iwarp_port = { .lock = PTHREAD_MUTEX_INITIALIZER,
				 .rely_lock = PTHREAD_MUTEX_INITIALIZER,
				 .epoll_fd = -1,
				 .streams = { &iwarp_port.streams, &iwarp_port.streams } };

static int set(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

int iwarp_socket_prepare(int fd)
{
	int ret = set(fd, IPPROTO_TCP, TCP_NODELAY, 1);

	if (!ret)
		ret = set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	if (!ret)
		ret = set(fd, IPPROTO_TCP, TCP_KEEPIDLE, KEEP_IDLE_S);
	if (!ret)
		ret = set(fd, IPPROTO_TCP, TCP_KEEPINTVL, KEEP_INTERVAL_S);
	if (!ret)
		ret = set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEP_PROBES);
	if (!ret)
		ret = set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, SILENT_MS);
	return ret;
}

uint32_t iwarp_socket_mss(int fd)
{
	int mss = 0;
	socklen_t length = sizeof(mss);

	if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &length) || mss < (int)MSS_LEAST)
		return MSS_LEAST;
	return (uint32_t)mss;
}

ssize_t iwarp_socket_send(int fd, const struct iovec *iov, unsigned n)
{
	const struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = n };
	const int flags = MSG_DONTWAIT | MSG_NOSIGNAL;
	ssize_t taken;

	/* These also hide the program's memory from a sanitizer of threads, which does not know that the
	 * order comes from the peer (hca/run/dma.h). */
	do
		/* The kernel needs less time for one piece that is not in a list. */
		taken = n == 1 ? cancel_free_send(fd, iov->iov_base, iov->iov_len, flags) :
				 cancel_free_sendmsg(fd, &m, flags);
	while (taken < 0 && errno == EINTR);
	if (taken >= 0)
		return taken;
	return errno == EAGAIN || errno == ENOBUFS ? 0 : -errno;
}

void iwarp_socket_reset(int fd)
{
	const struct linger now = { .l_onoff = 1 };

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(fd);
}
