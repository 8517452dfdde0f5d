/* SPDX-License-Identifier: BSD-2-Clause */
/* What the engine wants of the socket: events to watch, the end of a direction, the end. */
#define LOG_ROOM "iwarp"
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/iwarp/middlebox.h"
#include "transport/iwarp/stream.h"
#include "util/cancel.h"
#include "util/clock.h"
#include "util/log.h"

/* Are polls of the program enough? */
static bool is_polled(const struct iwarp_stream *s)
{
	return atomic_load(&iwarp_port.unwatched) && s->qp && s->events == EPOLLIN;
}

void iwarp_unwatch(struct iwarp_stream *s)
{
	if (s->watched)
		epoll_ctl(iwarp_port.epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
	s->watched = false;
}

bool iwarp_watch_again(struct iwarp_stream *s)
{
	struct epoll_event ev = { .events = s->events, .data.ptr = s };
	int op = s->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;

	if (is_polled(s)) {
		iwarp_unwatch(s);
		return true;
	}
	if (epoll_ctl(iwarp_port.epoll_fd, op, s->fd, &ev)) {
		log_error("the socket of a connection cannot be watched: %m");
		return false;
	}
	s->watched = true;
	return true;
}

void iwarp_watch(struct iwarp_stream *s, uint32_t events)
{
	if (!s->listed || events == s->events)
		return;
	s->events = events;
	iwarp_watch_again(s);
}

void iwarp_end_socket(struct iwarp_stream *s, bool reset)
{
	CANCEL_OFF; /* a poll ends a socket, too, and close(2) is a cancellation point */
	const int fd = s->fd;
	unsigned tries = 0;

	if (fd < 0)
		return;
	/* close() does not take it out when a forked child has the socket, too. */
	iwarp_unwatch(s);
	s->events = 0;
	if (reset)
		iwarp_show_end(s, true, true);
	/* Another file of the program may get its number at once. */
	atomic_store(&s->fd, -1);
	while (atomic_load(&s->reading))
		spin_wait(++tries);
	if (s->middlebox)
		iwarp_middlebox_leave(s->middlebox, reset);
	s->middlebox = NULL;
	if (reset)
		iwarp_socket_reset(fd);
	else
		close(fd);
}

static void arm(struct iwarp_stream *s)
{
	const uint64_t due = s->c.deadline_ns;

	if (!due || (s->armed_ns && s->armed_ns <= due))
		return;
	s->armed_ns = due;
	progress_timer_arm(&s->qp->retry, progress_now_ns() + due - MIN(due, clock_now_ns()));
}

/* Neither end has begun to end the connection, and no time is limited. */
static bool goes_on(const struct iwarp_connection *c)
{
	return c->output == IWARP_OUT_MESSAGES && c->input == IWARP_IN_MESSAGES && !c->aborted &&
	       !c->deadline_ns;
}

void iwarp_act(struct iwarp_stream *s)
{
	enum iwarp_action action;

	if (likely(goes_on(&s->c)))
		return;
	while (s->fd >= 0 &&
	       (action = iwarp_action(&s->c, clock_now_ns())) != IWARP_NO_ACTION)
		if (action == IWARP_SHUTDOWN) {
			shutdown(s->fd, SHUT_WR);
			iwarp_show_end(s, true, false);
			iwarp_shut(&s->c);
		} else {
			iwarp_end_socket(s, action == IWARP_RESET);
		}
	if (s->fd >= 0)
		arm(s);
}
