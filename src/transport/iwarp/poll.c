/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which thread looks at the sockets. Polls of the program do: at each socket if there are few, else at
 * those that the kernel names. The progress thread watches them, too, unless the program polls
 * without a gap: a segment would wake it, and it would take the processor from the program for nothing.
 */
#define LOG_ROOM "iwarp"
#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "hca/run/elide.h"
#include "hca/share/process.h"
#include "transport/iwarp/stream.h"
#include "util/clock.h"
#include "util/log.h"

/* So many sockets are read without asking the kernel which of them have something. */
#define FEW 2u
#define EVENTS 32
#define POLLS_PER_EVENT 64
/* A poll that makes a system call takes as long as so many other polls. */
#define SYSTEM_CALL_POLLS 16
/* Polls that are not further apart have no gap; so long without one, and they are relied on. */
#define GAP_NS 50000u
#define PRESENT_NS 200000u
#define POLLS_PER_LOOK 64u
/* Whether the program still polls is looked at so often. */
#define LOOK_NS 2000000u

/* ---- who looks ---- */

static void readable(void *arg, uint32_t events);

/* Few sockets are watched as long as polls are not relied on. receive_lock is held. */
static void watch_or_not(bool unwatch)
{
	if (atomic_load(&iwarp_port.unwatched) == unwatch)
		return;
	atomic_store(&iwarp_port.unwatched, unwatch);
	list_for_each(s, &iwarp_port.streams, struct iwarp_stream, entry) {
		struct hca_qp *qp = s->qp;

		if (!qp)
			continue;
		hca_lock(&qp->sq_lock);
		if (s->fd >= 0 && s->events)
			iwarp_watch_again(s);
		hca_unlock(&qp->sq_lock);
	}
}

/* What rely() has decided, or another call of it since. */
static void watch(void)
{
	hca_enter();
	hca_lock(&iwarp_port.receive_lock);
	watch_or_not(atomic_load(&iwarp_port.relied) &&
		     atomic_load(&iwarp_port.count) <= FEW);
	hca_unlock(&iwarp_port.receive_lock);
	hca_leave();
}

/* Has an effect while the port is open. */
static void rely(bool on)
{
	int ret = 0;

	pthread_mutex_lock(&iwarp_port.rely_lock);
	if (atomic_load(&iwarp_port.open) && atomic_load(&iwarp_port.relied) != on) {
		atomic_store(&iwarp_port.relied, on);
		ret = progress_rewatch(iwarp_port.epoll_fd, on ? 0 : EPOLLIN);
	}
	if (on)
		progress_timer_arm(&iwarp_port.look, progress_now_ns() + LOOK_NS);
	pthread_mutex_unlock(&iwarp_port.rely_lock);
	watch();
	if (ret)
		log_error("messages may wait for polls, as the sockets cannot be watched: %s",
			  strerror(-ret));
}

static void look(struct progress_timer *t)
{
	uint64_t since = clock_now_ns() - atomic_load(&iwarp_port.polled_ns);

	if (!atomic_load(&iwarp_port.relied))
		return;
	if ((int64_t)since > LOOK_NS / 2)
		rely(false);
	else
		progress_timer_arm(t, progress_now_ns() + LOOK_NS);
}

/* A poll of the program. While its polls are relied on, it is enough to look at the clock now and
 * then. */
static void note_poll(void)
{
	unsigned polls = atomic_load_explicit(&iwarp_port.polls, memory_order_relaxed) + 1;
	uint64_t now, gap;

	atomic_store_explicit(&iwarp_port.polls, polls, memory_order_relaxed);
	if (likely(atomic_load_explicit(&iwarp_port.relied, memory_order_relaxed)) &&
	    polls % POLLS_PER_LOOK)
		return;
	now = clock_now_ns();
	gap = now - atomic_load_explicit(&iwarp_port.polled_ns, memory_order_relaxed);
	atomic_store_explicit(&iwarp_port.polled_ns, now, memory_order_relaxed);
	if (unlikely((int64_t)gap > GAP_NS))
		atomic_store_explicit(&iwarp_port.since_ns, now, memory_order_relaxed);
	else if (unlikely(!atomic_load_explicit(&iwarp_port.relied, memory_order_relaxed)) &&
		 (int64_t)(now - atomic_load_explicit(&iwarp_port.since_ns,
						      memory_order_relaxed)) > PRESENT_NS)
		rely(true);
}

bool iwarp_announces(void)
{
	if (atomic_load(&iwarp_port.relied))
		rely(false);
	return true;
}

/* ---- polls ---- */

/* receive_lock is held. */
static bool poll_all(void)
{
	bool moved = false;

	list_for_each(s, &iwarp_port.streams, struct iwarp_stream, entry)
		moved |= iwarp_receive(s);
	return moved;
}

/* receive_lock is held, without which no stream of the instance is freed. */
static bool poll_ready(void)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(iwarp_port.epoll_fd, events, EVENTS, 0);
	bool moved = false;

	for (int i = 0; i < n; i++)
		moved |= iwarp_receive(events[i].data.ptr);
	return moved;
}

static bool poll_locked(void)
{
	unsigned count = atomic_load_explicit(&iwarp_port.count, memory_order_relaxed);

	if (count <= FEW)
		return count && poll_all();
	watch_or_not(false);
	return poll_ready();
}

bool iwarp_poll(struct hca_cq *cq, bool wait)
{
	bool moved;

	if (!atomic_load_explicit(&iwarp_port.count, memory_order_relaxed))
		return false;
	if (cq)
		note_poll();
	if (wait)
		hca_lock(&iwarp_port.receive_lock);
	else if (!hca_trylock(&iwarp_port.receive_lock))
		return false;
	moved = poll_locked();
	hca_unlock(&iwarp_port.receive_lock);
	if (!moved && cq)
		hca_self.polls += SYSTEM_CALL_POLLS - 1;
	return moved;
}

/* On the progress thread. */
static void readable(void *arg, uint32_t events)
{
	bool moved = true;

	(void)arg;
	(void)events;
	if (atomic_load(&iwarp_port.relied))
		return;
	hca_enter();
	for (unsigned i = 0; moved && i < POLLS_PER_EVENT; i++)
		moved = iwarp_poll(NULL, true);
	hca_leave();
}

/* ---- opening ---- */

int iwarp_polls_start(void)
{
	progress_timer_init(&iwarp_port.look, look);
	iwarp_port.look.light = true;
	atomic_store(&iwarp_port.relied, false);
	atomic_store(&iwarp_port.unwatched, false);
	return progress_watch(iwarp_port.epoll_fd, EPOLLIN, readable, NULL);
}

void iwarp_polls_stop(void)
{
	progress_timer_cancel(&iwarp_port.look);
	progress_unwatch(iwarp_port.epoll_fd);
}

void iwarp_polls_forked(void)
{
	pthread_mutex_init(&iwarp_port.rely_lock, NULL);
	atomic_store(&iwarp_port.relied, false);
	atomic_store(&iwarp_port.unwatched, false);
}
