/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writing TCP: one message to all connections. What a peer does not take at once
 * waits in a buffer of its connection; when that is full the writer waits, or
 * drops whole messages. A message is begun only when all of it has room, so no
 * peer ever gets a part of one.
 *
 * With `full = "block"` the writer waits for a slow peer only while all others still
 * have something to take, and for PATIENCE_NS beyond that: then the slow one misses
 * messages, and after out.slow_timeout a server parts with it.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>

#include "gateway/part/message.h"
#include "util/clock.h"
#include "util/log.h"

/* How long a peer that takes too little may delay the others before it has caught up. */
#define PATIENCE_NS (100 * MS)
#define NEVER_NS UINT64_MAX
/* How long a write waits for the first connection. */
#define FIRST_NS NSEC_PER_SEC

static void dead(struct tcp *st, struct tcp_connection *c, int err)
{
	c->tx_dead = true;
	c->base.stream.out.start = c->base.stream.out.end = 0;
	/* The reader delivers data from before, and then closes the connection. */
	if (!st->read)
		tcp_break(st, c, err == EPIPE ? TCP_CLOSED : strerrordesc_np(err));
}

bool tcp_flush(struct tcp *st, struct tcp_connection *c)
{
	struct stream_buffer *b = &c->base.stream.out;
	int ret = c->tx_dead ? 0 : stream_flush(&c->base.stream, NULL);

	if (ret)
		dead(st, c, -ret);
	if (stream_buffer_filled(b) <= (size_t)st->node->ends.out.buffer_size / 2)
		c->missing_since_ns = c->patience_ns = 0; /* it has caught up */
	return b->start == b->end;
}

static size_t room(const struct tcp *st, const struct tcp_connection *c)
{
	return (size_t)st->node->ends.out.buffer_size - stream_buffer_filled(&c->base.stream.out);
}

void tcp_watch(struct tcp *st, const struct tcp_connection *c)
{
	struct epoll_event e = {
		.events = (c->watched ? EPOLLOUT : 0) | (st->read ? EPOLLONESHOT : EPOLLIN),
		.data.u64 = tcp_event_data(st, c),
	};

	epoll_ctl(st->epoll_fd, EPOLL_CTL_MOD, c->base.stream.fd, &e);
}

static bool is_open(const struct tcp_connection *c)
{
	return c->base.stream.fd >= 0 && !c->tx_dead && !atomic_load(&c->broken);
}

static uint64_t slow_timeout_ns(const struct tcp *st)
{
	int64_t ms = st->node->out.slow_timeout_ms;

	return ms ? (uint64_t)ms * MS : NEVER_NS;
}

/* Is it worth waiting until it has room for a message? */
static bool is_short(const struct tcp *st, const struct tcp_connection *c, size_t len)
{
	return is_open(c) && room(st, c) < len && !c->missing_since_ns;
}

/*
 * Collects in st->table.fds the connections that lack room and shall be waited for; returns
 * their number. `starved`: another one has nothing left to take, so it waits, too.
 */
static unsigned find_slow(struct tcp *st, size_t len, bool *starved)
{
	unsigned n = 0;

	*starved = false;
	for (unsigned i = 0; i < st->table.max; i++) {
		struct tcp_connection *c = &st->places[i];

		if (is_open(c) && room(st, c) < len)
			tcp_flush(st, c);
		if (is_open(c) && !stream_buffer_filled(&c->base.stream.out))
			*starved = true;
		else if (is_short(st, c, len))
			st->table.fds[n++] = (struct pollfd){ .fd = c->base.stream.fd,
							 .events = POLLOUT };
	}
	return n;
}

/*
 * After `step_ns` of waiting: charges each that still has no room for what it cost others,
 * and gives it up when that is too much, when the path is about to end (`ending`), or when
 * the time for one message is `over`. True when one was given up.
 */
static bool charge(struct tcp *st, size_t len, bool starved, uint64_t now, uint64_t step_ns,
		   bool ending, bool over)
{
	uint64_t timeout_ns = slow_timeout_ns(st);
	bool given_up = false;

	for (unsigned i = 0; i < st->table.max; i++) {
		struct tcp_connection *c = &st->places[i];

		if (!is_short(st, c, len))
			continue;
		if (starved)
			c->patience_ns += step_ns;
		if (over)
			c->missing_since_ns = now - timeout_ns;
		else if (ending || (timeout_ns != NEVER_NS && c->patience_ns > PATIENCE_NS))
			c->missing_since_ns = now;
		given_up |= c->missing_since_ns != 0;
	}
	return given_up;
}

/* Waits, without the lock, until all have room for `len` bytes or are given up. */
static void wait_for_room(struct tcp *st, size_t len)
{
	struct socket_ends *e = &st->node->ends;
	unsigned asked = atomic_load(&e->write_interrupts), n;
	uint64_t since_ns = clock_now_ns(), before_ns = since_ns;
	bool starved;

	while ((n = find_slow(st, len, &starved)) > 0) {
		uint64_t now = clock_now_ns(), step_ns = now - before_ns;
		bool over = now - since_ns > slow_timeout_ns(st);
		bool ending = atomic_load(&e->write_interrupts) - asked >= SOCKET_INTERRUPTS;

		before_ns = now;
		if (charge(st, len, starved, now, step_ns, ending, over))
			continue;
		pthread_mutex_unlock(&st->tx_lock);
		poll(st->table.fds, n, SOCKET_BLOCK_MS);
		pthread_mutex_lock(&st->tx_lock);
	}
}

/* A message that found no room. A server parts with a client that misses messages for too
 * long; a client has one peer only and stays with it. */
static void note_missed(struct tcp *st, struct tcp_connection *c)
{
	const struct socket_config_out *out = &st->node->out;
	char text[SOCKET_ADDRESS_MAX];

	c->missed++;
	fault_note(&st->node->ends.faults, FAULT_DROPPED, 1, "%s",
		   socket_address_print(&c->base.peer, text));
	if (!st->server || out->full != FULL_BLOCK || !c->missing_since_ns ||
	    clock_now_ns() - c->missing_since_ns < slow_timeout_ns(st))
		return;
	snprintf(c->slow_why, sizeof(c->slow_why),
		 "it takes too little for %lld ms (out.slow_timeout), %ju messages were not sent to it",
		 (long long)out->slow_timeout_ms, (uintmax_t)c->missed);
	tcp_break(st, c, c->slow_why);
}

/* One whole message, or nothing of it. */
static bool send_to(struct tcp *st, struct tcp_connection *c, const char *buf, size_t len)
{
	struct stream_buffer *b = &c->base.stream.out;
	ssize_t n = 0;

	if (unlikely(room(st, c) < len))
		tcp_flush(st, c);
	/* Room for all of it, before a part of it is sent. */
	if (unlikely(room(st, c) < len || stream_buffer_reserve(b, len))) {
		note_missed(st, c);
		return false;
	}
	if (b->start == b->end)
		n = stream_send(&c->base.stream, buf, len);
	if (unlikely(n < 0 && n != -EAGAIN))
		dead(st, c, (int)-n);
	if (unlikely(c->tx_dead))
		return false;
	n = MAX(n, 0);
	if (likely((size_t)n == len))
		return true;
	/* The connecting thread sends the rest when there is room. */
	stream_buffer_put(b, buf + n, len - (size_t)n);
	if (!c->watched) {
		c->watched = true;
		tcp_watch(st, c);
	}
	return true;
}

/* True when at least one peer gets it; else *slow says whether there is one that has
 * no room for it. */
static bool send_to_all(struct tcp *st, const char *buf, size_t len, bool *slow)
{
	bool any = false, full = false;

	*slow = false;
	pthread_mutex_lock(&st->tx_lock);
	for (unsigned i = 0; i < st->table.max; i++)
		full |= is_open(&st->places[i]) && room(st, &st->places[i]) < len;
	if (unlikely(full) && st->node->out.full == FULL_BLOCK)
		wait_for_room(st, len);
	for (unsigned i = 0; i < st->table.max; i++) {
		struct tcp_connection *c = &st->places[i];

		if (is_open(c)) {
			any |= send_to(st, c, buf, len);
			*slow |= is_open(c);
		}
	}
	pthread_mutex_unlock(&st->tx_lock);
	return any;
}

void tcp_send_delayed(void *node, char *buf, size_t len)
{
	struct socket_node *s = node;
	bool slow;

	send_to_all(s->tcp, buf, len, &slow);
}

/* Waits until the connection is made, so that the first samples are not lost. */
static bool wait_for_first(struct tcp *st)
{
	struct socket_node *s = st->node;
	unsigned asked = atomic_load(&s->ends.write_interrupts);
	uint64_t end_ns = clock_now_ns() + FIRST_NS;
	const struct timespec pause = { .tv_nsec = 200 * 1000 };

	while (!st->server && s->out.full == FULL_BLOCK &&
	       !atomic_load(&st->tried) && clock_now_ns() < end_ns &&
	       atomic_load(&s->ends.write_interrupts) - asked < SOCKET_INTERRUPTS)
		nanosleep(&pause, NULL);
	return atomic_load(&st->table.count) > 0;
}

/* Samples that no peer got. A server drops samples for clients that are too slow; a client
 * waits for its peer unless `full` says to drop. */
static void note_undelivered(struct socket_node *s, bool slow, unsigned count)
{
	if (!slow)
		node_refuse(s->ends.node, NODE_LOSS_ABSENT, count, "%s",
			    "no peer is connected");
	else
		node_refuse(s->ends.node,
			    s->tcp->server || s->out.full == FULL_DROP ?
				    NODE_LOSS_FULL : NODE_LOSS_STUCK,
			    count, "%s", "no peer takes as much");
}

int tcp_write(struct socket_node *s, struct sample *smps[], unsigned cnt)
{
	struct tcp *st = s->tcp;
	struct format *f = s->ends.writer;
	size_t head = st->framed ? FRAME_HEADER : 0, size = (size_t)s->ends.out.buffer_size;
	unsigned done = 0, sent = 0;
	bool slow;

	if (unlikely(!atomic_load(&st->table.count)) && !wait_for_first(st)) {
		note_undelivered(s, false, cnt);
		return 0;
	}
	while (done < cnt) {
		size_t used = 0;
		int n = f->type->print(f, st->message + head, size - head, &used, smps + done,
				       s->out.pack ? cnt - done : 1);

		if (unlikely(n <= 0)) {
			message_refuse(s->ends.node, f, smps[done], n, 0, "out.buffer_size is",
				       size);
			done++;
			continue;
		}
		if (head)
			tcp_frame_put(st->message, used);
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
