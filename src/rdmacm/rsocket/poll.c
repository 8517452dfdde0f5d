/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * rpoll and rselect, for rsockets together with other descriptors. They check all
 * entries, spin for the polling time, and then sleep in poll(2) on the entries'
 * channels and descriptors.
 */
#include <stdlib.h>
#include <string.h>

#include "rdmacm/rsocket/epoll.h"
#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/spin.h"
#include "util/wakeup.h"

/* One entry of the caller's array; `rs` is NULL if it is no rsocket. */
struct watch {
	struct rs *rs;
	struct rs_waiter waiter;
	bool linked;
};

struct poll_set {
	struct pollfd *fds;
	nfds_t count;
	struct watch *watches;
	struct pollfd *real; /* wake-up descriptor, then up to three per entry */
	nfds_t sockets;
	int cancel_before;
	bool for_tcp; /* the program expects TCP sockets */
};

#define ON_STACK 8

static short wanted(const struct pollfd *p)
{
	return p->events | POLLERR | POLLHUP | POLLNVAL;
}

/* Programs take POLLHUP for the end, and look no more at POLLIN (rstream). So who waits for bytes is
 * told of them first. */
static short told(const struct rs *rs, const struct pollfd *p, short events)
{
	if ((p->events & (POLLIN | POLLRDNORM)) && rs->rx.ready_bytes && !rs->rx.shut)
		events &= (short)~POLLHUP;
	return events & wanted(p);
}

static int socket_look(struct poll_set *s, nfds_t i, bool arm)
{
	struct rs *rs = s->watches[i].rs;

	pthread_mutex_lock(&rs->lock);
	if (arm) {
		rs_arm(rs);
		rs_progress_all(rs);
	} else {
		rs_progress(rs);
	}
	s->fds[i].revents = s->for_tcp ? rs_events_tcp(rs) & wanted(&s->fds[i]) :
					 told(rs, &s->fds[i], rs_events(rs));
	pthread_mutex_unlock(&rs->lock);
	return s->fds[i].revents != 0;
}

static int sockets_look(struct poll_set *s, bool arm)
{
	int found = 0;

	for (nfds_t i = 0; i < s->count; i++)
		if (s->watches[i].rs)
			found += socket_look(s, i, arm);
	return found;
}

/* Polls the entries that are no rsockets, without waiting. */
static int others_look(struct poll_set *s)
{
	nfds_t n = 0;
	int found = 0;

	if (s->sockets == s->count)
		return 0;
	for (nfds_t i = 0; i < s->count; i++)
		if (!s->watches[i].rs)
			s->real[n++] = (struct pollfd){ .fd = s->fds[i].fd,
							.events = s->fds[i].events };
	if (poll(s->real, n, 0) < 0)
		return -errno;
	n = 0;
	for (nfds_t i = 0; i < s->count; i++) {
		if (s->watches[i].rs)
			continue;
		s->fds[i].revents = s->real[n++].revents;
		found += s->fds[i].revents != 0;
	}
	return found;
}

static int look(struct poll_set *s, bool arm)
{
	int found = sockets_look(s, arm), others = others_look(s);

	return others < 0 ? others : found + others;
}

static void link_all(struct poll_set *s, int wake_fd)
{
	for (nfds_t i = 0; i < s->count; i++) {
		struct watch *w = &s->watches[i];

		if (!w->rs)
			continue;
		w->waiter = (struct rs_waiter){ .wake_fd = wake_fd };
		pthread_mutex_lock(&w->rs->lock);
		list_push(&w->rs->waiters, &w->waiter.entry);
		pthread_mutex_unlock(&w->rs->lock);
		w->linked = true;
	}
}

static void unlink_all(struct poll_set *s)
{
	for (nfds_t i = 0; i < s->count; i++) {
		struct watch *w = &s->watches[i];

		if (!w->linked)
			continue;
		pthread_mutex_lock(&w->rs->lock);
		list_remove(&w->waiter.entry);
		pthread_mutex_unlock(&w->rs->lock);
		w->linked = false;
	}
}

/* Fills in the descriptors to sleep on; returns their number. */
static nfds_t real_fill(struct poll_set *s, int wake_fd)
{
	nfds_t n = 0;

	s->real[n++] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	for (nfds_t i = 0; i < s->count; i++) {
		struct rs *rs = s->watches[i].rs;
		struct pollfd channel = { .fd = -1, .events = POLLIN };
		struct pollfd comp = { .fd = -1, .events = POLLIN };

		if (!rs) {
			s->real[n++] = (struct pollfd){
				.fd = s->fds[i].fd, .events = s->fds[i].events
			};
			continue;
		}
		pthread_mutex_lock(&rs->lock);
		if (!rs->served && !rs->pending && rs->state != RS_GONE)
			channel.fd = rs->channel->fd;
		if (rs->comp)
			comp.fd = rs->comp->fd;
		pthread_mutex_unlock(&rs->lock);
		s->real[n++] = channel;
		s->real[n++] = comp;
	}
	return n;
}

static void real_drain(struct poll_set *s, int wake_fd)
{
	nfds_t n = 1;

	if (s->real[0].revents)
		wakeup_drain(wake_fd);
	for (nfds_t i = 0; i < s->count; i++) {
		struct rs *rs = s->watches[i].rs;

		n += rs ? 2 : 1;
		if (!rs || !s->real[n - 1].revents)
			continue;
		pthread_mutex_lock(&rs->lock);
		rs_drain(rs, wake_fd);
		pthread_mutex_unlock(&rs->lock);
	}
}

static int spin(struct poll_set *s, const struct timespec *timeout)
{
	uint64_t limit_ns = rs_config_get()->polling_us * UINT64_C(1000);
	uint64_t start_ns = clock_now_ns();
	int ret;

	if (timeout)
		limit_ns = MIN(limit_ns, timespec_to_ns(*timeout));
	do {
		ret = look(s, false);
		if (ret)
			return ret;
		cpu_relax();
	} while (clock_now_ns() - start_ns < limit_ns);
	return 0;
}

/* Cleanup handler of a cancelled call: releases what it holds. */
static void poll_cancelled(void *arg)
{
	struct poll_set *s = arg;

	unlink_all(s);
	for (nfds_t i = 0; i < s->count; i++)
		if (s->watches[i].rs)
			rs_put(s->watches[i].rs);
	if (s->count > ON_STACK) {
		free(s->watches);
		free(s->real);
	}
}

/* Sleeps. The only cancellation point of the call, if the caller allows one. */
static int sleep_in(struct poll_set *s, struct pollfd *fds, nfds_t count,
		    const struct timespec *timeout, const sigset_t *mask)
{
	int ret, now;

	pthread_cleanup_push(poll_cancelled, s);
	pthread_setcancelstate(s->cancel_before, &now);
	ret = ppoll(fds, count, timeout, mask) < 0 ? -errno : 0;
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &now);
	pthread_cleanup_pop(0);
	return ret;
}

/* The number of ready entries; 0: `end_ns` has come; or a negative errno. */
static int sleep_until(struct poll_set *s, uint64_t end_ns, const sigset_t *mask)
{
	uint64_t wake_ns = rs_config_get()->wake_up_ms * RS_NSEC_PER_MSEC;
	int wake_fd = rs_wake_fd();
	int ret;

	if (wake_fd < 0)
		return wake_fd;
	wakeup_drain(wake_fd);
	link_all(s, wake_fd);
	for (;;) {
		uint64_t now_ns, rest_ns = wake_ns;
		struct timespec rest;
		nfds_t n;

		ret = look(s, true);
		if (ret)
			break;
		now_ns = clock_monotonic_ns_slow();
		if (end_ns && now_ns >= end_ns)
			break;
		if (end_ns)
			rest_ns = MIN(rest_ns, end_ns - now_ns);
		rest = timespec_from_ns(rest_ns);
		n = real_fill(s, wake_fd);
		ret = sleep_in(s, s->real, n, &rest, mask);
		if (ret)
			break;
		real_drain(s, wake_fd);
	}
	unlink_all(s);
	return ret;
}

static int set_poll(struct poll_set *s, const struct timespec *timeout,
		    const sigset_t *mask)
{
	uint64_t end_ns = 0;
	int ret;

	for (nfds_t i = 0; i < s->count; i++) {
		s->fds[i].revents = 0;
		s->watches[i].rs = rs_get(s->fds[i].fd);
		s->watches[i].linked = false;
		s->sockets += s->watches[i].rs != NULL;
	}
	if (timeout)
		end_ns = clock_monotonic_ns_slow() + timespec_to_ns(*timeout);
	if (!s->sockets)
		ret = sleep_in(s, s->fds, s->count, timeout, mask);
	else
		ret = spin(s, timeout);
	if (!ret && s->sockets && !(timeout && !timespec_to_ns(*timeout)))
		ret = sleep_until(s, end_ns, mask);
	for (nfds_t i = 0; i < s->count; i++) {
		if (!s->sockets && s->fds[i].revents)
			ret++;
		if (s->watches[i].rs)
			rs_put(s->watches[i].rs);
	}
	return ret;
}

static int poll_for(struct pollfd *fds, nfds_t count,
		    const struct timespec *timeout, const sigset_t *mask, bool for_tcp)
{
	CANCEL_OFF;
	struct watch few[ON_STACK];
	struct pollfd few_real[2 * ON_STACK + 1];
	struct poll_set s = { .fds = fds, .count = count, .watches = few,
			      .real = few_real,
			      .cancel_before = cancel_before_, .for_tcp = for_tcp };
	int ret = -ENOMEM;

	if (count > ON_STACK) {
		if (count > 1u << 20)
			return -EINVAL;
		s.watches = calloc(count, sizeof(*s.watches));
		s.real = calloc(2 * count + 1, sizeof(*s.real));
	}
	if (s.watches && s.real)
		ret = set_poll(&s, timeout, mask);
	if (count > ON_STACK) {
		free(s.watches);
		free(s.real);
	}
	return ret;
}

RS_EXPORT int busbar_rppoll(struct pollfd *fds, nfds_t count,
			    const struct timespec *timeout, const sigset_t *mask)
{
	return (int)rs_result(poll_for(fds, count, timeout, mask, true));
}

RS_EXPORT int rpoll(struct pollfd *fds, nfds_t nfds, int timeout)
{
	struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };

	return (int)rs_result(poll_for(fds, nfds, timeout < 0 ? NULL : &limit, NULL,
				       false));
}

/* ---- rselect ---- */

static const short read_events = POLLIN | POLLHUP | POLLERR;
static const short write_events = POLLOUT | POLLERR;

static nfds_t sets_to_fds(int nfds, const fd_set *r, const fd_set *w,
			  const fd_set *x, struct pollfd *fds)
{
	nfds_t n = 0;

	for (int fd = 0; fd < nfds; fd++) {
		short events = 0;

		if (r && FD_ISSET(fd, r))
			events |= POLLIN;
		if (w && FD_ISSET(fd, w))
			events |= POLLOUT;
		if (x && FD_ISSET(fd, x))
			events |= POLLPRI;
		if (events)
			fds[n++] = (struct pollfd){ .fd = fd, .events = events };
	}
	return n;
}

static int fds_to_sets(const struct pollfd *fds, nfds_t n, fd_set *r, fd_set *w,
		       fd_set *x)
{
	int count = 0;

	if (r)
		FD_ZERO(r);
	if (w)
		FD_ZERO(w);
	if (x)
		FD_ZERO(x);
	for (nfds_t i = 0; i < n; i++) {
		const struct pollfd *p = &fds[i];

		if (p->revents & POLLNVAL)
			return -EBADF;
		if (p->events & POLLIN && p->revents & read_events) {
			FD_SET(p->fd, r);
			count++;
		}
		if (p->events & POLLOUT && p->revents & write_events) {
			FD_SET(p->fd, w);
			count++;
		}
		if (p->events & POLLPRI && p->revents & POLLPRI) {
			FD_SET(p->fd, x);
			count++;
		}
	}
	return count;
}

RS_EXPORT int rselect(int nfds, fd_set *readfds, fd_set *writefds,
		      fd_set *exceptfds, struct timeval *timeout)
{
	struct pollfd fds[FD_SETSIZE];
	struct timespec limit;
	nfds_t n;
	int ret;

	if (nfds < 0 || nfds > FD_SETSIZE ||
	    (timeout && (timeout->tv_sec < 0 || timeout->tv_usec < 0)))
		return (int)rs_result(-EINVAL);
	if (timeout)
		limit = (struct timespec){ timeout->tv_sec,
					   timeout->tv_usec * 1000L };
	n = sets_to_fds(nfds, readfds, writefds, exceptfds, fds);
	ret = poll_for(fds, n, timeout ? &limit : NULL, NULL, false);
	/* After a failure the sets are unchanged. */
	if (ret >= 0)
		ret = fds_to_sets(fds, n, readfds, writefds, exceptfds);
	return (int)rs_result(ret);
}
