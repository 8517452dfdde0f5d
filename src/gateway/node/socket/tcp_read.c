/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading TCP: from all connections in turn, each with a buffer and a format of
 * its own. Nothing of a connection is lost when its peer closes it.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#include "gateway/part/message.h"
#include "util/clock.h"
#include "util/log.h"

/* Of a stream of frames. */
static unsigned scan_framed(struct tcp *st, struct tcp_connection *c,
			    struct sample *smps[], unsigned cnt)
{
	struct stream_buffer *b = &c->rx.b;
	unsigned n = 0;

	while (n < cnt) {
		struct message m = { .received = c->rx.received };
		size_t filled = stream_buffer_filled(b);
		uint32_t len = filled >= FRAME_HEADER ? tcp_frame_get(b->at + b->start) : 0;

		if (len > b->size - FRAME_HEADER) {
			fault_note(&st->node->ends.faults, FAULT_MALFORMED, 1,
				   "a frame of %u bytes; in.buffer_size allows %zu",
				   len, b->size - FRAME_HEADER);
			/* The start of the next message is unknown. */
			b->start = b->end = 0;
			c->rx.pending = false;
			tcp_break(st, c, "it sends no frames");
			return n;
		}
		if (filled < FRAME_HEADER || filled - FRAME_HEADER < len) {
			c->rx.pending = false;
			stream_input_drop_rest(&c->rx, &st->node->ends.faults);
			return n;
		}
		m.at = b->at + b->start + FRAME_HEADER;
		m.len = len;
		/* The samples of one frame may be more than are asked for. */
		n += message_scan(&m, c->reader, smps + n, cnt - n,
				  &st->node->ends.faults);
		if (m.pos < m.len) {
			/* A shorter frame takes its place. */
			b->start += m.pos;
			tcp_frame_put(b->at + b->start, m.len - m.pos);
			return n;
		}
		b->start += FRAME_HEADER + len;
	}
	return n;
}

static unsigned take_samples(struct tcp *st, struct sample *smps[],
			     unsigned cnt)
{
	unsigned n = 0;

	for (unsigned i = 0; i < st->table.max && n < cnt; i++) {
		struct tcp_connection *c = &st->places[st->next];
		unsigned got = 0;

		if (++st->next == st->table.max)
			st->next = 0;
		if (c->base.stream.fd < 0)
			continue;
		if (c->rx.pending && !atomic_load(&c->broken)) {
			got = st->framed ?
				scan_framed(st, c, smps + n, cnt - n) :
				stream_input_scan(&c->rx, c->reader, smps + n, cnt - n,
						  &st->node->ends.faults);
			n += got;
			if (got) {
				c->base.heard = true;
				c->base.heard_ns = clock_now_ns();
			}
		}
		if (c->rx.at_end && !c->rx.pending)
			tcp_break(st, c, c->end_why);
	}
	return n;
}

/* The peer sends no more. take_samples() breaks the connection after the last sample. */
static void at_end(struct tcp *st, struct tcp_connection *c, const char *why)
{
	c->end_why = why;
	epoll_ctl(st->node->ends.fd, EPOLL_CTL_DEL, c->base.stream.fd, NULL);
	stream_input_end(&c->rx, st->framed ? NULL : c->reader);
}

/* True when there is something new. */
static bool receive(struct tcp *st, struct tcp_connection *c)
{
	size_t room;
	ssize_t n;

	if (c->rx.at_end || atomic_load(&c->broken))
		return false;
	room = stream_input_room(&c->rx);
	if (!room)
		return false; /* pending: it is scanned first */
	n = stream_recv(&c->base.stream, c->rx.b.at + c->rx.b.end, room);
	if (n == -EAGAIN)
		return false;
	if (n > 0)
		stream_input_add(&c->rx, c->reader, (size_t)n);
	else
		at_end(st, c, n ? strerrordesc_np((int)-n) : TCP_CLOSED);
	return true;
}

/* Without sleeping; true when anything has come. */
static bool receive_all(struct tcp *st)
{
	bool any = false;

	for (unsigned i = 0; i < st->table.max; i++)
		if (st->places[i].base.stream.fd >= 0)
			any |= receive(st, &st->places[i]);
	return any;
}

/* Sleeps; then takes what has come. */
static unsigned wait_and_take(struct tcp *st, int timeout_ms, struct sample *smps[], unsigned cnt)
{
	struct epoll_event events[TCP_EVENTS];
	int n = epoll_wait(st->node->ends.fd, events, TCP_EVENTS, timeout_ms);
	unsigned got;

	pthread_mutex_lock(&st->rx_lock);
	for (int i = 0; i < n; i++) {
		struct tcp_connection *c = tcp_event_place(st, events[i].data.u64);

		if (c)
			receive(st, c);
		else if (events[i].data.u64 == EVENT_WAKE)
			socket_wait_clear(&st->node->ends.wait);
	}
	got = take_samples(st, smps, cnt);
	pthread_mutex_unlock(&st->rx_lock);
	return got;
}

static unsigned take_locked(struct tcp *st, struct sample *smps[],
			    unsigned cnt)
{
	unsigned n;

	pthread_mutex_lock(&st->rx_lock);
	n = take_samples(st, smps, cnt);
	pthread_mutex_unlock(&st->rx_lock);
	return n;
}

static bool anything_pending(struct tcp *st)
{
	bool pending = false;

	pthread_mutex_lock(&st->rx_lock);
	for (unsigned i = 0; i < st->table.max; i++)
		pending |= st->places[i].base.stream.fd >= 0 && st->places[i].rx.pending;
	pthread_mutex_unlock(&st->rx_lock);
	return pending;
}

static int read_polled(struct tcp *st, struct sample *smps[], unsigned cnt)
{
	unsigned n = take_locked(st, smps, cnt);

	if (!n)
		n = wait_and_take(st, 0, smps, cnt);
	/* Not seen at the sockets any more. */
	if (anything_pending(st))
		socket_wait_kick(&st->node->ends.wait);
	return (int)n;
}

int tcp_read(struct socket_node *s, struct sample *smps[], unsigned cnt)
{
	struct tcp *st = s->tcp;
	struct socket_idle idle = { 0 };

	if (atomic_load_explicit(&s->ends.wait.polled, memory_order_relaxed))
		return read_polled(st, smps, cnt);
	for (;;) {
		unsigned n = take_locked(st, smps, cnt);

		if (n)
			return (int)n;
		if (socket_wait_interrupted(&s->ends.wait))
			return -EINTR;
		if (s->ends.wait.polling != POLLING_EVENT) {
			pthread_mutex_lock(&st->rx_lock);
			if (receive_all(st))
				idle = (struct socket_idle){ 0 };
			n = take_samples(st, smps, cnt);
			pthread_mutex_unlock(&st->rx_lock);
			if (n)
				return (int)n;
			if (socket_wait_spin(&s->ends.wait, &idle))
				continue;
		}
		n = wait_and_take(st, -1, smps, cnt);
		if (n)
			return (int)n;
	}
}
