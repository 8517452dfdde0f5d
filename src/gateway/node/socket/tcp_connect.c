/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connecting thread of a TCP node: it connects (again), accepts, closes what
 * broke, sends the rest of what a slow peer did not take at once, and takes away
 * what a peer sends when no path reads it.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/tcp.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "gateway/base/dial.h"
#include "util/log.h"

#define ATTEMPT_NS (5 * NSEC_PER_SEC)
/* So much is dropped from one peer before it is the next one's turn. */
#define DISCARD_BYTES (16 << 10)
/* How often the thread looks whether it can tell the node's state. */
#define STATE_MS 20

static const char *name_of(const struct tcp *st)
{
	return st->node->ends.node->name;
}

static void tell_state(struct tcp *st)
{
	node_tell_connected(st->node->ends.node, &st->told, st->table.count);
}

static int watch(int epoll_fd, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event e = { .events = events, .data.u64 = data };

	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static void hold(struct tcp *st)
{
	pthread_mutex_lock(&st->rx_lock);
	pthread_mutex_lock(&st->tx_lock);
}

static void release(struct tcp *st)
{
	pthread_mutex_unlock(&st->tx_lock);
	pthread_mutex_unlock(&st->rx_lock);
}

/* Under both locks. */
static void close_place(struct tcp *st, struct tcp_connection *c)
{
	/* A thread that looks at the socket in an epoll_wait() has a reference to it (Linux 6.9 and
	 * later). If that is the last one it is dropped when the thread leaves epoll_wait(), which
	 * may be never, and until then the peer sees no end. Behind this nobody has one. */
	if (st->read)
		epoll_ctl(st->node->ends.fd, EPOLL_CTL_DEL, c->base.stream.fd, NULL);
	/* A child between fork() and exec() has the descriptor, too: until exec(), close() alone
	 * would leave it in the set. */
	epoll_ctl(st->epoll_fd, EPOLL_CTL_DEL, c->base.stream.fd, NULL);
	stream_server_leave(&st->table, &c->base);
}

/* One that has never sent a sample comes first. */
void tcp_give_way(struct stream_server *table, struct stream_client *k)
{
	struct tcp *st = container_of(table, struct tcp, table);
	char text[SOCKET_ADDRESS_MAX];

	log_warn("%s: %s has to give its place to another peer: no sample %s for %ju ms (in.idle_timeout, in.max_connections)",
		 name_of(st), socket_address_print(&k->peer, text),
		 k->heard ? "has come from it" : "has ever come from it,",
		 (uintmax_t)((clock_now_ns() - k->heard_ns) / MS));
	close_place(st, container_of(k, struct tcp_connection, base));
}

/* The connection in its place is there. Under both locks. */
static void begin(struct tcp *st, struct tcp_connection *c)
{
	int fd = c->base.stream.fd;

	stream_server_watch_peer(fd, name_of(st));
	*c = (struct tcp_connection){
		.base = c->base,
		.reader = c->reader,
		.rx.b = { .at = c->rx.b.at, .size = c->rx.b.size },
	};
	if (c->reader && c->reader->type->reset)
		c->reader->type->reset(c->reader);
	if (st->read)
		watch(st->node->ends.fd, fd, EPOLLIN, tcp_event_data(st, c));
	/* A path that reads it notices its end. */
	watch(st->epoll_fd, fd, st->read ? EPOLLONESHOT : EPOLLIN, tcp_event_data(st, c));
	node_figure_add(st->node->ends.node, SOCKET_CONNECTED, 1);
}

/* A client has one place, for the connection that it has made. */
static void adopt(struct tcp *st, int fd, const struct socket_address *peer)
{
	struct tcp_connection *c = &st->places[0];

	hold(st);
	stream_init(&c->base.stream, fd);
	c->base.peer = *peer;
	stream_server_enter(&st->table, &c->base, clock_now_ns());
	begin(st, c);
	release(st);
}

static void schedule(struct tcp *st)
{
	backoff_plan(&st->retry, (uint64_t)st->node->out.reconnect_interval_ms * MS,
		     clock_now_ns());
}

/* Waits for the end of connect(), and tells the node's state meanwhile. 0 or a negative errno. */
static int wait_connected(struct tcp *st, int fd)
{
	struct dial_limit limit = { 0, &st->stop, st->wake_fd };
	uint64_t end_ns = clock_now_ns() + ATTEMPT_NS;
	int ret;

	do {
		tell_state(st);
		limit.until_ns = st->told ? end_ns : MIN(end_ns, clock_now_ns() + STATE_MS * MS);
		ret = dial_await(fd, &limit);
	} while (ret == -ETIMEDOUT && limit.until_ns < end_ns);
	return ret;
}

/* Binds the socket to in.address, if there is one. 0, or a negative errno with *why. */
static int bind_own(struct socket_ends *e, int fd, char *why)
{
	int one = 1, ret;

	if (!e->in.address)
		return 0;
	ret = socket_address_resolve(e->layer, e->in.address, e->remote.sa.sa_family, &e->local,
				     why);
	if (ret)
		return ret;
	if (!setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    !bind(fd, &e->local.sa, e->local.len))
		return 0;
	ret = -errno;
	snprintf(why, SOCKET_WHY_MAX, "in.address: %s", strerror(-ret));
	return ret;
}

/* Connects to the peer's address number `nth`; *count: how many it has. The socket, or a
 * negative errno with *why. */
static int connect_to(struct tcp *st, unsigned nth, unsigned *count, char *why)
{
	struct socket_node *s = st->node;
	struct socket_ends *e = &s->ends;
	int family = e->in.address ? socket_address_family(e->in.address) : AF_UNSPEC;
	int fd, ret = socket_address_resolve_nth(e->layer, e->out.address, family, nth, count,
						 &e->remote, why);

	if (ret)
		return ret;
	fd = socket(e->remote.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	ret = fd < 0 ? -errno : socket_set_mark(s, fd);
	if (ret)
		goto err_why;
	ret = bind_own(e, fd, why);
	if (ret)
		goto err_close;
	if (connect(fd, &e->remote.sa, e->remote.len))
		ret = errno == EINPROGRESS ? wait_connected(st, fd) : -errno;
	if (!ret && dial_is_own(fd))
		ret = -ECONNREFUSED;
	if (!ret)
		return fd;
err_why:
	snprintf(why, SOCKET_WHY_MAX, "%s", strerror(-ret));
err_close:
	if (fd >= 0)
		close(fd);
	return ret;
}

/* A server may listen at one of the addresses of its name only, so all are tried. Again each
 * time: the name may have moved. */
static void attempt(struct tcp *st)
{
	struct socket_node *s = st->node;
	char text[SOCKET_ADDRESS_MAX], why[SOCKET_WHY_MAX];
	int fd = -1;

	for (unsigned nth = 0, count = 1; nth < count && fd < 0; nth++) {
		fd = connect_to(st, nth, &count, why);
		if (atomic_load(&st->stop))
			break;
	}
	if (fd >= 0) {
		backoff_reset(&st->retry);
		st->said_unreachable = false;
		log_info("%s: connected to %s", name_of(st),
			 socket_address_print(&s->ends.remote, text));
		adopt(st, fd, &s->ends.remote);
	} else if (!atomic_load(&st->stop)) {
		node_figure_add(s->ends.node, SOCKET_UNREACHABLE, 1);
		schedule(st);
		if (!st->said_unreachable)
			log_info("%s: cannot reach %s: %s; trying again every %lld ms",
				 name_of(st), s->ends.out.address, why,
				 (long long)s->out.reconnect_interval_ms);
		st->said_unreachable = true;
	}
	atomic_store(&st->tried, true);
}

static int set_mark(void *node, int fd)
{
	return socket_set_mark(node, fd);
}

int tcp_listen(struct tcp *st)
{
	int ret = socket_ends_resolve(&st->node->ends);

	ret = ret ?: stream_server_listen(&st->table, &st->node->ends.local, "in.address", set_mark,
					  st->node);
	return ret ?: watch(st->epoll_fd, st->table.listener, EPOLLIN, EVENT_LISTENER);
}

static void accept_one(struct tcp *st)
{
	struct stream_client *k;

	hold(st);
	k = stream_server_accept(&st->table, clock_now_ns());
	if (k)
		begin(st, container_of(k, struct tcp_connection, base));
	release(st);
	stream_server_pause(&st->table);
}

static void clear_away(struct tcp *st)
{
	char text[SOCKET_ADDRESS_MAX];

	for (unsigned i = 0; i < st->table.max; i++) {
		struct tcp_connection *c = &st->places[i];
		const char *why = atomic_load(&c->broken);

		if (c->base.stream.fd < 0 || !why)
			continue;
		hold(st);
		close_place(st, c);
		release(st);
		LOG_AT(why == c->slow_why ? LOG_WARN : LOG_INFO, "%s: %s is gone: %s",
		       name_of(st), socket_address_print(&c->base.peer, text), why);
		if (!st->server)
			schedule(st);
	}
}

bool tcp_discard(struct tcp_connection *c, const char **why)
{
	char bytes[DISCARD_BYTES];
	ssize_t n = stream_recv(&c->base.stream, bytes, sizeof(bytes));

	if (n > 0 || n == -EAGAIN)
		return true;
	*why = n ? strerrordesc_np((int)-n) : TCP_CLOSED;
	return false;
}

static void place_event(struct tcp *st, const struct epoll_event *e)
{
	struct tcp_connection *c = tcp_event_place(st, e->data.u64);
	const char *why;

	if (!c)
		return;
	if (e->events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) {
		pthread_mutex_lock(&st->tx_lock);
		c->watched = !tcp_flush(st, c) && !c->tx_dead;
		if (c->watched || !st->read)
			tcp_watch(st, c);
		pthread_mutex_unlock(&st->tx_lock);
	}
	/* What no path reads is dropped, so that the peer can go on sending. */
	if (!st->read && e->events & (EPOLLIN | EPOLLHUP | EPOLLERR) && !tcp_discard(c, &why))
		tcp_break(st, c, why);
}

/* Milliseconds until something is due, -1: never. */
static int due_ms(const struct tcp *st)
{
	uint64_t now = clock_now_ns();

	/* The state cannot be told until the super-node has started the node. */
	if (!st->told)
		return STATE_MS;
	if (st->server || atomic_load(&st->table.count) || !st->retry.at_ns)
		return -1;
	return st->retry.at_ns > now ? (int)((st->retry.at_ns - now) / MS + 1) : 0;
}

void *tcp_run(void *tcp)
{
	struct tcp *st = tcp;
	struct epoll_event events[TCP_EVENTS];

	if (!st->server)
		attempt(st);
	while (!atomic_load(&st->stop)) {
		int n;

		/* Before the wait, which may be long: an attempt may have succeeded just now. */
		tell_state(st);
		n = epoll_wait(st->epoll_fd, events, TCP_EVENTS, due_ms(st));
		for (int i = 0; i < n; i++) {
			if (events[i].data.u64 == EVENT_WAKE)
				wakeup_drain(st->wake_fd);
			else if (events[i].data.u64 == EVENT_LISTENER)
				accept_one(st);
			else
				place_event(st, &events[i]);
		}
		clear_away(st);
		if (!st->server && !atomic_load(&st->table.count) &&
		    backoff_is_due(&st->retry, clock_now_ns()))
			attempt(st);
	}
	return NULL;
}
