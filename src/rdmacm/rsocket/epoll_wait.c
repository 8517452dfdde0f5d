/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting for a set of rsockets together with the instance's ordinary descriptors. */
#define LOG_ROOM "rsocket"
#include <string.h>

#include "rdmacm/rsocket/epoll_set.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"
#include "util/wakeup.h"

#define IN_EVENTS \
	((uint32_t)(EPOLLIN | EPOLLRDNORM | EPOLLRDBAND | EPOLLPRI | EPOLLRDHUP | EPOLLMSG))
#define OUT_EVENTS ((uint32_t)(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND))
#define ALWAYS ((uint32_t)(EPOLLERR | EPOLLHUP))

/* ---- looking ---- */

/* Takes the completions and events that have come. Afterwards the completion queue is armed, so
 * that later ones make a channel readable. */
static void watch_progress(struct rs_watch *w)
{
	struct rs *rs = w->rs;
	bool everything = w->channel_fired || rs->state != RS_CONNECTED;

	if (w->comp_fired)
		rs_drain(rs, -1);
	w->comp_fired = w->channel_fired = false;
	do {
		rs_arm(rs);
		if (everything)
			rs_progress_all(rs);
		else
			rs_progress(rs);
	} while (rs_watch_comp(w));
}

/* Has anything happened since the last look that an edge-triggered watch reports? */
static bool watch_moved(struct rs_watch *w)
{
	const uint32_t *now = w->rs->edges;
	uint32_t asked = w->asked.events;
	bool moved = w->fresh || now[RS_EDGE_STATE] != w->seen[RS_EDGE_STATE] ||
		     (asked & IN_EVENTS && now[RS_EDGE_IN] != w->seen[RS_EDGE_IN]) ||
		     (asked & OUT_EVENTS && now[RS_EDGE_OUT] != w->seen[RS_EDGE_OUT]);

	memcpy(w->seen, now, sizeof(w->seen));
	w->fresh = false;
	return moved;
}

/* The events to report. The set's lock is held. */
static uint32_t watch_look(struct rs_watch *w)
{
	struct rs *rs = w->rs;
	uint32_t events = 0;
	bool moved;

	if (w->spent)
		return 0;
	pthread_mutex_lock(&rs->lock);
	w->looking = true;
	if (!rs->closing) {
		watch_progress(w);
		events = (uint16_t)rs_events_tcp(rs) & (w->asked.events | ALWAYS);
	}
	moved = watch_moved(w);
	w->looking = false;
	pthread_mutex_unlock(&rs->lock);
	return moved || !(w->asked.events & EPOLLET) ? events : 0;
}

static struct rs_watch *ready_pop(struct rs_set *set, struct list *from)
{
	struct list *first;

	pthread_mutex_lock(&set->ready_lock);
	first = list_pop(from);
	pthread_mutex_unlock(&set->ready_lock);
	return first ? list_entry(first, struct rs_watch, ready) : NULL;
}

/* Reports sockets that are ready; those of level-triggered watches stay in the list. */
static int sockets_collect(struct rs_set *set, struct epoll_event *events, int max)
{
	struct list todo;
	struct rs_watch *w;
	int n = 0;

	list_init(&todo);
	pthread_mutex_lock(&set->lock);
	pthread_mutex_lock(&set->ready_lock);
	if (set->posted && set->wake_fd >= 0)
		wakeup_drain(set->wake_fd);
	set->posted = false;
	list_splice(&todo, &set->ready);
	pthread_mutex_unlock(&set->ready_lock);
	while (n < max && (w = ready_pop(set, &todo))) {
		uint32_t found = watch_look(w);

		if (!found)
			continue;
		events[n++] = (struct epoll_event){ .events = found,
						    .data = w->asked.data };
		if (w->asked.events & EPOLLONESHOT)
			w->spent = true;
		else if (!(w->asked.events & EPOLLET))
			rs_ready_push(w, false);
	}
	pthread_mutex_lock(&set->ready_lock);
	list_splice(&todo, &set->ready);
	list_splice(&set->ready, &todo);
	pthread_mutex_unlock(&set->ready_lock);
	pthread_mutex_unlock(&set->lock);
	return n;
}

/* ---- the instance ---- */

static void warn_forked(void)
{
	static atomic_bool warned;

	if (rs_sets_forked() && !atomic_exchange(&warned, true))
		log_warn("this process waits for an epoll instance of its parent, whose rsockets it does not have: their events are dropped");
}

/* An event of a socket's channel. The set's lock is held. */
static void channel_fired(const struct rs_set *set, struct rs_watch *w, bool comp)
{
	if (rs_watch_is_wake(w))
		return;
	if (w->set != set) { /* removed meanwhile */
		warn_forked();
		return;
	}
	if (comp)
		w->comp_fired = true;
	else
		w->channel_fired = true;
	rs_ready_push(w, false);
}

/* Notes the events of channels, and moves the program's events to the front of the array; returns
 * their number. */
static int others_sort(struct rs_set *set, struct epoll_event *events, int count)
{
	bool locked = false;
	int n = 0;

	for (int i = 0; i < count; i++) {
		uint64_t data = events[i].data.u64;
		struct rs_watch *w = rs_watch_of(data);

		if (!w) {
			events[n++] = events[i];
			continue;
		}
		if (!locked)
			pthread_mutex_lock(&set->lock);
		locked = true;
		channel_fired(set, w, data & RS_WATCH_COMP);
	}
	if (locked)
		pthread_mutex_unlock(&set->lock);
	return n;
}

/* epoll_pwait2; with milliseconds, rounded up, on kernels before 5.11. */
static int instance_wait(int epfd, struct epoll_event *events, int max, uint64_t rest_ns,
			 const sigset_t *mask)
{
	struct timespec t = timespec_from_ns(rest_ns);
	uint64_t ms = (rest_ns + RS_NSEC_PER_MSEC - 1) / RS_NSEC_PER_MSEC;
	int n = epoll_pwait2(epfd, events, max, rest_ns == UINT64_MAX ? NULL : &t, mask);

	if (n < 0 && errno == ENOSYS)
		n = epoll_pwait(epfd, events, max,
				rest_ns == UINT64_MAX ? -1 : (int)MIN(ms, 1000000000u),
				mask);
	return n < 0 ? -errno : n;
}

/* ---- waiting ---- */

struct wait {
	struct rs_set *set;
	int epfd;
	uint64_t end_ns; /* UINT64_MAX: never */
	const sigset_t *mask;
	int cancel_before;
	bool asleep;     /* counted as a sleeper */
	bool last;       /* the time is over after this step */
};

/* False: there are watches to look at. */
static bool sleep_begin(struct wait *s)
{
	pthread_mutex_lock(&s->set->ready_lock);
	s->asleep = list_empty(&s->set->ready);
	s->set->sleepers += s->asleep;
	pthread_mutex_unlock(&s->set->ready_lock);
	return s->asleep;
}

static void sleep_end(struct wait *s)
{
	struct rs_set *set = s->set;

	pthread_mutex_lock(&set->ready_lock);
	set->sleepers -= s->asleep;
	s->asleep = false;
	pthread_mutex_unlock(&set->ready_lock);
}

/* Wakes another thread if watches are left to look at. */
static void wait_end(struct wait *s)
{
	struct rs_set *set = s->set;

	sleep_end(s);
	pthread_mutex_lock(&set->ready_lock);
	if (!list_empty(&set->ready))
		rs_set_alert(set);
	pthread_mutex_unlock(&set->ready_lock);
	busbar_epoll_put(set);
}

static void wait_cancelled(void *arg)
{
	wait_end(arg);
}

static uint64_t left_ns(uint64_t end_ns)
{
	uint64_t now_ns;

	if (end_ns == UINT64_MAX || !end_ns)
		return end_ns;
	now_ns = clock_monotonic_ns_slow();
	return end_ns > now_ns ? end_ns - now_ns : 0;
}

/* Waits for the instance, the only cancellation point; the number of the program's events
 * or a negative errno. */
static int others_wait(struct wait *s, struct epoll_event *events, int max, bool may_sleep)
{
	uint64_t rest_ns = may_sleep ? left_ns(s->end_ns) : 0;
	int n, now;

	s->last = may_sleep && !rest_ns;
	if (rest_ns && !sleep_begin(s))
		rest_ns = 0;
	pthread_cleanup_push(wait_cancelled, s);
	pthread_setcancelstate(s->cancel_before, &now);
	n = instance_wait(s->epfd, events, max, rest_ns, s->mask);
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &now);
	pthread_cleanup_pop(0);
	sleep_end(s);
	return n < 0 ? n : others_sort(s->set, events, n);
}

static int wait_step(struct wait *s, struct epoll_event *events, int max)
{
	bool others_first = atomic_load(&s->set->behind);
	int found = others_first ? 0 : sockets_collect(s->set, events, max), others;

	atomic_store(&s->set->behind, found == max);
	if (found == max)
		return found;
	others = others_wait(s, events + found, max - found, !found && !others_first);
	if (others < 0)
		return found ? found : others;
	/* A socket is reported once per call. */
	if (!found && others < max)
		found = sockets_collect(s->set, events + others, max - others);
	return found + others;
}

static uint64_t end_of(const struct timespec *timeout)
{
	if (!timeout || timeout->tv_sec > INT32_MAX)
		return UINT64_MAX;
	if (!timeout->tv_sec && !timeout->tv_nsec)
		return 0;
	return clock_monotonic_ns_slow() + timespec_to_ns(*timeout);
}

RS_EXPORT int busbar_epoll_wait(struct rs_set *set, int epfd, struct epoll_event *events,
				int max, const struct timespec *timeout,
				const sigset_t *mask)
{
	CANCEL_OFF;
	struct wait s = { .set = set, .epfd = epfd, .mask = mask,
			  .end_ns = end_of(timeout), .cancel_before = cancel_before_ };
	int ret = -EINVAL;

	if (max > 0) {
		do
			ret = wait_step(&s, events, max);
		while (!ret && !s.last);
	}
	wait_end(&s);
	return (int)rs_result(ret);
}
