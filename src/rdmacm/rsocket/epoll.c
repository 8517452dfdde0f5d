/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of rsockets and their watches; epoll_wait.c waits for them. */
#define LOG_ROOM "rsocket"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rdmacm/rsocket/epoll_set.h"
#include "util/cancel.h"
#include "util/log.h"
#include "util/wakeup.h"

#define WATCHES 65536u
#define EXCLUSIVE_MAY                                                      \
	((uint32_t)(EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP | EPOLLWAKEUP | \
		    EPOLLET | EPOLLEXCLUSIVE))

static struct {
	pthread_mutex_t lock;
	struct list sets;
	_Atomic(struct rs_watch *) area; /* the first place is no watch */
	uint32_t used;
	struct rs_watch *free;
	bool forked;
} all = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.sets = { &all.sets, &all.sets },
	.used = 1,
};

/* ---- watches ---- */

static bool area_make(void)
{
	void *area;

	if (all.area)
		return true;
	area = mmap(NULL, WATCHES * sizeof(struct rs_watch), PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (area != MAP_FAILED)
		all.area = area;
	return all.area != NULL;
}

static struct rs_watch *watch_alloc(void)
{
	struct rs_watch *w = NULL;

	pthread_mutex_lock(&all.lock);
	if (area_make() && all.free) {
		w = all.free;
		all.free = w->next_free;
	} else if (all.area && all.used < WATCHES) {
		w = &all.area[all.used++];
	}
	pthread_mutex_unlock(&all.lock);
	if (w)
		memset(w, 0, sizeof(*w));
	return w;
}

static void watch_free(struct rs_watch *w)
{
	atomic_store(&w->set, NULL);
	pthread_mutex_lock(&all.lock);
	w->next_free = all.free;
	all.free = w;
	pthread_mutex_unlock(&all.lock);
}

struct rs_watch *rs_watch_of(uint64_t data)
{
	uint64_t at = data - (uintptr_t)all.area;

	if (!all.area || at >= WATCHES * sizeof(struct rs_watch))
		return NULL;
	return (struct rs_watch *)(uintptr_t)(data & ~RS_WATCH_COMP);
}

bool rs_watch_is_wake(const struct rs_watch *w)
{
	return w == all.area;
}

static int instance_add(const struct rs_set *set, int fd, uint64_t data)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = data };

	return epoll_ctl(set->epfd, EPOLL_CTL_ADD, fd, &event) ? -errno : 0;
}

/* Adds the channel `fd`, for the second number of a socket a duplicate of it: the
 * descriptor that was added, or a negative errno. */
static int channel_add(const struct rs_set *set, int fd, uint64_t data)
{
	int ret = instance_add(set, fd, data), own;

	if (ret != -EEXIST)
		return ret ? ret : fd;
	own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (own < 0)
		return -errno;
	ret = instance_add(set, own, data);
	if (!ret)
		return own;
	close(own);
	return ret;
}

static void channel_remove(const struct rs_set *set, int added, int fd)
{
	epoll_ctl(set->epfd, EPOLL_CTL_DEL, added, NULL);
	if (added != fd)
		close(added);
}

bool rs_watch_comp(struct rs_watch *w)
{
	const struct rs *rs = w->rs;

	if (!rs->comp || w->comp_fd >= 0)
		return false;
	w->comp_fd = channel_add(w->set, rs->comp->fd, (uintptr_t)w | RS_WATCH_COMP);
	if (w->comp_fd < 0)
		log_error("socket %d: cannot watch its completions by epoll: %s", rs->fd,
			  strerror(-w->comp_fd));
	return w->comp_fd >= 0;
}

/* ---- the list of watches that may be ready ---- */

void rs_set_alert(struct rs_set *set)
{
	if (set->posted || set->ended || set->wake_fd < 0 ||
	    (!set->sleepers && !set->nested))
		return;
	set->posted = true;
	wakeup_post(set->wake_fd);
}

void rs_ready_push(struct rs_watch *w, bool alert)
{
	struct rs_set *set = w->set;

	pthread_mutex_lock(&set->ready_lock);
	if (list_empty(&w->ready))
		list_push(&set->ready, &w->ready);
	if (alert)
		rs_set_alert(set);
	pthread_mutex_unlock(&set->ready_lock);
}

/* The socket may be ready. Its lock is held. */
static void watch_wake(struct rs_waiter *waiter)
{
	struct rs_watch *w = container_of(waiter, struct rs_watch, waiter);

	if (!w->looking)
		rs_ready_push(w, true);
}

RS_EXPORT void busbar_epoll_nest(struct rs_set *set)
{
	pthread_mutex_lock(&set->ready_lock);
	set->nested = true;
	if (!list_empty(&set->ready))
		rs_set_alert(set);
	pthread_mutex_unlock(&set->ready_lock);
}

/* ---- watches of a socket ---- */

#define ANY_NUMBER (-1)

/* A watch of the socket, in the set if that is not NULL. The socket's lock is held. */
static struct rs_watch *watch_find(struct rs *rs, const struct rs_set *set, int fd)
{
	list_for_each(waiter, &rs->waiters, struct rs_waiter, entry) {
		struct rs_watch *w = container_of(waiter, struct rs_watch, waiter);

		if (waiter->wake == watch_wake && (!set || w->set == set) && (fd == ANY_NUMBER || w->fd == fd))
			return w;
	}
	return NULL;
}

/* The locks of the set and the socket are held. */
static void watch_remove(struct rs_watch *w)
{
	struct rs_set *set = w->set;

	channel_remove(set, w->channel_fd, w->rs->channel->fd);
	if (w->comp_fd >= 0)
		channel_remove(set, w->comp_fd, w->rs->comp->fd);
	pthread_mutex_lock(&set->ready_lock);
	list_remove(&w->ready);
	pthread_mutex_unlock(&set->ready_lock);
	list_remove(&w->entry);
	list_remove(&w->waiter.entry);
	watch_free(w);
}

/* Lets the next thread that waits look at the watch. */
static void watch_ask(struct rs_watch *w, const struct epoll_event *asked)
{
	w->asked = *asked;
	w->fresh = true;
	w->spent = false;
	watch_wake(&w->waiter);
}

static int watch_add(struct rs_set *set, struct rs *rs, int fd,
		     const struct epoll_event *asked)
{
	struct rs_watch *w = watch_alloc();

	if (!w) {
		log_error("socket %d: too many sockets in epoll sets, at most %u", rs->fd,
			  WATCHES - 1);
		return -ENOSPC;
	}
	w->rs = rs;
	w->fd = fd;
	w->waiter = (struct rs_waiter){ .wake_fd = -1, .wake = watch_wake };
	list_init(&w->ready);
	w->comp_fd = -1;
	w->channel_fd = channel_add(set, rs->channel->fd, (uintptr_t)w);
	if (w->channel_fd < 0) {
		int ret = w->channel_fd;

		watch_free(w);
		return ret;
	}
	atomic_store(&w->set, set);
	list_push(&set->watches, &w->entry);
	list_push(&rs->waiters, &w->waiter.entry);
	watch_ask(w, asked);
	return 0;
}

void rs_watches_end(struct rs *rs)
{
	for (;;) {
		struct rs_watch *w;
		struct rs_set *set;

		pthread_mutex_lock(&rs->lock);
		w = watch_find(rs, NULL, ANY_NUMBER);
		set = w ? w->set : NULL;
		if (set)
			busbar_epoll_get(set);
		pthread_mutex_unlock(&rs->lock);
		if (!set)
			return;
		pthread_mutex_lock(&set->lock);
		pthread_mutex_lock(&rs->lock);
		w = watch_find(rs, set, ANY_NUMBER);
		if (w)
			watch_remove(w);
		pthread_mutex_unlock(&rs->lock);
		pthread_mutex_unlock(&set->lock);
		busbar_epoll_put(set);
	}
}

/* ---- sets ---- */

static void set_init(struct rs_set *set)
{
	pthread_mutex_init(&set->lock, NULL);
	pthread_mutex_init(&set->ready_lock, NULL);
	list_init(&set->watches);
	list_init(&set->ready);
	set->epfd = set->wake_fd = -1;
	set->sleepers = 0;
}

RS_EXPORT struct rs_set *busbar_epoll_make(void)
{
	struct rs_set *set = calloc(1, sizeof(*set));

	if (!set)
		return NULL;
	set_init(set);
	atomic_store(&set->refs, 1);
	pthread_mutex_lock(&all.lock);
	list_push(&all.sets, &set->entry);
	pthread_mutex_unlock(&all.lock);
	return set;
}

RS_EXPORT void busbar_epoll_get(struct rs_set *set)
{
	atomic_fetch_add(&set->refs, 1);
}

RS_EXPORT void busbar_epoll_put(struct rs_set *set)
{
	if (atomic_fetch_sub(&set->refs, 1) != 1)
		return;
	pthread_mutex_lock(&all.lock);
	list_remove(&set->entry);
	pthread_mutex_unlock(&all.lock);
	pthread_mutex_destroy(&set->lock);
	pthread_mutex_destroy(&set->ready_lock);
	free(set);
}

static void set_close(struct rs_set *set)
{
	if (set->epfd >= 0)
		close(set->epfd);
	if (set->wake_fd >= 0)
		close(set->wake_fd);
	set->epfd = set->wake_fd = -1;
}

/* Before the first socket. The set's lock is held. */
static int set_open(struct rs_set *set, int epfd)
{
	int ret;

	if (set->epfd >= 0)
		return 0;
	pthread_mutex_lock(&all.lock);
	ret = area_make() ? 0 : -ENOMEM;
	pthread_mutex_unlock(&all.lock);
	if (ret)
		return ret;
	set->epfd = fcntl(epfd, F_DUPFD_CLOEXEC, 0);
	if (set->epfd < 0)
		return -errno;
	pthread_mutex_lock(&set->ready_lock);
	set->wake_fd = wakeup_open_signal();
	ret = set->wake_fd < 0 ? set->wake_fd :
		instance_add(set, set->wake_fd, (uintptr_t)all.area);
	if (ret)
		set_close(set);
	pthread_mutex_unlock(&set->ready_lock);
	return ret;
}

RS_EXPORT void busbar_epoll_end(struct rs_set *set)
{
	CANCEL_OFF;

	pthread_mutex_lock(&set->lock);
	list_for_each_safe(w, &set->watches, struct rs_watch, entry) {
		struct rs *rs = w->rs;

		pthread_mutex_lock(&rs->lock);
		watch_remove(w);
		pthread_mutex_unlock(&rs->lock);
	}
	pthread_mutex_lock(&set->ready_lock);
	set->ended = true;
	set_close(set);
	pthread_mutex_unlock(&set->ready_lock);
	pthread_mutex_unlock(&set->lock);
}

RS_EXPORT bool busbar_epoll_ended(struct rs_set *set)
{
	bool ended;

	pthread_mutex_lock(&set->lock);
	ended = set->ended;
	pthread_mutex_unlock(&set->lock);
	return ended;
}

static int control(struct rs_set *set, int op, struct rs *rs, int fd,
		   const struct epoll_event *asked)
{
	struct rs_watch *w = watch_find(rs, set, fd);
	uint32_t events = op == EPOLL_CTL_DEL ? 0 : asked->events;

	if (rs->closing)
		return -EBADF;
	switch (op) {
	case EPOLL_CTL_ADD:
		if (events & EPOLLEXCLUSIVE && events & ~EXCLUSIVE_MAY)
			return -EINVAL;
		return w ? -EEXIST : watch_add(set, rs, fd, asked);
	case EPOLL_CTL_MOD:
		if (events & EPOLLEXCLUSIVE ||
		    (w && w->asked.events & EPOLLEXCLUSIVE))
			return -EINVAL;
		if (w)
			watch_ask(w, asked);
		return w ? 0 : -ENOENT;
	case EPOLL_CTL_DEL:
		if (w)
			watch_remove(w);
		return w ? 0 : -ENOENT;
	default:
		return -EINVAL;
	}
}

RS_EXPORT int busbar_epoll_ctl(struct rs_set *set, int epfd, int op, int socket,
			       int fd, const struct epoll_event *asked)
{
	CANCEL_OFF;
	struct rs *rs = rs_get(socket);
	int ret;

	if (!rs)
		return (int)rs_result(-EBADF);
	pthread_mutex_lock(&set->lock);
	ret = set->ended ? -EBADF : set_open(set, epfd);
	if (!ret) {
		pthread_mutex_lock(&rs->lock);
		ret = control(set, op, rs, fd, asked);
		pthread_mutex_unlock(&rs->lock);
	}
	pthread_mutex_unlock(&set->lock);
	rs_put(rs);
	return (int)rs_result(ret);
}

/* ---- fork ---- */

/* The parent's sockets do not exist in the child, and its instance has their channels. */
static void sets_forked(void)
{
	pthread_mutex_init(&all.lock, NULL);
	list_for_each(set, &all.sets, struct rs_set, entry) {
		all.forked |= !list_empty(&set->watches);
		set_close(set);
		set_init(set);
		set->ended = true;
	}
	all.free = NULL;
}

__attribute__((constructor)) static void sets_load(void)
{
	pthread_atfork(NULL, NULL, sets_forked);
}

bool rs_sets_forked(void)
{
	return all.forked;
}
