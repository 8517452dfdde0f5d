/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing TCP: one message to all connections. What a peer does not take at once
 * waits in a buffer of its connection; when that is full the writer waits, or
 * drops whole messages. A message is begun only when all of it has room, so no
 * peer ever gets a part of one.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/stream.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "util/clock.h"
#include "util/log.h"

#define MESSAGE_FIRST (64u << 10)
/* How long a write waits for the first connection. */
#define FIRST_NS NSEC_PER_SEC

static void dead(struct stream *st, struct stream_connection *c, int err)
{
	c->tx_dead = true;
	c->tx.start = c->tx.end = 0;
	/* Who reads it delivers what has come before, and then breaks it. */
	if (!st->read)
		stream_break(st, c, err == EPIPE ? "it has closed the connection" :
						   strerror(err));
}

/* As much as the kernel takes now; the number of bytes. */
static size_t send_some(struct stream *st, struct stream_connection *c,
			const char *buf, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = send(c->fd, buf + done, len - done,
				 MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n > 0) {
			done += (size_t)n;
			c->stuck = false;
		} else if (n < 0 && errno != EINTR) {
			if (errno != EAGAIN)
				dead(st, c, errno);
			break;
		}
	}
	return done;
}

bool stream_flush(struct stream *st, struct stream_connection *c)
{
	struct stream_buffer *b = &c->tx;

	b->start += send_some(st, c, b->at + b->start, stream_buffer_filled(b));
	if (c->tx_dead || b->start >= b->end)
		b->start = b->end = 0;
	return b->end == 0;
}

static size_t room(const struct stream_connection *c)
{
	return c->tx.size - stream_buffer_filled(&c->tx);
}

/* The connecting thread sends the rest when there is room. */
static void watch(struct stream *st, struct stream_connection *c)
{
	struct epoll_event e = {
		.events = EPOLLOUT | (st->read ? EPOLLONESHOT : EPOLLIN),
		.data.u64 = stream_event_data(st, c),
	};

	if (c->watched)
		return;
	c->watched = true;
	epoll_ctl(st->epoll_fd, EPOLL_CTL_MOD, c->fd, &e);
}

/*
 * Waits until `len` bytes have room, without the lock in between. False when the
 * connection has gone or the wait was given up.
 */
static bool wait_for_room(struct stream *st, struct stream_connection *c,
			  size_t len)
{
	struct socket_node *s = st->node;
	unsigned asked = atomic_load(&s->write_interrupts);
	unsigned generation = c->generation;
	uint64_t since_ns = clock_now_ns();

	while (!stream_flush(st, c) && room(c) < len) {
		struct pollfd p = { .fd = c->fd, .events = POLLOUT };

		if (s->out.full == FULL_DROP || c->stuck)
			return false;
		if (clock_now_ns() - since_ns > SOCKET_STUCK_NS ||
		    atomic_load(&s->write_interrupts) - asked >= SOCKET_INTERRUPTS) {
			c->stuck = true; /* until it takes something again */
			return false;
		}
		pthread_mutex_unlock(&st->tx_lock);
		poll(&p, 1, SOCKET_BLOCK_MS);
		pthread_mutex_lock(&st->tx_lock);
		if (c->fd < 0 || c->generation != generation || c->tx_dead)
			return false;
	}
	return !c->tx_dead;
}

/* One whole message, or nothing of it. */
static bool send_to(struct stream *st, struct stream_connection *c,
		    const char *buf, size_t len)
{
	struct stream_buffer *b = &c->tx;
	char text[SOCKET_ADDRESS_MAX];
	size_t done = 0;

	if (room(c) < len && !wait_for_room(st, c, len)) {
		if (c->fd >= 0 && !c->tx_dead)
			fault_note(&st->node->faults, FAULT_DROPPED, 1, "%s",
				   socket_address_print(&c->peer, text));
		return false;
	}
	if (b->start == b->end)
		done = send_some(st, c, buf, len);
	if (unlikely(c->tx_dead))
		return false;
	if (likely(done == len))
		return true;
	if (b->size - b->end < len - done)
		stream_buffer_compact(b);
	memcpy(b->at + b->end, buf + done, len - done);
	b->end += len - done;
	watch(st, c);
	return true;
}

/* True when at least one peer gets it; else *slow says whether there is one that has
 * no room for it. */
static bool send_to_all(struct stream *st, const char *buf, size_t len, bool *slow)
{
	bool any = false;

	*slow = false;

	pthread_mutex_lock(&st->tx_lock);
	for (unsigned i = 0; i < st->place_count; i++) {
		struct stream_connection *c = &st->places[i];

		if (c->fd >= 0 && !c->tx_dead && !atomic_load(&c->broken)) {
			any |= send_to(st, c, buf, len);
			*slow |= c->fd >= 0 && !c->tx_dead &&
				 !atomic_load(&c->broken);
		}
	}
	pthread_mutex_unlock(&st->tx_lock);
	return any;
}

void stream_send_delayed(void *node, char *buf, size_t len)
{
	struct socket_node *s = node;

	bool slow;

	send_to_all(s->stream, buf, len, &slow);
}

/* The first samples are not lost because the connection is being made. */
static bool wait_for_first(struct stream *st)
{
	struct socket_node *s = st->node;
	unsigned asked = atomic_load(&s->write_interrupts);
	uint64_t end_ns = clock_now_ns() + FIRST_NS;
	const struct timespec pause = { .tv_nsec = 200 * 1000 };

	while (!st->server && s->out.full == FULL_BLOCK &&
	       !atomic_load(&st->tried) && clock_now_ns() < end_ns &&
	       atomic_load(&s->write_interrupts) - asked < SOCKET_INTERRUPTS)
		nanosleep(&pause, NULL);
	return atomic_load(&st->connected) > 0;
}

/* Room for larger messages; false when there may be none. */
static bool grow(struct stream *st)
{
	size_t size = st->message_size ? 2 * st->message_size : MESSAGE_FIRST;
	char *larger;

	size = MIN(size, st->places[0].tx.size);
	if (size == st->message_size)
		return false;
	larger = realloc(st->message, size);
	if (!larger)
		return false;
	st->message = larger;
	st->message_size = size;
	return true;
}

static void put_length(char *at, size_t len)
{
	at[0] = (char)(len >> 24);
	at[1] = (char)(len >> 16);
	at[2] = (char)(len >> 8);
	at[3] = (char)len;
}

/* The format refused a sample, or it is longer than any message. */
static void note_unwritten(struct socket_node *s, struct sample *smp, int ret)
{
	const struct format *f = s->writer;

	if (ret < 0)
		node_refuse(s->node, NODE_LOSS_FORMAT, 1, "format %s: %s",
			    f->type->name,
			    *format_error(f) ? format_error(f) : strerror(-ret));
	else
		node_refuse(s->node, NODE_LOSS_TOO_LONG, 1,
			    "a sample of %u values is %zu bytes, out.buffer_size is %zu",
			    smp->length, socket_sample_size(s->writer, smp),
			    s->stream->places[0].tx.size);
}

/* No peer got them. A server does without clients that are too slow; the one peer
 * of a client is waited for, unless `full` says otherwise. */
static void note_undelivered(struct socket_node *s, bool slow, unsigned count)
{
	if (!slow)
		node_refuse(s->node, NODE_LOSS_ABSENT, count, "%s",
			    "no peer is connected");
	else
		node_refuse(s->node,
			    s->stream->server || s->out.full == FULL_DROP ?
				    NODE_LOSS_FULL : NODE_LOSS_STUCK,
			    count, "%s", "no peer takes as much");
}

int stream_write(struct socket_node *s, struct sample *smps[], unsigned cnt)
{
	struct stream *st = s->stream;
	struct format *f = s->writer;
	size_t head = st->framed ? FRAME_HEADER : 0;
	unsigned done = 0, sent = 0;
	bool slow;

	if (unlikely(!atomic_load(&st->connected)) && !wait_for_first(st)) {
		note_undelivered(s, false, cnt);
		return 0;
	}
	if (unlikely(!st->message) && !grow(st))
		return -ENOMEM;
	while (done < cnt) {
		size_t used = 0;
		int n = f->type->print(f, st->message + head,
				       st->message_size - head, &used,
				       smps + done, s->out.pack ? cnt - done : 1);

		if (unlikely(n <= 0)) {
			if (!n && grow(st))
				continue;
			note_unwritten(s, smps[done], n);
			done++;
			continue;
		}
		if (head)
			put_length(st->message, used);
		if (unlikely(s->netem != NULL)) {
			netem_put(s->netem, st->message, used + head);
			sent += (unsigned)n;
		} else if (send_to_all(st, st->message, used + head, &slow)) {
			sent += (unsigned)n;
		} else {
			note_undelivered(s, slow, (unsigned)n);
		}
		done += (unsigned)n;
	}
	return (int)sent;
}
