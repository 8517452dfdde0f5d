/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's calls on descriptors, and mremap(), under the C library's names. libibverbs.so.1 and
 * librdmacm.so.1 are linked with this file and do not show it to others, so no call of
 * theirs goes through a library that is loaded before them and replaces the C library's
 * socket calls, like librspreload.so: its bind() calls rbind(), which must not call its
 * socket() and bind() again. tests/tree/imports.sh checks that none of the names is
 * imported. A build with sanitizers goes without this file, because they, too, replace
 * these functions.
 *
 * poll, ppoll, epoll_wait, epoll_pwait, epoll_pwait2 and read are cancellation points, as in the C
 * library. The others are not.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The size of the kernel's signal set. */
#define SIGNALS_SIZE ((long)(_NSIG / 8))
/* The arguments are as wide as a register. */
#define ARG(x) ((long)(x))

/* Cancellation acts at once while the call sleeps. */
#define WAITING_CALL(...)                                                      \
	do {                                                                   \
		int type_, now_;                                               \
		long ret_;                                                     \
		pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type_);    \
		ret_ = syscall(__VA_ARGS__);                                   \
		pthread_setcanceltype(type_, &now_);                           \
		return (int)ret_;                                              \
	} while (0)

int socket(int domain, int type, int protocol)
{
	return (int)syscall(SYS_socket, ARG(domain), ARG(type), ARG(protocol));
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	return (int)syscall(SYS_bind, ARG(fd), addr, ARG(len));
}

int listen(int fd, int backlog)
{
	return (int)syscall(SYS_listen, ARG(fd), ARG(backlog));
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return (int)syscall(SYS_accept4, ARG(fd), addr, len, ARG(flags));
}

int shutdown(int fd, int how)
{
	return (int)syscall(SYS_shutdown, ARG(fd), ARG(how));
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	return (int)syscall(SYS_connect, ARG(fd), addr, ARG(len));
}

int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return (int)syscall(SYS_getsockname, ARG(fd), addr, len);
}

int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return (int)syscall(SYS_getpeername, ARG(fd), addr, len);
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	return (int)syscall(SYS_setsockopt, ARG(fd), ARG(level), ARG(name), value,
			    ARG(len));
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
	return (int)syscall(SYS_getsockopt, ARG(fd), ARG(level), ARG(name), value, len);
}

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
	return syscall(SYS_sendmsg, ARG(fd), msg, ARG(flags));
}

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	return syscall(SYS_sendto, ARG(fd), buf, len, ARG(flags), NULL, 0L);
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
	return syscall(SYS_recvmsg, ARG(fd), msg, ARG(flags));
}

ssize_t recv(int fd, void *buf, size_t len, int flags)
{
	return syscall(SYS_recvfrom, ARG(fd), buf, len, ARG(flags), NULL, NULL);
}

ssize_t write(int fd, const void *buf, size_t len)
{
	return syscall(SYS_write, ARG(fd), buf, len);
}

ssize_t read(int fd, void *buf, size_t len)
{
	int type, now;
	ssize_t ret;

	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &type);
	ret = syscall(SYS_read, ARG(fd), buf, len);
	pthread_setcanceltype(type, &now);
	return ret;
}

int close(int fd)
{
	return (int)syscall(SYS_close, ARG(fd));
}

/* Not only of descriptors: UCX replaces this one by a function of four arguments, so that the new
 * address of MREMAP_FIXED is lost. */
void *mremap(void *from, size_t old_bytes, size_t new_bytes, int flags, ...)
{
	va_list args;
	void *to;

	va_start(args, flags);
	to = flags & MREMAP_FIXED ? va_arg(args, void *) : NULL;
	va_end(args);
	return (void *)syscall(SYS_mremap, from, old_bytes, new_bytes, ARG(flags), to);
}

static int control(int fd, int cmd, va_list args)
{
	return (int)syscall(SYS_fcntl, ARG(fd), ARG(cmd), va_arg(args, long));
}

int fcntl(int fd, int cmd, ...)
{
	va_list args;
	int ret;

	va_start(args, cmd);
	ret = control(fd, cmd, args);
	va_end(args);
	return ret;
}

/* The same, by the name that programs with _FILE_OFFSET_BITS=64 call. */
int fcntl64(int fd, int cmd, ...);
int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	int ret;

	va_start(args, cmd);
	ret = control(fd, cmd, args);
	va_end(args);
	return ret;
}

int ioctl(int fd, unsigned long request, ...)
{
	va_list args;
	int ret;

	va_start(args, request);
	ret = (int)syscall(SYS_ioctl, ARG(fd), request, va_arg(args, void *));
	va_end(args);
	return ret;
}

static int poll_for(struct pollfd *fds, nfds_t count, struct timespec *limit,
		    const sigset_t *mask)
{
	WAITING_CALL(SYS_ppoll, fds, count, limit, mask, SIGNALS_SIZE);
}

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
	  const sigset_t *mask)
{
	struct timespec limit; /* the kernel changes it */

	if (timeout)
		limit = *timeout;
	return poll_for(fds, count, timeout ? &limit : NULL, mask);
}

int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };

	return poll_for(fds, count, timeout < 0 ? NULL : &limit, NULL);
}

int epoll_create1(int flags)
{
	return (int)syscall(SYS_epoll_create1, ARG(flags));
}

int epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	return (int)syscall(SYS_epoll_ctl, ARG(set), ARG(op), ARG(fd), event);
}

int epoll_pwait(int set, struct epoll_event *events, int count, int timeout,
		const sigset_t *mask)
{
	WAITING_CALL(SYS_epoll_pwait, ARG(set), events, ARG(count), ARG(timeout), mask,
		     SIGNALS_SIZE);
}

int epoll_wait(int set, struct epoll_event *events, int count, int timeout)
{
	return epoll_pwait(set, events, count, timeout, NULL);
}

int epoll_pwait2(int set, struct epoll_event *events, int count,
		 const struct timespec *timeout, const sigset_t *mask)
{
	WAITING_CALL(SYS_epoll_pwait2, ARG(set), events, ARG(count), timeout, mask,
		     SIGNALS_SIZE);
}
