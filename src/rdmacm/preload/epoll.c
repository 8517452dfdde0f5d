/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * epoll(7). Ordinary descriptors and TCP sockets go into the program's epoll instance,
 * rsockets into the set beside it (rsocket/epoll.h). A socket changes its way when it
 * listens or a connection is made, so what the program asked for it is kept with it
 * (struct preload_watch), and preload_watches_move() repeats it for the new way.
 */
#include <pthread.h>
#include <stdlib.h>

#include "rdmacm/preload/preload.h"
#include "rdmacm/rsocket/epoll.h"

struct preload_watch {
	struct preload_watch *next;
	struct rs_set *set;         /* with a reference */
	int epfd, fd;
	struct epoll_event asked;
	bool by_tcp, by_rsocket;
};

static _Atomic(struct rs_set *) sets[PRELOAD_FDS_MAX];
static pthread_mutex_t sets_lock = PTHREAD_MUTEX_INITIALIZER;
/* Guards the watches of all sockets. */
static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;

/* The child has none of the parent's sets. */
void preload_epoll_forked(void)
{
	pthread_mutex_init(&sets_lock, NULL);
	pthread_mutex_init(&watch_lock, NULL);
	for (int fd = 0; fd < atomic_load(&preload_fds_end); fd++)
		atomic_store(&sets[fd], NULL);
}

/* ---- sets ---- */

/* Returns the descriptor's set with a reference. `make`: makes one if there is none. */
static struct rs_set *set_get(int epfd, bool make)
{
	struct rs_set *set;

	if (epfd < 0 || epfd >= PRELOAD_FDS_MAX || preload_inside)
		return NULL;
	pthread_mutex_lock(&sets_lock);
	set = atomic_load(&sets[epfd]);
	if (!set && make) {
		preload_fd_used(epfd);
		set = busbar_epoll_make();
		atomic_store(&sets[epfd], set);
	}
	if (set)
		busbar_epoll_get(set);
	pthread_mutex_unlock(&sets_lock);
	return set;
}

static bool set_has_number(const struct rs_set *set)
{
	for (int fd = 0; fd < atomic_load(&preload_fds_end); fd++)
		if (atomic_load(&sets[fd]) == set)
			return true;
	return false;
}

void preload_set_share(int from, int to)
{
	struct rs_set *set, *old;
	bool ended;

	if (to < 0 || to >= PRELOAD_FDS_MAX || preload_inside)
		return;
	set = set_get(from, false);
	if (!set && !atomic_load(&sets[to]))
		return;
	pthread_mutex_lock(&sets_lock);
	if (set)
		preload_fd_used(to);
	old = atomic_exchange(&sets[to], set);
	ended = old && !set_has_number(old);
	pthread_mutex_unlock(&sets_lock);
	if (!old)
		return;
	preload_enter();
	if (ended)
		busbar_epoll_end(old);
	busbar_epoll_put(old);
	preload_leave();
}

void preload_set_nest(int fd)
{
	struct rs_set *set;

	if (fd < 0 || fd >= PRELOAD_FDS_MAX || !atomic_load(&sets[fd]))
		return;
	set = set_get(fd, false);
	if (!set)
		return;
	busbar_epoll_nest(set);
	busbar_epoll_put(set);
}

/* ---- watches; watch_lock is held ---- */

static struct preload_watch *watch_find(struct preload_socket *s, const struct rs_set *set,
					int fd)
{
	for (struct preload_watch *w = s->watches; w; w = w->next)
		if (w->set == set && w->fd == fd)
			return w;
	return NULL;
}

static void watch_free(struct preload_socket *s, struct preload_watch *w)
{
	struct preload_watch **at = &s->watches;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
	busbar_epoll_put(w->set);
	free(w);
}

/* Does the TCP socket have to be watched, and does the rsocket? Of a listener both. */
static bool is_by_tcp(const struct preload_socket *s)
{
	return s->rs < 0 || atomic_load(&s->state) != PRELOAD_CONNECTED;
}

static bool is_by_rsocket(const struct preload_socket *s)
{
	return s->rs >= 0 && (atomic_load(&s->state) == PRELOAD_CONNECTED ||
			      atomic_load(&s->state) == PRELOAD_LISTENING);
}

static int rsocket_control(struct preload_socket *s, struct preload_watch *w, int op)
{
	int ret;

	preload_enter();
	ret = busbar_epoll_ctl(w->set, w->epfd, op, s->rs, w->fd, &w->asked);
	preload_leave();
	return ret;
}

/* 0, or -1 and errno of the first failure. */
static int watch_move(struct preload_socket *s, struct preload_watch *w)
{
	bool tcp = is_by_tcp(s), rsocket = is_by_rsocket(s);
	int ret = 0;

	if (w->by_tcp && !tcp)
		preload_real.epoll_ctl(w->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	else if (!w->by_tcp && tcp)
		ret = preload_real.epoll_ctl(w->epfd, EPOLL_CTL_ADD, w->fd, &w->asked);
	w->by_tcp = tcp && !ret;
	if (!rsocket)
		w->by_rsocket = false;
	if (ret || !rsocket || w->by_rsocket)
		return ret;
	ret = rsocket_control(s, w, EPOLL_CTL_ADD);
	w->by_rsocket = !ret;
	return ret;
}

void preload_watches_move(struct preload_socket *s)
{
	int error = errno;

	pthread_mutex_lock(&watch_lock);
	for (struct preload_watch *w = s->watches, *next; w; w = next) {
		next = w->next;
		if (busbar_epoll_ended(w->set))
			watch_free(s, w);
		else
			watch_move(s, w);
	}
	pthread_mutex_unlock(&watch_lock);
	errno = error;
}

void preload_watches_free(struct preload_socket *s)
{
	pthread_mutex_lock(&watch_lock);
	while (s->watches)
		watch_free(s, s->watches);
	pthread_mutex_unlock(&watch_lock);
}

/* ---- epoll_ctl ---- */

static int watch_add(struct preload_socket *s, struct rs_set *set, int epfd, int fd,
		     const struct epoll_event *event)
{
	struct preload_watch *w = calloc(1, sizeof(*w));
	int error;

	if (!w) {
		errno = ENOMEM;
		return -1;
	}
	*w = (struct preload_watch){ .next = s->watches, .set = set, .epfd = epfd,
				     .fd = fd, .asked = *event };
	busbar_epoll_get(set);
	s->watches = w;
	if (!watch_move(s, w))
		return 0;
	error = errno;
	if (w->by_tcp)
		preload_real.epoll_ctl(epfd, EPOLL_CTL_DEL, fd, NULL);
	watch_free(s, w);
	errno = error;
	return -1;
}

static int watch_modify(struct preload_socket *s, struct preload_watch *w,
			const struct epoll_event *event)
{
	struct epoll_event before = w->asked;
	int error;

	w->asked = *event;
	if (w->by_rsocket && rsocket_control(s, w, EPOLL_CTL_MOD))
		goto refused;
	if (!w->by_tcp || !preload_real.epoll_ctl(w->epfd, EPOLL_CTL_MOD, w->fd, &w->asked))
		return 0;
	error = errno;
	w->asked = before;
	if (w->by_rsocket)
		rsocket_control(s, w, EPOLL_CTL_MOD);
	errno = error;
	return -1;

refused:
	w->asked = before;
	return -1;
}

static int watch_delete(struct preload_socket *s, struct preload_watch *w)
{
	if (w->by_tcp)
		preload_real.epoll_ctl(w->epfd, EPOLL_CTL_DEL, w->fd, NULL);
	if (w->by_rsocket)
		rsocket_control(s, w, EPOLL_CTL_DEL);
	watch_free(s, w);
	return 0;
}

static int socket_control(struct preload_socket *s, struct rs_set *set, int epfd, int op,
			  int fd, const struct epoll_event *event)
{
	struct preload_watch *w = watch_find(s, set, fd);

	if (op == EPOLL_CTL_ADD && w)
		errno = EEXIST;
	else if (op == EPOLL_CTL_ADD)
		return watch_add(s, set, epfd, fd, event);
	else if (!w)
		errno = ENOENT;
	else if (op == EPOLL_CTL_MOD)
		return watch_modify(s, w, event);
	else
		return watch_delete(s, w);
	return -1;
}

PRELOAD_EXPORT int epoll_ctl(int epfd, int op, int fd, struct epoll_event *event)
{
	struct preload_socket *s = preload_find(fd);
	struct rs_set *set;
	int ret;

	/* Wrong arguments get their errors from the kernel. */
	if (!s || epfd < 0 || op < EPOLL_CTL_ADD || op > EPOLL_CTL_MOD ||
	    (op != EPOLL_CTL_DEL && !event)) {
		if (op == EPOLL_CTL_ADD && !preload_inside)
			preload_set_nest(fd);
		return preload_real.epoll_ctl(epfd, op, fd, event);
	}
	set = set_get(epfd, true);
	if (!set) {
		errno = ENOSPC;
		return -1;
	}
	/* A connection that is to become an rsocket does so now. */
	if (op != EPOLL_CTL_DEL)
		preload_data(fd);
	pthread_mutex_lock(&watch_lock);
	ret = socket_control(s, set, epfd, op, fd, event);
	pthread_mutex_unlock(&watch_lock);
	busbar_epoll_put(set);
	return ret;
}

/* ---- epoll_create ---- */

PRELOAD_EXPORT int epoll_create1(int flags)
{
	int epfd;

	if (!preload_real.socket)
		preload_init();
	epfd = preload_real.epoll_create1(flags);
	/* From the beginning, so that it is known as a set when it is nested. */
	if (epfd >= 0 && !preload_inside) {
		struct rs_set *set;

		preload_set_share(-1, epfd); /* the close of this number may have been missed */
		set = set_get(epfd, true);
		if (set)
			busbar_epoll_put(set);
	}
	return epfd;
}

PRELOAD_EXPORT int epoll_create(int size)
{
	if (size <= 0) {
		errno = EINVAL;
		return -1;
	}
	return epoll_create1(0);
}

/* ---- epoll_wait ---- */

PRELOAD_EXPORT int epoll_pwait2(int epfd, struct epoll_event *events, int max,
				const struct timespec *timeout, const sigset_t *mask)
{
	struct rs_set *set;
	int ret;

	if (!preload_real.socket)
		preload_init();
	set = set_get(epfd, true);
	if (!set)
		return preload_real.epoll_pwait2(epfd, events, max, timeout, mask);
	preload_enter();
	ret = busbar_epoll_wait(set, epfd, events, max, timeout, mask);
	preload_leave();
	return ret;
}

PRELOAD_EXPORT int epoll_pwait(int epfd, struct epoll_event *events, int max, int timeout,
			       const sigset_t *mask)
{
	struct timespec limit = { timeout / 1000, timeout % 1000 * 1000000L };

	if (preload_inside)
		return preload_real.epoll_pwait(epfd, events, max, timeout, mask);
	return epoll_pwait2(epfd, events, max, timeout < 0 ? NULL : &limit, mask);
}

PRELOAD_EXPORT int epoll_wait(int epfd, struct epoll_event *events, int max, int timeout)
{
	return epoll_pwait(epfd, events, max, timeout, NULL);
}
