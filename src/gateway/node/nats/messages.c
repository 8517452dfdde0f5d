/* SPDX-License-Identifier: BSD-2-Clause */
/* What is sent and received while a connection lasts. */
#define LOG_ROOM "gateway/nats"
#include "gateway/node/nats/nats.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include "util/clock.h"

/* While the socket is ready and TLS is not (link.c). */
#define TLS_WAIT_NS (2 * UINT64_C(1000000))

static int fail(struct nats_node *m, natsStatus s)
{
	const char *text = nats_GetLastError(NULL);

	return outside_fail(&m->outside, -EIO, "%s%s%s", natsStatus_GetText(s),
			    text && *text ? ": " : "", text && *text ? text : "");
}

static natsStatus publish(struct nats_node *m, const struct outbox_message *msg)
{
	natsStatus s = NATS_OK;

	if (m->js.enabled)
		return nats_jetstream_publish(m, msg);
	for (unsigned i = 0; i < m->pub_count && !s; i++)
		s = natsConnection_Publish(m->link->connection, m->pub[i], msg->data,
					   (int)msg->len);
	return s;
}

int nats_send(struct outside *o, struct outbox_message *msg)
{
	struct nats_node *m = nats_of(o);
	struct nats_link *l = m->link;
	natsStatus s;

	/* The library would keep any number of them. */
	if (atomic_load_explicit(&l->want_write, memory_order_relaxed))
		return -EAGAIN;
	if (unlikely(m->js.pause_ns && clock_now_ns() < m->js.pause_ns))
		return -EAGAIN;
	/* A message that is sent again keeps its tag, by which a stream knows it. */
	if (!m->js.enabled || !msg->tag)
		msg->tag = outside_new_tag(o);
	nats_link_enter();
	s = publish(m, msg);
	nats_link_leave();
	if (s == NATS_MAX_PAYLOAD)
		return outside_fail(o, -EMSGSIZE, "a message of %zu bytes, the server takes %lld",
				    msg->len, (long long)natsConnection_GetMaxPayload(l->connection));
	if (s)
		return fail(m, s);
	nats_link_process(l, false);
	if (unlikely(atomic_load_explicit(&l->want_write, memory_order_relaxed)))
		outside_wake(o);
	if (!m->js.enabled)
		nats_link_ask(l, msg->tag);
	return OUTSIDE_UNCONFIRMED;
}

void nats_link_ask(struct nats_link *l, uint64_t tag)
{
	pthread_mutex_lock(&l->lock);
	atomic_store(&l->asked, tag);
	if (l->idle)
		pthread_cond_broadcast(&l->changed);
	pthread_mutex_unlock(&l->lock);
}

/* What the helper has found out. */
static void confirm(struct nats_node *m)
{
	struct nats_link *l = m->link;
	uint64_t answered = atomic_load_explicit(&l->answered, memory_order_acquire);
	char why[OUTSIDE_WHY];

	if (answered == m->confirmed)
		return;
	if (likely(!atomic_load(&l->refused))) {
		outside_confirm(&m->outside, answered, true);
		m->confirmed = answered;
		return;
	}
	pthread_mutex_lock(&l->lock);
	memcpy(why, l->why, sizeof(why));
	pthread_mutex_unlock(&l->lock);
	while (m->confirmed < answered)
		outside_reject(&m->outside, ++m->confirmed, why);
}

static void note_dropped(struct nats_node *m, unsigned i)
{
	int64_t dropped = 0;

	if (natsSubscription_GetDropped(m->link->subs[i], &dropped) || dropped <= m->dropped[i])
		return;
	node_figure_add(m->outside.node, NATS_DROPPED, (uint64_t)(dropped - m->dropped[i]));
	m->dropped[i] = dropped;
}

static void receive(struct nats_node *m)
{
	struct nats_link *l = m->link;

	for (unsigned i = 0; i < l->sub_count; i++) {
		natsMsg *msg = NULL;
		natsStatus s;

		while (!(s = natsSubscription_NextMsg(&msg, l->subs[i], 0))) {
			int len = natsMsg_GetDataLength(msg);

			if (len > 0)
				outside_received(&m->outside, natsMsg_GetData(msg), (size_t)len);
			natsMsg_Destroy(msg);
		}
		if (unlikely(s == NATS_SLOW_CONSUMER))
			note_dropped(m, i);
	}
}

/* 0, or why the connection has ended. */
static int check(struct nats_node *m)
{
	struct nats_link *l = m->link;
	const char *text = NULL;
	natsStatus s;

	if (likely(!natsConnection_IsClosed(l->connection)))
		return 0;
	s = natsConnection_GetLastError(l->connection, &text);
	return outside_fail(&m->outside, -ECONNRESET, "%s%s%s",
			    s ? natsStatus_GetText(s) : "it has ended the connection",
			    s && text && *text ? ": " : "", s && text ? text : "");
}

static int fail_link(struct nats_node *m)
{
	struct nats_link *l = m->link;
	int ret;

	pthread_mutex_lock(&l->lock);
	ret = outside_fail(&m->outside, -EIO, "%s", l->why);
	pthread_mutex_unlock(&l->lock);
	return ret;
}

int nats_turn(struct outside *o)
{
	struct nats_node *m = nats_of(o);
	struct nats_link *l = m->link;
	enum nats_link_state state = atomic_load_explicit(&l->state, memory_order_acquire);
	eventfd_t events;
	int ret;

	eventfd_read(l->event_fd, &events);
	if (state == NATS_LINK_FAILED)
		return fail_link(m);
	if (state == NATS_LINK_CONNECTING)
		return 0;
	nats_link_process(l, true);
	if (state == NATS_LINK_SETUP)
		return 0;
	ret = m->js.enabled ? nats_jetstream_turn(m) : 0;
	if (!m->js.enabled)
		receive(m);
	confirm(m);
	ret = ret ?: check(m);
	if (!ret && unlikely(!atomic_load_explicit(&o->up, memory_order_relaxed)))
		outside_is_up(o);
	return ret;
}

unsigned nats_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct nats_node *m = nats_of(o);
	struct nats_link *l = m->link;
	bool reads = !l->partial, writes = atomic_load(&l->want_write) && !l->full;

	fds[0] = (struct pollfd){ .fd = l->event_fd, .events = POLLIN };
	if (atomic_load_explicit(&l->state, memory_order_acquire) == NATS_LINK_CONNECTING)
		return 1;
	if (m->js.pause_ns > clock_now_ns())
		*until_ns = m->js.pause_ns;
	if (l->partial || l->full)
		*until_ns = clock_now_ns() + TLS_WAIT_NS;
	fds[1] = (struct pollfd){
		.fd = atomic_load(&l->fd),
		.events = (short)((reads ? POLLIN : 0) | (writes ? POLLOUT : 0)),
	};
	return 2;
}
