/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and receives messages while a connection lasts. */
#define LOG_ROOM "gateway/nats"
#include "gateway/node/nats/nats.h"

#include <errno.h>

#include "util/clock.h"

/* ---- sending ---- */

static int publish(struct nats_node *m, const struct outbox_message *msg)
{
	int ret = 0;

	if (m->js.enabled)
		return nats_jetstream_publish(m, msg);
	for (unsigned i = 0; i < m->pub_count && !ret; i++)
		ret = nats_publish(m, m->pub[i], NULL, NULL, msg->data, msg->len);
	return ret;
}

/* After a message was written: asks the server, now or soon, whether it has the message. */
static int ask(struct nats_node *m)
{
	if (m->js.enabled || m->ping_count)
		return 0;
	if (clock_now_ns() >= m->asked_ns + NATS_ASK_NS)
		return nats_ping(m);
	if (!m->outside.unconfirmed.messages)
		outside_wake(&m->outside);
	return 0;
}

int nats_send(struct outside *o, struct outbox_message *msg)
{
	struct nats_node *m = nats_of(o);
	uint64_t more = m->js.enabled ? NATS_JETSTREAM_HEAD_MAX : 0;
	int ret;

	if (stream_buffer_filled(&m->stream.out))
		return -EAGAIN;
	if (unlikely(m->js.pause_ns && clock_now_ns() < m->js.pause_ns))
		return -EAGAIN;
	if (msg->len + more > MIN(m->max_payload, (uint64_t)NATS_MESSAGE_MAX))
		return outside_fail(o, -EMSGSIZE, "a message of %zu bytes, the server takes %llu",
				    msg->len, (unsigned long long)m->max_payload);
	/* A message that is sent again keeps its tag, by which a stream knows it. */
	if (!m->js.enabled || !msg->tag)
		msg->tag = outside_new_tag(o);
	ret = publish(m, msg) ?: ask(m) ?: outside_stream_flush(o, &m->stream);
	if (ret)
		return ret;
	if (unlikely(stream_buffer_filled(&m->stream.out)))
		outside_wake(o);
	return OUTSIDE_UNCONFIRMED;
}

/* ---- receiving ---- */

int nats_message(struct nats_node *m, const struct nats_frame *f)
{
	if (f->op != NATS_MSG)
		return nats_take(m, f);
	if (m->js.enabled)
		return nats_jetstream_message(m, f);
	nats_received(m, f);
	return 0;
}

static int take_next(struct outside *o)
{
	struct nats_node *m = nats_of(o);
	struct nats_frame f;
	int ret = nats_next(m, &f);

	return ret <= 0 ? ret : nats_message(m, &f) ?: 1;
}

/* ---- the turn ---- */

int nats_turn(struct outside *o)
{
	struct nats_node *m = nats_of(o);

	return outside_stream_flush(o, &m->stream) ?:
	       outside_stream_read(o, &m->stream, &m->in, take_next) ?:
	       (m->js.enabled ? nats_jetstream_turn(m) : 0) ?: nats_keep(m) ?:
	       outside_stream_flush(o, &m->stream);
}

unsigned nats_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct nats_node *m = nats_of(o);

	*until_ns = nats_due_ns(m);
	if (m->js.pause_ns > clock_now_ns())
		*until_ns = MIN(*until_ns, m->js.pause_ns);
	return outside_stream_wait(&m->stream, &m->in, fds, until_ns);
}
