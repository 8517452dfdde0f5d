/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * poll and select: each descriptor is replaced by its rsocket, a listening one by its
 * rsocket and its TCP socket.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "rdmacm/preload/preload.h"
#include "rdmacm/rsocket/epoll.h"

#define ON_STACK 16

/* The rsocket of `fd`, or -1; `*both`: the TCP socket must be polled as well. */
static int watched(int fd, bool *both)
{
	struct preload_socket *s = preload_find(fd);

	*both = false;
	if (!s)
		return -1;
	if (atomic_load(&s->state) == PRELOAD_LISTENING && s->rs >= 0) {
		*both = true;
		return s->rs;
	}
	return preload_data(fd);
}

static bool any_watched(const struct pollfd *fds, nfds_t count)
{
	bool both, any = false;

	for (nfds_t i = 0; i < count; i++) {
		preload_set_nest(fds[i].fd);
		any |= watched(fds[i].fd, &both) >= 0;
	}
	return any;
}

static int poll_translated(struct pollfd *fds, nfds_t count, struct pollfd *real,
			   const struct timespec *timeout, const sigset_t *mask)
{
	nfds_t n = 0;
	int ret, found = 0;

	for (nfds_t i = 0; i < count; i++) {
		bool both;
		int rs = watched(fds[i].fd, &both);

		real[n] = fds[i];
		if (rs >= 0)
			real[n].fd = rs;
		n++;
		if (both)
			real[n++] = fds[i];
	}
	preload_enter();
	ret = busbar_rppoll(real, n, timeout, mask);
	preload_leave();
	if (ret < 0)
		return ret;
	n = 0;
	for (nfds_t i = 0; i < count; i++) {
		bool both;

		watched(fds[i].fd, &both);
		fds[i].revents = real[n++].revents;
		if (both)
			fds[i].revents |= real[n++].revents;
		found += fds[i].revents != 0;
	}
	return found;
}

static int poll_any(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		    const sigset_t *mask)
{
	struct pollfd few[2 * ON_STACK];
	struct pollfd *real = few;
	int ret;

	if (count > ON_STACK)
		real = calloc(2 * count, sizeof(*real));
	if (!real) {
		errno = ENOMEM;
		return -1;
	}
	ret = poll_translated(fds, count, real, timeout, mask);
	if (real != few)
		free(real);
	return ret;
}

PRELOAD_EXPORT int poll(struct pollfd *fds, nfds_t count, int timeout)
{
	struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };

	if (!preload_real.socket)
		preload_init();
	if (preload_inside || !any_watched(fds, count))
		return preload_real.poll(fds, count, timeout);
	return poll_any(fds, count, timeout < 0 ? NULL : &limit, NULL);
}

int __poll_chk(struct pollfd *fds, nfds_t count, int timeout, size_t size);
PRELOAD_EXPORT int __poll_chk(struct pollfd *fds, nfds_t count, int timeout,
			      size_t size)
{
	if (size / sizeof(*fds) < count)
		__builtin_trap();
	return poll(fds, count, timeout);
}

PRELOAD_EXPORT int ppoll(struct pollfd *fds, nfds_t count,
			 const struct timespec *timeout, const sigset_t *mask)
{
	if (!preload_real.socket)
		preload_init();
	if (preload_inside || !any_watched(fds, count))
		return preload_real.ppoll(fds, count, timeout, mask);
	return poll_any(fds, count, timeout, mask);
}

int __ppoll_chk(struct pollfd *fds, nfds_t count, const struct timespec *timeout,
		const sigset_t *mask, size_t size);
PRELOAD_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t count,
			       const struct timespec *timeout,
			       const sigset_t *mask, size_t size)
{
	if (size / sizeof(*fds) < count)
		__builtin_trap();
	return ppoll(fds, count, timeout, mask);
}

/* ---- select ---- */

struct sets {
	fd_set *r, *w, *x;
};

static nfds_t sets_to_fds(int nfds, const struct sets *s, struct pollfd *fds)
{
	nfds_t n = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short events = 0;

		if (s->r && FD_ISSET(fd, s->r))
			events |= POLLIN;
		if (s->w && FD_ISSET(fd, s->w))
			events |= POLLOUT;
		if (s->x && FD_ISSET(fd, s->x))
			events |= POLLPRI;
		if (events)
			fds[n++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return n;
}

static int fds_to_sets(const struct pollfd *fds, nfds_t n, const struct sets *s)
{
	int count = 0;

	if (s->r)
		FD_ZERO(s->r);
	if (s->w)
		FD_ZERO(s->w);
	if (s->x)
		FD_ZERO(s->x);
	for (nfds_t i = 0; i < n; i++) {
		short asked = fds[i].events, got = fds[i].revents;

		if (asked & POLLIN && got & (POLLIN | POLLHUP | POLLERR)) {
			FD_SET(fds[i].fd, s->r);
			count++;
		}
		if (asked & POLLOUT && got & (POLLOUT | POLLERR)) {
			FD_SET(fds[i].fd, s->w);
			count++;
		}
		if (asked & POLLPRI && got & POLLPRI) {
			FD_SET(fds[i].fd, s->x);
			count++;
		}
	}
	return count;
}

/* -2: no descriptor has an rsocket. */
static int select_any(int nfds, const struct sets *s, const struct timespec *timeout,
		      const sigset_t *mask)
{
	struct pollfd fds[FD_SETSIZE];
	nfds_t n;
	int ret;

	if (preload_inside || nfds < 0 || nfds > FD_SETSIZE)
		return -2;
	n = sets_to_fds(nfds, s, fds);
	if (!any_watched(fds, n))
		return -2;
	ret = poll_any(fds, n, timeout, mask);
	return ret < 0 ? -1 : fds_to_sets(fds, n, s);
}

/* Like Linux' select(2), updates `timeout` to the remaining time. */
static void time_left(struct timeval *timeout, const struct timespec *start)
{
	struct timespec now;
	int64_t us;

	clock_gettime(CLOCK_MONOTONIC, &now);
	us = timeout->tv_sec * INT64_C(1000000) + timeout->tv_usec -
	     (now.tv_sec - start->tv_sec) * INT64_C(1000000) -
	     (now.tv_nsec - start->tv_nsec) / 1000;
	if (us < 0)
		us = 0;
	timeout->tv_sec = us / 1000000;
	timeout->tv_usec = us % 1000000;
}

PRELOAD_EXPORT int select(int nfds, fd_set *r, fd_set *w, fd_set *x,
			  struct timeval *timeout)
{
	struct sets s = { r, w, x };
	struct timespec limit, start;
	int ret;

	if (!preload_real.socket)
		preload_init();
	if (timeout) {
		clock_gettime(CLOCK_MONOTONIC, &start);
		limit = (struct timespec){ timeout->tv_sec,
					   timeout->tv_usec * 1000L };
	}
	ret = select_any(nfds, &s, timeout ? &limit : NULL, NULL);
	if (ret == -2)
		return preload_real.select(nfds, r, w, x, timeout);
	if (timeout)
		time_left(timeout, &start);
	return ret;
}

PRELOAD_EXPORT int pselect(int nfds, fd_set *r, fd_set *w, fd_set *x,
			   const struct timespec *timeout, const sigset_t *mask)
{
	struct sets s = { r, w, x };
	int ret;

	if (!preload_real.socket)
		preload_init();
	ret = select_any(nfds, &s, timeout, mask);
	return ret == -2 ? preload_real.pselect(nfds, r, w, x, timeout, mask) : ret;
}
