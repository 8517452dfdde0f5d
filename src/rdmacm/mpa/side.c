/* SPDX-License-Identifier: BSD-2-Clause */
/* The call of an identifier: watched, settled. */

#include "rdmacm/mpa/mpa.h"
#include "verbs/private.h"

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

	if (!events)
		mpa_side_unwatch(s);
	else if (s->watched)
		busbar_progress_rewatch(s->call.fd, events);
	else
		s->watched = !busbar_progress_watch(s->call.fd, events, s->on_events, s);
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
