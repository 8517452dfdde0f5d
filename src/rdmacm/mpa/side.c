/* SPDX-License-Identifier: BSD-2-Clause */
/* What an identifier has for connections of iWARP: made, watched, settled. */
#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#include "rdmacm/mpa/mpa.h"
#include "verbs/private.h"

static void step(struct mpa_side *s, bool expired)
{
	bool moved;

	pthread_mutex_lock(&s->id->lock);
	if (s->state == MPA_CALLING) {
		moved = expired ? mpa_call_expire(&s->call) : mpa_call_step(&s->call);
		if (moved)
			mpa_called_back(s);
		mpa_side_update(s);
	}
	pthread_mutex_unlock(&s->id->lock);
}

static void on_events(void *arg, uint32_t events)
{
	(void)events;
	step(arg, false);
}

static void on_timer(struct progress_timer *t)
{
	step(container_of(t, struct mpa_side, timer), true);
}

int mpa_side_open(struct cma_id *id)
{
	struct mpa_side *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->id = id;
	s->call.fd = s->listen_fd = -1;
	list_init(&s->callers);
	busbar_progress_timer_init(&s->timer, on_timer);
	id->sides[CMA_CONNECTOR_MPA] = s;
	return 0;
}

void mpa_side_unwatch(struct mpa_side *s)
{
	if (s->watched)
		busbar_progress_unwatch_async(s->call.fd);
	s->watched = false;
	busbar_progress_timer_disarm(&s->timer);
}

void mpa_side_update(struct mpa_side *s)
{
	uint32_t events = s->state == MPA_CALLING ? mpa_call_events(&s->call) : 0;
	uint64_t due = s->state == MPA_CALLING ? mpa_call_deadline(&s->call) : 0;

	if (!events) {
		mpa_side_unwatch(s);
		return;
	}
	if (s->watched)
		busbar_progress_rewatch(s->call.fd, events);
	else
		s->watched = !busbar_progress_watch(s->call.fd, events, on_events, s);
	if (due)
		busbar_progress_timer_arm(&s->timer, due);
}

void mpa_side_settle(struct mpa_side *s)
{
	int fd = -1;

	pthread_mutex_lock(&s->id->lock);
	if (s->watched)
		fd = s->call.fd;
	s->watched = false;
	if (s->state == MPA_CALLING)
		s->state = MPA_ENDED;
	pthread_mutex_unlock(&s->id->lock);
	if (fd >= 0)
		busbar_progress_unwatch(fd);
	busbar_progress_timer_cancel(&s->timer);
}
