/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls on sockets that are no cancellation points; see cancel.h. */
#ifndef UTIL_CANCEL_NET_H
#define UTIL_CANCEL_NET_H

#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static inline ssize_t cancel_free_send(int fd, const void *from, size_t size, int flags)
{
	return syscall(SYS_sendto, (long)fd, from, size, (long)flags, NULL, 0L);
}

static inline ssize_t cancel_free_sendmsg(int fd, const struct msghdr *m, int flags)
{
	return syscall(SYS_sendmsg, (long)fd, m, (long)flags);
}

static inline ssize_t cancel_free_recv(int fd, void *to, size_t size, int flags)
{
	return syscall(SYS_recvfrom, (long)fd, to, size, (long)flags, NULL, NULL);
}

static inline int cancel_free_sendmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	return (int)syscall(SYS_sendmmsg, (long)fd, m, (long)n, (long)flags);
}

static inline int cancel_free_recvmmsg(int fd, struct mmsghdr *m, unsigned n, int flags)
{
	return (int)syscall(SYS_recvmmsg, (long)fd, m, (long)n, (long)flags, NULL);
}

/* What is ready now. */
static inline int cancel_free_epoll(int set, struct epoll_event *events, int count)
{
	return (int)syscall(SYS_epoll_pwait, (long)set, events, (long)count, 0L, NULL,
			    (long)(_NSIG / 8));
}

#endif
