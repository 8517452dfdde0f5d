/* SPDX-License-Identifier: BSD-2-Clause */
/* What an identifier has for connections by messages: made, updated, closed. */

#include <errno.h>
#include <stdlib.h>

#include "rdmacm/base/base.h"
#include "rdmacm/cm/cm.h"
#include "util/clock.h"
#include "verbs/private.h"

/* Interval of attempts to connect if there is no listener, or it is busy. */
#define RETRY_NS (5 * UINT64_C(1000000))

static uint32_t comm_id_first;

static void comm_id_start(void)
{
	comm_id_first = cma_random(UINT32_MAX);
}

/*
 * The next communication identifier. Peers tell connections apart by it, so they are
 * counted: of ten thousand random ones two would be equal in one of a hundred runs.
 * The first is random, because a former process may have used the same numbers.
 */
static uint32_t comm_id_next(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	static _Atomic uint32_t count;
	uint32_t id;

	pthread_once(&once, comm_id_start);
	do
		id = comm_id_first + atomic_fetch_add(&count, 1);
	while (!id); /* 0 means none */
	return id;
}

int cma_side_open(struct cma_id *id, void (*expired)(struct progress_timer *t))
{
	struct cma_side *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->id = id;
	cm_machine_init(&s->cm, comm_id_next());
	id->conn.local_psn = cma_random(0xffffff);
	list_init(&s->link_entry);
	list_init(&s->listen_entry);
	cm_entry_init(&s->route);
	busbar_progress_timer_init(&s->timer, expired);
	id->sides[CMA_CONNECTOR_CM] = s;
	return 0;
}

void cma_side_update(struct cma_side *s)
{
	uint64_t due = s->cm.deadline_ns;

	route_update(s);
	cma_service_update(s);
	if (s->link_retry)
		due = s->armed_ns ? s->armed_ns : clock_monotonic_ns_slow() + RETRY_NS;
	if (due == s->armed_ns)
		return;
	s->armed_ns = due;
	if (due)
		busbar_progress_timer_arm(&s->timer, due);
	else
		busbar_progress_timer_disarm(&s->timer);
}

void cma_side_close(struct cma_side *s)
{
	struct cma_id *id = s->id;
	struct cma_link *link;
	bool listening;

	/* The timer's function, which may run now, must not attach it to a link again. */
	pthread_mutex_lock(&id->lock);
	s->link_retry = false;
	pthread_mutex_unlock(&id->lock);
	route_forget(s);
	pthread_mutex_lock(&id->lock);
	link = s->link;
	s->link = NULL;
	listening = id->backlog > 0;
	cma_service_give(s);
	pthread_mutex_unlock(&id->lock);

	if (listening)
		busbar_progress_unwatch(id->port_fd);
	if (link)
		link_put(link);
	busbar_progress_timer_cancel(&s->timer);
}
