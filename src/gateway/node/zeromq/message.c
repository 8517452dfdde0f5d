/* SPDX-License-Identifier: BSD-2-Clause */
/* The messages of the node, and what is due for its sockets. */
#define LOG_ROOM "gateway/zeromq"
#include "gateway/node/zeromq/zeromq.h"

#include <errno.h>
#include <string.h>

#include "util/clock.h"

/* Messages that are taken before others have their turn. */
#define READS_MAX 64
/* Subscriptions are taken so often while the node sends. Each time is a system call, and zmq_send()
 * itself looks for the end of a subscription about once in a millisecond. */
#define LOOK_NS UINT64_C(200000)

static int send_frame(struct zeromq_node *m, const char *data, size_t len, int flags)
{
	struct zeromq_side *d = &m->out;

	if (zmq_send(d->socket, data, len, ZMQ_DONTWAIT | flags) >= 0)
		return 0;
	if (errno == EAGAIN)
		return -EAGAIN;
	d->broken = true;
	return zeromq_fail(m, "sending");
}

#ifdef ZMQ_BUILD_DRAFT_API
static int send_radio(struct zeromq_node *m, const struct outbox_message *msg)
{
	zmq_msg_t frame;
	int ret = 0;

	if (zmq_msg_init_size(&frame, msg->len))
		return -ENOMEM;
	memcpy(zmq_msg_data(&frame), msg->data, msg->len);
	if (zmq_msg_set_group(&frame, m->out.filter ? m->out.filter : "") ||
	    zmq_msg_send(&frame, m->out.socket, ZMQ_DONTWAIT) < 0)
		ret = errno == EAGAIN ? -EAGAIN : zeromq_fail(m, "sending");
	if (ret)
		zmq_msg_close(&frame);
	return ret;
}
#endif

static bool is_look_due(const struct zeromq_side *d)
{
	return clock_now_ns() - d->looked_ns > LOOK_NS;
}

int zeromq_send(struct outside *o, struct outbox_message *msg)
{
	struct zeromq_node *m = zeromq_of(o);
	struct zeromq_side *d = &m->out;
	int ret = 0;

#ifdef ZMQ_BUILD_DRAFT_API
	if (m->pattern == ZEROMQ_RADIODISH)
		return zeromq_is_alive(m, d) ? send_radio(m, msg) : -EAGAIN;
#endif
	/* The library drops what nobody subscribes, so the last subscriptions come first. */
	if (is_look_due(d))
		ret = zeromq_subscriptions_take(m);
	if (!ret && !zeromq_is_alive(m, d)) {
		outside_wake(o);
		return -EAGAIN;
	}
	if (!ret && d->filter && !d->half) {
		ret = send_frame(m, d->filter, strlen(d->filter), ZMQ_SNDMORE);
		d->half = !ret;
	}
	if (!ret)
		ret = send_frame(m, msg->data, msg->len, 0);
	if (ret)
		return ret;
	d->half = false;
	return OUTSIDE_SENT;
}

/* The last frame is the message; one before it is the filter. */
static void take_message(struct zeromq_node *m, zmq_msg_t frames[], int count)
{
	bool has_filter = m->in.filter && m->pattern == ZEROMQ_PUBSUB;

	zeromq_peers_correct(&m->in);
	if (count > 2 || (has_filter && count != 2))
		fault_note(&m->outside.faults, FAULT_MALFORMED, 1,
			   "from %s: a message of %d frames, %s expected", m->outside.target, count,
			   has_filter ? "the filter and one more are" : "one or two are");
	else
		outside_received(&m->outside, zmq_msg_data(&frames[count - 1]),
				 zmq_msg_size(&frames[count - 1]));
}

static int take_messages(struct zeromq_node *m)
{
	zmq_msg_t frames[2];

	for (unsigned i = 0; i < READS_MAX && !outside_is_enough(&m->outside); i++) {
		int count = zeromq_frames_take(m->in.socket, frames, 2);

		if (count <= 0)
			return count;
		take_message(m, frames, count);
		zeromq_frames_close(frames, count, 2);
	}
	m->in.left = true;
	return 0;
}

/* ---- what is due ---- */

/* The descriptors of the sockets, for poll(). One becomes readable when something comes after a call
 * for its socket has found nothing. What such a call has left is told by zeromq_side.left. */
static unsigned list_descriptors(const struct zeromq_node *m, struct pollfd fds[OUTSIDE_FDS])
{
	const struct zeromq_side *const sides[] = { &m->in, &m->out };
	unsigned count = 0;

	for (int i = 0; i < 2; i++) {
		if (!sides[i]->socket)
			continue;
		fds[count++] = (struct pollfd){ .fd = sides[i]->fd, .events = POLLIN };
		fds[count++] = (struct pollfd){ .fd = sides[i]->monitor_fd, .events = POLLIN };
	}
	if (m->zap)
		fds[count++] = (struct pollfd){ .fd = m->zap_fd, .events = POLLIN };
	return count;
}

/* The state of the node is that of its main side. */
static int judge(struct zeromq_node *m)
{
	struct zeromq_side *d = zeromq_main_side(m);

	if (zeromq_is_used(m, &m->out) && zeromq_is_used(m, &m->in))
		outside_set_partial(&m->outside, !zeromq_is_alive(m, &m->in));
	if (zeromq_is_alive(m, d)) {
		if (!m->is_up)
			outside_is_up(&m->outside);
		m->is_up = true;
		return 0;
	}
	if (!d->bind && !d->peers && (m->is_up || zeromq_have_all_failed(d)))
		return outside_fail(&m->outside, -ECONNRESET, "%s",
				    *d->why ? d->why : "it has ended it");
	if (m->is_up)
		return outside_fail(&m->outside, -ECONNRESET, d == &m->out ?
				    "nobody subscribes any more" : "no publisher is left");
	return 0;
}

/* Is there something that the descriptors do not tell? */
static bool is_left(const struct zeromq_node *m)
{
	return m->in.left || m->out.left || (m->zap && m->zap_left);
}

/* Takes what has come to a side, whose two descriptors are fds[]. */
static int take_side(struct zeromq_node *m, struct zeromq_side *d, const struct pollfd fds[])
{
	bool left = d->left, is_ready = left || fds[0].revents;
	int ret = 0;

	d->left = false;
	if (d == &m->in && is_ready)
		ret = take_messages(m);
	else if (d == &m->out && m->pattern == ZEROMQ_PUBSUB && (is_ready || is_look_due(d)))
		ret = zeromq_subscriptions_take(m);
	d->broken = ret < 0;
	if (!ret && (left || fds[1].revents))
		zeromq_peers_take(m, d);
	return ret;
}

int zeromq_turn(struct outside *o)
{
	struct zeromq_node *m = zeromq_of(o);
	struct pollfd own[OUTSIDE_FDS];
	const struct pollfd *fds = o->polled, *in, *out, *zap;
	int ret = 0;

	if (!fds && m->has_waited && !is_left(m)) {
		/* A path that has read what came with the last wait waits again, or asks again. */
		m->has_waited = false;
		return 0;
	}
	m->has_waited = fds;
	if (!fds) {
		/* One system call, in place of one of each socket. */
		poll(own, list_descriptors(m, own), 0);
		fds = own;
	}
	in = fds;
	out = in + (m->in.socket ? 2 : 0);
	zap = out + (m->out.socket ? 2 : 0);
	if (m->zap && (m->zap_left || zap->revents))
		zeromq_zap_answer(m);
	if (m->out.socket)
		ret = take_side(m, &m->out, out);
	if (!ret && m->in.socket)
		ret = take_side(m, &m->in, in);
	if (ret)
		return outside_fail(o, ret, "%s", zmq_strerror(-ret));
	if (m->out.socket)
		zeromq_silence_say(m, &m->out);
	zeromq_peers_retry(&m->out);
	zeromq_peers_retry(&m->in);
	return judge(m);
}

unsigned zeromq_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct zeromq_node *m = zeromq_of(o);

	if (is_left(m))
		*until_ns = clock_now_ns();
	return list_descriptors(m, fds);
}
