/* SPDX-License-Identifier: BSD-2-Clause */
/* The calls that make, name, connect, change and end sockets. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rdmacm/preload/preload.h"
#include "rdmacm/rsocket/epoll.h"

/* How long connect() of a non-blocking socket waits for a refusal of the rsocket. */
#define REFUSAL_MS 300

static bool is_nonblocking(int fd)
{
	return preload_real.fcntl(fd, F_GETFL) & O_NONBLOCK;
}

PRELOAD_EXPORT int socket(int domain, int type, int protocol)
{
	struct preload_socket *s;
	int fd, rs = -1;

	if (!preload_real.socket)
		preload_init();
	fd = preload_real.socket(domain, type, protocol);
	if (fd < 0 || preload_inside || !preload_wanted(domain, type, protocol))
		return fd;
	preload_enter();
	if (!preload_fork_safe())
		rs = rsocket(domain, SOCK_STREAM, IPPROTO_TCP);
	preload_leave();
	/* Without an adapter the socket stays plain TCP. */
	if (rs < 0 && !preload_fork_safe())
		return fd;
	s = preload_new(rs, PRELOAD_FRESH);
	if (s && preload_put(fd, s) && rs >= 0)
		rclose(rs);
	return fd;
}

/* Binds the rsocket to the address that the TCP socket has. */
static int rsocket_bind(int fd, struct preload_socket *s)
{
	struct sockaddr_storage name;
	socklen_t len = sizeof(name);
	int ret;

	if (preload_real.getsockname(fd, (struct sockaddr *)&name, &len))
		return -1;
	preload_enter();
	ret = rbind(s->rs, (struct sockaddr *)&name, len);
	preload_leave();
	return ret;
}

PRELOAD_EXPORT int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct preload_socket *s = preload_find(fd);
	int ret = preload_real.bind(fd, addr, len);

	/* If the rsocket cannot have the same port, the socket stays plain TCP. */
	if (!ret && s && s->rs >= 0 && rsocket_bind(fd, s))
		preload_become_tcp(fd, s);
	return ret;
}

PRELOAD_EXPORT int listen(int fd, int backlog)
{
	struct preload_socket *s = preload_find(fd);
	int ret = preload_real.listen(fd, backlog);

	if (ret || !s || s->rs < 0 || atomic_load(&s->state) != PRELOAD_FRESH) {
		if (!ret && s && s->rs < 0)
			atomic_store(&s->state, PRELOAD_LISTENING);
		return ret;
	}
	preload_enter();
	/* Without bind() the TCP socket gets its port in listen(). */
	rsocket_bind(fd, s);
	ret = rlisten(s->rs, backlog);
	if (!ret)
		rfcntl(s->rs, F_SETFL, O_NONBLOCK);
	preload_leave();
	if (ret) {
		preload_become_tcp(fd, s);
	} else {
		atomic_store(&s->state, PRELOAD_LISTENING);
		preload_watches_move(s);
	}
	return 0;
}

/* A descriptor for a connection that the rsocket accepted. */
static int number_make(int rs, int flags)
{
	struct preload_socket *s = preload_new(rs, PRELOAD_CONNECTED);
	int fd = s ? preload_real.socket(AF_INET, SOCK_STREAM | flags, 0) : -1;

	if (fd >= 0 && !preload_put(fd, s)) {
		if (flags & SOCK_NONBLOCK)
			rfcntl(rs, F_SETFL, O_NONBLOCK);
		return fd;
	}
	if (fd >= 0)
		preload_real.close(fd);
	rclose(rs);
	errno = EMFILE;
	return -1;
}

static int tcp_accept(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	int made = preload_real.accept4(fd, addr, len, flags);
	struct preload_socket *s;

	if (made >= 0 && preload_fork_safe()) {
		s = preload_new(-1, PRELOAD_PASSIVE);
		if (s)
			preload_put(made, s);
	}
	return made;
}

static int accept_any(int fd, struct preload_socket *s, struct sockaddr *addr,
		      socklen_t *len, int flags)
{
	struct pollfd fds[2] = { { .fd = s->rs, .events = POLLIN },
				 { .fd = fd, .events = POLLIN } };
	socklen_t room = len ? *len : 0;
	int rs;

	for (;;) {
		rs = raccept(s->rs, addr, len);
		if (rs >= 0)
			return number_make(rs, flags);
		if (errno != EAGAIN)
			return -1;
		if (len)
			*len = room;
		if (rpoll(fds, 2, is_nonblocking(fd) ? 0 : -1) < 0)
			return -1;
		if (fds[1].revents)
			return tcp_accept(fd, addr, len, flags);
		if (!fds[0].revents) {
			errno = EAGAIN;
			return -1;
		}
	}
}

PRELOAD_EXPORT int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	struct preload_socket *s = preload_find(fd);
	int ret;

	if (!s)
		return preload_real.accept4(fd, addr, len, flags);
	if (s->rs < 0)
		return tcp_accept(fd, addr, len, flags);
	preload_enter();
	ret = accept_any(fd, s, addr, len, flags);
	preload_leave();
	return ret;
}

PRELOAD_EXPORT int accept(int fd, struct sockaddr *addr, socklen_t *len)
{
	return accept4(fd, addr, len, 0);
}

/* 0: connected; 1: under way; -1: the peer cannot be reached by rsockets. */
static int rsocket_connect(int fd, struct preload_socket *s,
			   const struct sockaddr *addr, socklen_t len)
{
	struct pollfd p = { .fd = s->rs, .events = POLLOUT };
	int error = 0;
	socklen_t size = sizeof(error);

	rfcntl(s->rs, F_SETFL, O_NONBLOCK);
	if (!rconnect(s->rs, addr, len))
		return 0;
	if (errno != EINPROGRESS)
		return -1;
	if (rpoll(&p, 1, is_nonblocking(fd) ? REFUSAL_MS : -1) <= 0)
		return 1;
	if (rgetsockopt(s->rs, SOL_SOCKET, SO_ERROR, &error, &size) || error)
		return -1;
	return 0;
}

PRELOAD_EXPORT int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
	struct preload_socket *s = preload_find(fd);
	int ret;

	if (!s || atomic_load(&s->state) == PRELOAD_ACTIVE)
		return preload_real.connect(fd, addr, len);
	if (s->rs < 0) {
		ret = preload_real.connect(fd, addr, len);
		if (!ret || errno == EINPROGRESS)
			atomic_store(&s->state, PRELOAD_ACTIVE);
		return ret;
	}
	preload_enter();
	if (atomic_load(&s->state) == PRELOAD_CONNECTED) {
		ret = rconnect(s->rs, addr, len);
		preload_leave();
		return ret;
	}
	ret = rsocket_connect(fd, s, addr, len);
	if (ret >= 0)
		rfcntl(s->rs, F_SETFL, preload_real.fcntl(fd, F_GETFL));
	preload_leave();
	if (ret < 0) {
		preload_become_tcp(fd, s);
		return preload_real.connect(fd, addr, len);
	}
	atomic_store(&s->state, PRELOAD_CONNECTED);
	preload_watches_move(s);
	if (ret) {
		errno = EINPROGRESS;
		return -1;
	}
	return 0;
}

PRELOAD_EXPORT int shutdown(int fd, int how)
{
	struct preload_socket *s = preload_find(fd);
	int rs = s && atomic_load(&s->state) != PRELOAD_FRESH ? preload_data(fd) : -1;
	int ret;

	if (rs < 0)
		return preload_real.shutdown(fd, how);
	preload_enter();
	ret = rshutdown(rs, how);
	preload_leave();
	return ret;
}

PRELOAD_EXPORT int close(int fd)
{
	struct preload_socket *s = preload_find(fd);

	if (s)
		preload_forget(fd);
	else
		preload_set_share(-1, fd);
	return preload_real.close(fd);
}

PRELOAD_EXPORT int close_range(unsigned first, unsigned last, int flags)
{
	int end = atomic_load(&preload_fds_end);

	if (!preload_inside && !(flags & CLOSE_RANGE_CLOEXEC) && first <= last)
		for (unsigned fd = first; fd < (unsigned)end && fd <= last; fd++) {
			preload_forget((int)fd);
			preload_set_share(-1, (int)fd);
		}
	return (int)syscall(SYS_close_range, first, last, flags);
}

PRELOAD_EXPORT void closefrom(int first)
{
	close_range(first < 0 ? 0 : (unsigned)first, ~0u, 0);
}

/* ---- descriptors ---- */

static void descriptor_share(int fd, int made, struct preload_socket *s)
{
	if (preload_inside)
		return;
	preload_share(made, s);
	preload_set_share(s ? -1 : fd, made);
}

PRELOAD_EXPORT int dup(int fd)
{
	struct preload_socket *s = preload_find(fd);
	int made = preload_real.dup(fd);

	if (made >= 0)
		descriptor_share(fd, made, s);
	return made;
}

PRELOAD_EXPORT int dup3(int fd, int to, int flags)
{
	struct preload_socket *s = preload_find(fd);
	int made = preload_real.dup3(fd, to, flags);

	if (made >= 0)
		descriptor_share(fd, made, s);
	return made;
}

PRELOAD_EXPORT int dup2(int fd, int to)
{
	struct preload_socket *s = preload_find(fd);
	int made = preload_real.dup2(fd, to);

	if (made >= 0 && fd != to)
		descriptor_share(fd, made, s);
	return made;
}

static int fcntl_any(int fd, int cmd, long arg)
{
	struct preload_socket *s = preload_find(fd);
	int ret = preload_real.fcntl(fd, cmd, arg);

	if (ret < 0)
		return ret;
	if (cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC) {
		descriptor_share(fd, ret, s);
	} else if (s && cmd == F_SETFL && atomic_load(&s->state) == PRELOAD_CONNECTED) {
		preload_enter();
		rfcntl(s->rs, F_SETFL, (int)arg);
		preload_leave();
	}
	return ret;
}

PRELOAD_EXPORT int fcntl(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return fcntl_any(fd, cmd, arg);
}

int fcntl64(int fd, int cmd, ...);
PRELOAD_EXPORT int fcntl64(int fd, int cmd, ...)
{
	va_list args;
	long arg;

	va_start(args, cmd);
	arg = va_arg(args, long);
	va_end(args);
	return fcntl_any(fd, cmd, arg);
}

PRELOAD_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	struct preload_socket *s = preload_find(fd);
	va_list args;
	void *arg;
	int ret;

	va_start(args, request);
	arg = va_arg(args, void *);
	va_end(args);
	if (s && request == FIONREAD &&
	    atomic_load(&s->state) == PRELOAD_CONNECTED) {
		preload_enter();
		ret = busbar_rreadable(s->rs, arg);
		preload_leave();
		return ret;
	}
	ret = preload_real.ioctl(fd, request, arg);
	if (!ret && s && request == FIONBIO &&
	    atomic_load(&s->state) == PRELOAD_CONNECTED) {
		preload_enter();
		rfcntl(s->rs, F_SETFL, *(int *)arg ? O_NONBLOCK : 0);
		preload_leave();
	}
	return ret;
}

/* ---- names and options ---- */

typedef int name_fn(int fd, struct sockaddr *addr, socklen_t *len);

/* The rsocket's name if it carries the connection, else the TCP socket's. */
static int name_of(int fd, struct sockaddr *addr, socklen_t *len, name_fn *of_tcp,
		   name_fn *of_rsocket)
{
	struct preload_socket *s = preload_find(fd);
	int ret;

	if (!s || atomic_load(&s->state) != PRELOAD_CONNECTED)
		return of_tcp(fd, addr, len);
	preload_enter();
	ret = of_rsocket(s->rs, addr, len);
	preload_leave();
	return ret;
}

PRELOAD_EXPORT int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
	return name_of(fd, addr, len, preload_real.getpeername, rgetpeername);
}

PRELOAD_EXPORT int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
	return name_of(fd, addr, len, preload_real.getsockname, rgetsockname);
}

PRELOAD_EXPORT int setsockopt(int fd, int level, int name, const void *value,
			      socklen_t len)
{
	struct preload_socket *s = preload_find(fd);

	/* The rsocket gets the option as well; what it does not know is ignored. */
	if (s && s->rs >= 0) {
		preload_enter();
		rsetsockopt(s->rs, level, name, value, len);
		preload_leave();
	}
	return preload_real.setsockopt(fd, level, name, value, len);
}

PRELOAD_EXPORT int getsockopt(int fd, int level, int name, void *value,
			      socklen_t *len)
{
	struct preload_socket *s = preload_find(fd);
	int ret;

	if (!s || atomic_load(&s->state) != PRELOAD_CONNECTED)
		return preload_real.getsockopt(fd, level, name, value, len);
	preload_enter();
	ret = rgetsockopt(s->rs, level, name, value, len);
	preload_leave();
	/* An option that rsockets do not have is the TCP socket's. */
	if (ret && errno == ENOPROTOOPT)
		return preload_real.getsockopt(fd, level, name, value, len);
	return ret;
}
