/* SPDX-License-Identifier: BSD-2-Clause */
/* Waking the threads and watches that wait for a socket, and the changes that wake them. */
#define LOG_ROOM "rsocket"
#include <string.h>
#include <unistd.h>

#include "rdmacm/rsocket/rs.h"
#include "util/cancel.h"
#include "util/log.h"
#include "util/wakeup.h"

static pthread_key_t wake_key;
static pthread_once_t wake_once = PTHREAD_ONCE_INIT;
static bool wake_usable;

/* The value is the descriptor plus one, because 0 means "no value". */
static void wake_end(void *value)
{
	close((int)(intptr_t)value - 1);
}

/* The child closes its copy; the thread in the parent goes on using the descriptor. */
static void wake_forked(void)
{
	intptr_t value = wake_usable ? (intptr_t)pthread_getspecific(wake_key) : 0;

	if (!value)
		return;
	close((int)value - 1);
	pthread_setspecific(wake_key, NULL);
}

static void wake_start(void)
{
	wake_usable = !pthread_key_create(&wake_key, wake_end);
	pthread_atfork(NULL, NULL, wake_forked);
}

int rs_wake_fd(void)
{
	intptr_t value;
	int fd;

	pthread_once(&wake_once, wake_start);
	if (!wake_usable)
		return -EAGAIN;
	value = (intptr_t)pthread_getspecific(wake_key);
	if (value)
		return (int)value - 1;
	fd = wakeup_open_signal();
	if (fd < 0)
		return fd;
	pthread_setspecific(wake_key, (void *)((intptr_t)fd + 1));
	return fd;
}

void rs_wake(struct rs *rs, int except_fd)
{
	list_for_each(w, &rs->waiters, struct rs_waiter, entry) {
		if (w->wake)
			w->wake(w);
		else if (w->wake_fd != except_fd)
			wakeup_post(w->wake_fd);
	}
}

void rs_arm(struct rs *rs)
{
	if (!rs->cq || rs->armed)
		return;
	if (!ibv_req_notify_cq(rs->cq, 0))
		rs->armed = true;
}

void rs_drain(struct rs *rs, int except_fd)
{
	CANCEL_OFF;
	struct ibv_cq *cq;
	unsigned events = 0;
	void *context;

	if (!rs->comp)
		return;
	while (!ibv_get_cq_event(rs->comp, &cq, &context))
		events++;
	if (!events)
		return;
	ibv_ack_cq_events(rs->cq, events);
	rs->armed = false;
	rs_wake(rs, except_fd);
}

void rs_fail(struct rs *rs, int error)
{
	if (rs->state == RS_GONE)
		return;
	log_debug("socket %d: %s", rs->fd, strerror(error));
	rs->state = RS_GONE;
	rs->edges[RS_EDGE_STATE]++;
	if (!rs->error)
		rs->error = error;
	rs_wake(rs, -1);
}

/* No error is reported if the peer has sent RS_END, or this side is closing. */
void rs_gone(struct rs *rs)
{
	if (!rs->rx.ended && !rs->closing)
		rs_fail(rs, ECONNRESET);
	/* After the peer's RS_END this changes what poll() reports only if this side is shut down,
	 * too, or had no room. */
	if (rs->state != RS_GONE && (!rs->rx.ended || rs->tx.shut || rs->out_full))
		rs->edges[RS_EDGE_STATE]++;
	rs->state = RS_GONE;
	rs_wake(rs, -1);
}
