/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of TCP: their memory, start and end; see tcp.h. */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/tcp.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gateway/base/thread.h"
#include "util/log.h"

/* How long the end waits for all peers together ... */
#define END_NS NSEC_PER_SEC
/* ... and for a peer to end its side after it has got all. */
#define LINGER_NS (500 * MS)

bool tcp_delimits(const struct format_type *type)
{
	return type->carries.traits & FORMAT_SELF_DELIMITING;
}

static bool framed(const struct socket_node *s)
{
	const struct format *f = s->ends.reader ? s->ends.reader : s->ends.writer;

	if (s->framing != FRAMING_AUTO)
		return s->framing == FRAMING_LENGTH;
	return !tcp_delimits(f->type);
}

static int make_places(struct tcp *st)
{
	struct socket_node *s = st->node;
	unsigned max = st->server ? (unsigned)s->in.max_connections : 1;
	int ret;

	st->table = (struct stream_server){
		.node = s->ends.node,
		.faults = &s->ends.faults,
		.only = s->ends.verify_source ? &s->ends.remote : NULL,
		.peers_key = "in.verify_source",
		.max_key = "in.max_connections",
		.clients_figure = SOCKET_CONNECTIONS,
		.logs_full = true,
		/* Peers that are only written to need not send anything. */
		.give_way = st->read && s->in.idle_timeout_ms ? tcp_give_way : NULL,
		.idle_ns = (uint64_t)s->in.idle_timeout_ms * MS,
		.listener = -1,
	};
	ret = stream_server_init(&st->table, max, sizeof(*st->places));
	st->places = st->table.clients;
	/* Memory that is never used costs nothing. */
	st->message = malloc((size_t)s->ends.out.buffer_size);
	if (ret || !st->message)
		return -ENOMEM;
	for (unsigned i = 0; i < st->table.max; i++) {
		struct tcp_connection *c = &st->places[i];

		c->rx.b.size = (size_t)s->ends.in.buffer_size;
		c->rx.b.at = malloc(c->rx.b.size + 1);
		if (!c->rx.b.at)
			return -ENOMEM;
		if (!s->ends.reader)
			continue;
		/* Each peer's bytes are a stream of their own. */
		ret = socket_ends_new_reader(&s->ends, &c->reader);
		if (ret)
			return ret;
		c->reader->message = st->framed;
	}
	return 0;
}

static int open_descriptors(struct tcp *st)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u64 = EVENT_WAKE };
	struct socket_ends *ends = &st->node->ends;

	ends->fd = epoll_create1(EPOLL_CLOEXEC);
	st->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	st->wake_fd = wakeup_open_signal();
	if (ends->fd < 0 || st->epoll_fd < 0 || st->wake_fd < 0 ||
	    epoll_ctl(ends->fd, EPOLL_CTL_ADD, ends->wait.wake_fd, &e) ||
	    epoll_ctl(st->epoll_fd, EPOLL_CTL_ADD, st->wake_fd, &e))
		return -errno;
	return 0;
}

int tcp_start(struct socket_node *s)
{
	struct tcp *st = calloc(1, sizeof(*st));
	int ret;

	if (!st)
		return -ENOMEM;
	s->tcp = st;
	st->node = s;
	st->server = s->ends.layer == LAYER_TCP_SERVER;
	st->framed = framed(s);
	st->read = s->ends.node->is_source;
	st->epoll_fd = st->wake_fd = -1;
	pthread_mutex_init(&st->rx_lock, NULL);
	pthread_mutex_init(&st->tx_lock, NULL);
	if (s->ends.writer)
		s->ends.writer->message = st->framed;
	ret = make_places(st);
	if (!ret)
		ret = open_descriptors(st);
	if (!ret && st->server)
		ret = tcp_listen(st);
	if (!ret && s->ends.writer && s->out.netem.enabled) {
		s->out.netem.keep_order = true;
		s->out.netem.spare = st->framed ? FRAME_HEADER : 0;
		ret = netem_open(&s->netem, &s->out.netem, tcp_send_delayed, s);
	}
	if (!ret)
		ret = thread_start(&st->thread, "socket-stream", THREAD_AS_CALLER, tcp_run, st);
	st->has_thread = !ret;
	return ret;
}

/* One round of the end of a connection: the events to wait for, 0 when it is over. */
static short end_events(struct tcp *st, struct tcp_connection *c, uint64_t now)
{
	const char *why;
	bool heard_end = !tcp_discard(c, &why);

	if (!c->said_end_ns && (c->tx_dead || tcp_flush(st, c))) {
		stream_shut(&c->base.stream);
		c->said_end_ns = now;
	}
	if (!c->said_end_ns)
		return heard_end ? POLLOUT : POLLIN | POLLOUT;
	return heard_end || now - c->said_end_ns > LINGER_NS ? 0 : POLLIN;
}

/*
 * Sends what waits. Then ends the own side of each connection and waits for the peer to end
 * its side: to close a socket with unread data would destroy what is still on its way to the
 * peer.
 */
static void say_end(struct tcp *st)
{
	uint64_t end_ns = clock_now_ns() + END_NS, now;
	char text[SOCKET_ADDRESS_MAX];
	nfds_t count;

	do {
		count = 0;
		now = clock_now_ns();
		for (unsigned i = 0; i < st->table.max; i++) {
			struct tcp_connection *c = &st->places[i];
			short events = c->base.stream.fd < 0 ? 0 : end_events(st, c, now);

			if (events)
				st->table.fds[count++] = (struct pollfd){
					.fd = c->base.stream.fd, .events = events };
		}
		if (count)
			poll(st->table.fds, count, SOCKET_BLOCK_MS);
	} while (count && now < end_ns);
	for (unsigned i = 0; i < st->table.max; i++) {
		struct tcp_connection *c = &st->places[i];

		if (c->base.stream.fd >= 0 && !c->said_end_ns)
			log_warn("%s: %zu bytes to %s are lost: it did not take them within a second of the end",
				 st->node->ends.node->name,
				 stream_buffer_filled(&c->base.stream.out),
				 socket_address_print(&c->base.peer, text));
	}
}

void tcp_stop(struct socket_node *s)
{
	struct tcp *st = s->tcp;

	if (!st)
		return;
	netem_close(s->netem, s->ends.node->name);
	s->netem = NULL;
	atomic_store(&st->stop, true);
	if (st->has_thread) {
		wakeup_post(st->wake_fd);
		pthread_join(st->thread, NULL);
		say_end(st);
	}
	for (unsigned i = 0; i < st->table.max; i++) {
		struct tcp_connection *c = &st->places[i];

		stream_close(&c->base.stream);
		format_destroy(c->reader);
		free(c->rx.b.at);
	}
	node_figure_set(s->ends.node, SOCKET_CONNECTIONS, 0);
	for (unsigned i = 0; i < 2; i++) {
		const int fds[] = { st->epoll_fd, st->wake_fd };

		if (fds[i] >= 0)
			close(fds[i]);
	}
	pthread_mutex_destroy(&st->rx_lock);
	pthread_mutex_destroy(&st->tx_lock);
	stream_server_free(&st->table);
	free(st->message);
	free(st);
	s->tcp = NULL;
}
