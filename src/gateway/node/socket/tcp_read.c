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

static void stamp(const struct tcp_connection *c, struct sample *smps[], unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		smps[i]->received = c->received;
		smps[i]->flags |= SAMPLE_HAS_RECEIVED;
	}
}

/* Drops bytes that never become a whole sample: the buffer is full of them, or the peer sends
 * no more. */
static void drop_rest(struct tcp *st, struct tcp_connection *c)
{
	size_t filled = stream_buffer_filled(&c->rx);

	if (!filled || (!c->at_end && filled < c->rx.size))
		return;
	fault_note(&st->node->ends.faults, FAULT_MALFORMED, 1, "%zu bytes %s", filled,
		   c->at_end ? "behind the last whole sample" :
			       "without the end of a sample");
	c->rx.start = c->rx.end = 0;
	c->waits_for_end = false;
}

/* Of a stream in which the format finds the end of each sample. */
static unsigned scan_plain(struct tcp *st, struct tcp_connection *c,
			   struct sample *smps[], unsigned cnt)
{
	struct format *f = c->reader;
	struct stream_buffer *b = &c->rx;
	unsigned n = 0;

	while (n < cnt && b->start < b->end) {
		size_t used = 0;
		int ret = f->type->scan(f, b->at + b->start, b->end - b->start,
					&used, smps + n, cnt - n);

		assert(used <= b->end - b->start);
		b->start += used;
		if (likely(used))
			c->waits_for_end = false;
		if (likely(ret > 0)) {
			n += (unsigned)ret;
			if (likely(used))
				continue;
		} else if (!ret) {
			c->pending = false;
			if (!c->waits_for_end)
				c->unfinished = (struct format_unfinished){ 0 };
			c->waits_for_end = true;
			drop_rest(st, c);
			return n;
		} else {
			fault_note(&st->node->ends.faults, FAULT_MALFORMED, 1, "%s",
				   format_error(f));
			if (used)
				continue;
		}
		b->start = b->end = 0;
		c->waits_for_end = false;
	}
	c->pending = b->start < b->end;
	return n;
}

/* Of a stream of frames. */
static unsigned scan_framed(struct tcp *st, struct tcp_connection *c,
			    struct sample *smps[], unsigned cnt)
{
	struct stream_buffer *b = &c->rx;
	unsigned n = 0;

	while (n < cnt) {
		struct message m = { .received = c->received };
		size_t filled = stream_buffer_filled(b);
		uint32_t len = filled >= FRAME_HEADER ? tcp_frame_get(b->at + b->start) : 0;

		if (len > b->size - FRAME_HEADER) {
			fault_note(&st->node->ends.faults, FAULT_MALFORMED, 1,
				   "a frame of %u bytes; in.buffer_size allows %zu",
				   len, b->size - FRAME_HEADER);
			/* The start of the next message is unknown. */
			b->start = b->end = 0;
			c->pending = false;
			tcp_break(st, c, "it sends no frames");
			return n;
		}
		if (filled < FRAME_HEADER || filled - FRAME_HEADER < len) {
			c->pending = false;
			drop_rest(st, c);
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

	for (unsigned i = 0; i < st->place_count && n < cnt; i++) {
		struct tcp_connection *c = &st->places[st->next];
		unsigned got = 0;

		if (++st->next == st->place_count)
			st->next = 0;
		if (c->socket.fd < 0)
			continue;
		if (c->pending && !atomic_load(&c->broken)) {
			got = st->framed ?
				scan_framed(st, c, smps + n, cnt - n) :
				scan_plain(st, c, smps + n, cnt - n);
			stamp(c, smps + n, got);
			n += got;
			if (got) {
				c->heard = true;
				c->heard_ns = clock_now_ns();
			}
		}
		if (c->at_end && !c->pending)
			tcp_break(st, c, c->end_why);
	}
	return n;
}

/* The peer sends no more. take_samples() breaks the connection after the last sample. */
static void at_end(struct tcp *st, struct tcp_connection *c, const char *why)
{
	struct stream_buffer *b = &c->rx;

	c->at_end = true;
	c->end_why = why;
	epoll_ctl(st->node->ends.fd, EPOLL_CTL_DEL, c->socket.fd, NULL);
	c->pending = b->start < b->end;
	/* A last line may come without its end. */
	if (c->pending && !st->framed && c->reader->type->lines &&
	    !c->reader->binary && b->at[b->end - 1] != c->reader->delimiter)
		b->at[b->end++] = c->reader->delimiter;
}

/*
 * Is it worth scanning what has come? Scanning an unfinished sample with each of its pieces
 * would take time that grows with the square of its length. A full buffer is scanned, so that
 * it is dropped.
 */
static bool worth_scanning(struct tcp_connection *c)
{
	struct stream_buffer *b = &c->rx;

	return !c->waits_for_end || b->end == b->size ||
	       format_may_end(c->reader, b->at + b->start,
			      stream_buffer_filled(b), &c->unfinished);
}

/* True when there is something new. */
static bool receive(struct tcp *st, struct tcp_connection *c)
{
	struct stream_buffer *b = &c->rx;
	ssize_t n;

	if (c->at_end || atomic_load(&c->broken))
		return false;
	if (b->start == b->end)
		b->start = b->end = 0;
	else if (b->end == b->size)
		stream_buffer_compact(b);
	if (b->end == b->size)
		return false; /* pending: it is scanned first */
	n = stream_recv(&c->socket, b->at + b->end, b->size - b->end);
	if (n == -EAGAIN)
		return false;
	if (n > 0) {
		b->end += (size_t)n;
		c->received = clock_realtime();
		c->pending = worth_scanning(c);
	} else {
		at_end(st, c, n ? strerrordesc_np((int)-n) : TCP_CLOSED);
	}
	return true;
}

/* Without sleeping; true when anything has come. */
static bool receive_all(struct tcp *st)
{
	bool any = false;

	for (unsigned i = 0; i < st->place_count; i++)
		if (st->places[i].socket.fd >= 0)
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
	for (unsigned i = 0; i < st->place_count; i++)
		pending |= st->places[i].socket.fd >= 0 && st->places[i].pending;
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
