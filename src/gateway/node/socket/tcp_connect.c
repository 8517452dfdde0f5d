/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The connecting thread of a TCP node: it connects (again), accepts, closes what
 * broke, sends the rest of what a slow peer did not take at once, and takes away
 * what a peer sends when no path reads it.
 */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/tcp.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "util/log.h"

#define ATTEMPT_NS (5 * NSEC_PER_SEC)
/* Until the super-node has started the node its state cannot be told. */
#define STATE_MS 20

static const char *name_of(const struct tcp *st)
{
	return st->node->ends.node->name;
}

static void tell_state(struct tcp *st)
{
	struct node *n = st->node->ends.node;
	bool connected = atomic_load(&st->connected) > 0;

	if ((st->shown && st->shown_connected == connected) ||
	    !node_is_running(n))
		return;
	st->shown = true;
	st->shown_connected = connected;
	node_set_state(n, connected ? NODE_CONNECTED : NODE_PENDING_CONNECT);
}

static void set_int(const struct tcp *st, int fd, int level, int option,
		    int value, const char *what)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		log_debug("%s: %s: %s", name_of(st), what, strerror(errno));
}

/* A peer whose host went down says no end: it is asked, and what is under way to
 * it is not repeated for ever. */
static void set_options(const struct tcp *st, int fd)
{
	set_int(st, fd, IPPROTO_TCP, TCP_NODELAY, 1, "TCP_NODELAY");
	set_int(st, fd, SOL_SOCKET, SO_KEEPALIVE, 1, "SO_KEEPALIVE");
	set_int(st, fd, IPPROTO_TCP, TCP_KEEPIDLE, 10, "TCP_KEEPIDLE");
	set_int(st, fd, IPPROTO_TCP, TCP_KEEPINTVL, 5, "TCP_KEEPINTVL");
	set_int(st, fd, IPPROTO_TCP, TCP_KEEPCNT, 3, "TCP_KEEPCNT");
	set_int(st, fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30000,
		"TCP_USER_TIMEOUT");
}

static int watch(int epoll_fd, int op, int fd, uint32_t events, uint64_t data)
{
	struct epoll_event e = { .events = events, .data.u64 = data };

	return epoll_ctl(epoll_fd, op, fd, &e) ? -errno : 0;
}

/*
 * The one that has been silent for longer than in.idle_timeout, for longest; who has
 * never sent a sample comes before who has. NULL: none. Who is only written to has
 * nothing to say.
 */
static struct tcp_connection *most_silent(struct tcp *st)
{
	uint64_t limit_ns = (uint64_t)st->node->in.idle_timeout_ms * MS;
	uint64_t now = clock_now_ns();
	struct tcp_connection *found = NULL;

	if (!st->server || !st->read || !limit_ns)
		return NULL;
	pthread_mutex_lock(&st->rx_lock);
	for (unsigned i = 0; i < st->place_count; i++) {
		struct tcp_connection *c = &st->places[i];

		if (c->socket.fd < 0 || now - c->heard_ns < limit_ns)
			continue;
		if (!found || c->heard < found->heard ||
		    (c->heard == found->heard && c->heard_ns < found->heard_ns))
			found = c;
	}
	pthread_mutex_unlock(&st->rx_lock);
	return found;
}

/* A place for a new peer; NULL when all are in use. */
static struct tcp_connection *find_place(struct tcp *st)
{
	char text[SOCKET_ADDRESS_MAX];
	struct tcp_connection *c;

	for (unsigned i = 0; i < st->place_count; i++)
		if (st->places[i].socket.fd < 0)
			return &st->places[i];
	c = most_silent(st);
	if (!c)
		return NULL;
	log_warn("%s: %s has to give its place to another peer: no sample %s for %ju ms (in.idle_timeout, in.max_connections)",
		 name_of(st), socket_address_print(&c->peer, text),
		 c->heard ? "has come from it" : "has ever come from it,",
		 (uintmax_t)((clock_now_ns() - c->heard_ns) / MS));
	tcp_close_place(st, c);
	return c;
}

/* Takes a connection over; false when it was closed. */
static bool adopt(struct tcp *st, int fd, const struct socket_address *peer)
{
	struct tcp_connection *c = find_place(st);

	if (!c) {
		close(fd);
		return false;
	}
	set_options(st, fd);
	pthread_mutex_lock(&st->rx_lock);
	pthread_mutex_lock(&st->tx_lock);
	stream_init(&c->socket, fd);
	c->generation++;
	c->peer = *peer;
	c->rx.start = c->rx.end = 0;
	c->pending = c->at_end = c->tx_dead = c->slow = c->watched = false;
	c->waits_for_end = c->heard = false;
	c->heard_ns = clock_now_ns();
	c->missing_since_ns = c->patience_ns = c->missed = 0;
	atomic_store(&c->breaking, false);
	atomic_store(&c->broken, false);
	if (c->reader && c->reader->type->reset)
		c->reader->type->reset(c->reader);
	if (st->read)
		watch(st->rx_epoll, EPOLL_CTL_ADD, fd, EPOLLIN,
		      tcp_event_data(st, c));
	/* Its end is seen by who reads it. */
	watch(st->epoll_fd, EPOLL_CTL_ADD, fd,
	      st->read ? EPOLLONESHOT : EPOLLIN, tcp_event_data(st, c));
	node_figure_set(st->node->ends.node, SOCKET_CONNECTIONS,
			atomic_fetch_add(&st->connected, 1) + 1);
	node_figure_add(st->node->ends.node, SOCKET_CONNECTED, 1);
	pthread_mutex_unlock(&st->tx_lock);
	pthread_mutex_unlock(&st->rx_lock);
	return true;
}

void tcp_close_place(struct tcp *st, struct tcp_connection *c)
{
	pthread_mutex_lock(&st->rx_lock);
	pthread_mutex_lock(&st->tx_lock);
	/* A thread that looks at the socket in an epoll_wait() has a reference to it (Linux 6.9 and
	 * later). If that is the last one it is dropped when the thread leaves epoll_wait(), which
	 * may be never, and until then the peer sees no end. Behind this nobody has one. */
	if (st->read)
		epoll_ctl(st->rx_epoll, EPOLL_CTL_DEL, c->socket.fd, NULL);
	/* A child between fork() and exec() has the descriptor, too: until exec(), close() alone
	 * would leave it in the set. */
	watch(st->epoll_fd, EPOLL_CTL_DEL, c->socket.fd, 0, 0);
	stream_close(&c->socket);
	node_figure_set(st->node->ends.node, SOCKET_CONNECTIONS,
			atomic_fetch_sub(&st->connected, 1) - 1);
	pthread_mutex_unlock(&st->tx_lock);
	pthread_mutex_unlock(&st->rx_lock);
}

/* The client. */

static void schedule(struct tcp *st)
{
	backoff_plan(&st->retry,
		     (uint64_t)st->node->out.reconnect_interval_ms * MS,
		     clock_now_ns());
}

static void attempt_failed(struct tcp *st, const char *why)
{
	if (st->attempt >= 0) {
		/* For the same reason: its events would be taken for those of the next attempt. */
		watch(st->epoll_fd, EPOLL_CTL_DEL, st->attempt, 0, 0);
		close(st->attempt);
	}
	st->attempt = -1;
	/* A server may listen at one of the addresses of its name only. */
	if (++st->address < st->address_count) {
		st->retry.at_ns = clock_now_ns();
		return;
	}
	st->address = 0;
	atomic_store(&st->tried, true);
	node_figure_add(st->node->ends.node, SOCKET_UNREACHABLE, 1);
	schedule(st);
	if (st->said_unreachable)
		return;
	st->said_unreachable = true;
	log_info("%s: cannot reach %s: %s; trying again every %lld ms",
		 name_of(st), st->node->ends.out.address, why,
		 (long long)st->node->out.reconnect_interval_ms);
}

static void attempt_succeeded(struct tcp *st)
{
	struct socket_node *s = st->node;
	struct socket_address own = { .len = sizeof(own.storage) };
	char text[SOCKET_ADDRESS_MAX];
	int fd = st->attempt;

	/* Ports for outgoing calls and the peer's may be the same range: then
	 * a call to a peer that is not there can reach itself. */
	if (!getsockname(fd, &own.sa, &own.len) &&
	    socket_address_equal(&own, &s->ends.remote, true)) {
		attempt_failed(st, strerror(ECONNREFUSED));
		return;
	}
	watch(st->epoll_fd, EPOLL_CTL_DEL, fd, 0, 0);
	st->attempt = -1;
	st->address = 0;
	backoff_reset(&st->retry);
	st->said_unreachable = false;
	log_info("%s: connected to %s", name_of(st),
		 socket_address_print(&s->ends.remote, text));
	adopt(st, fd, &s->ends.remote);
	atomic_store(&st->tried, true);
}

static int resolve(struct tcp *st, char *why)
{
	struct socket_node *s = st->node;
	int family = AF_UNSPEC, ret;

	if (s->ends.in.address)
		family = socket_address_family(s->ends.in.address);
	ret = socket_address_resolve_nth(s->ends.layer, s->ends.out.address, family, st->address,
					 &st->address_count, &s->ends.remote, why);
	s->ends.has_local = false;
	if (ret || !s->ends.in.address)
		return ret;
	ret = socket_address_resolve(s->ends.layer, s->ends.in.address,
				     s->ends.remote.sa.sa_family, &s->ends.local, why);
	s->ends.has_local = !ret;
	return ret;
}

static void attempt(struct tcp *st)
{
	struct socket_node *s = st->node;
	char why[SOCKET_WHY_MAX];
	int one = 1;

	st->retry.at_ns = 0;
	/* Again each time: the name may have moved. */
	if (resolve(st, why)) {
		attempt_failed(st, why);
		return;
	}
	st->attempt = socket(s->ends.remote.sa.sa_family,
			     SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (st->attempt < 0 || socket_set_mark(s, st->attempt)) {
		attempt_failed(st, strerror(errno));
		return;
	}
	if (s->ends.has_local &&
	    (setsockopt(st->attempt, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	     bind(st->attempt, &s->ends.local.sa, s->ends.local.len))) {
		snprintf(why, sizeof(why), "in.address: %s", strerror(errno));
		attempt_failed(st, why);
		return;
	}
	st->attempt_end_ns = clock_now_ns() + ATTEMPT_NS;
	if (!connect(st->attempt, &s->ends.remote.sa, s->ends.remote.len))
		attempt_succeeded(st);
	else if (errno != EINPROGRESS)
		attempt_failed(st, strerror(errno));
	else
		watch(st->epoll_fd, EPOLL_CTL_ADD, st->attempt, EPOLLOUT,
		      EVENT_ATTEMPT);
}

static void attempt_ended(struct tcp *st)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (getsockopt(st->attempt, SOL_SOCKET, SO_ERROR, &err, &len))
		err = errno;
	if (err)
		attempt_failed(st, strerror(err));
	else
		attempt_succeeded(st);
}

/* The server. */

int tcp_listen(struct tcp *st)
{
	struct socket_node *s = st->node;
	char text[SOCKET_ADDRESS_MAX];
	int one = 1, zero = 0, ret = socket_ends_resolve(&s->ends);

	if (ret)
		return ret;
	st->listener = socket(s->ends.local.sa.sa_family,
			      SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (st->listener < 0)
		goto err_log;
	ret = socket_set_mark(s, st->listener);
	if (ret)
		return ret;
	/* Connections of an earlier run that are not in use any more. */
	setsockopt(st->listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (s->ends.local.sa.sa_family == AF_INET6)
		setsockopt(st->listener, IPPROTO_IPV6, IPV6_V6ONLY, &zero,
			   sizeof(zero));
	if (bind(st->listener, &s->ends.local.sa, s->ends.local.len) ||
	    listen(st->listener, 16))
		goto err_log;
	log_info("%s: listening on %s", name_of(st),
		 socket_address_print(&s->ends.local, text));
	return watch(st->epoll_fd, EPOLL_CTL_ADD, st->listener, EPOLLIN,
		     EVENT_LISTENER);

err_log:
	ret = -errno;
	log_error("%s: in.address: cannot listen on %s: %s", name_of(st),
		  socket_address_print(&s->ends.local, text), strerror(-ret));
	return ret;
}

static void accept_one(struct tcp *st)
{
	struct socket_node *s = st->node;
	struct socket_address peer = { .len = sizeof(peer.storage) };
	const struct timespec pause = { .tv_nsec = 50 * 1000 * 1000 };
	char text[SOCKET_ADDRESS_MAX];
	int fd = accept4(st->listener, &peer.sa, &peer.len,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0) {
		if (errno == EMFILE || errno == ENFILE || errno == ENOMEM) {
			fault_note(&s->ends.faults, FAULT_DROPPED, 1,
				   "cannot accept a peer: %s", strerror(errno));
			nanosleep(&pause, NULL);
		}
		return;
	}
	if (s->ends.verify_source && !socket_address_equal(&peer, &s->ends.remote, false)) {
		close(fd);
		fault_note(&s->ends.faults, FAULT_FOREIGN, 1, "a connection from %s",
			   socket_address_print(&peer, text));
		return;
	}
	if (adopt(st, fd, &peer))
		log_info("%s: %s has connected", name_of(st),
			 socket_address_print(&peer, text));
	else
		log_warn("%s: %s is turned away, there are %u peers already (in.max_connections)",
			 name_of(st), socket_address_print(&peer, text),
			 st->place_count);
}

/* Both. */

static void clear_away(struct tcp *st)
{
	char text[SOCKET_ADDRESS_MAX];

	for (unsigned i = 0; i < st->place_count; i++) {
		struct tcp_connection *c = &st->places[i];

		if (c->socket.fd < 0 || !atomic_load(&c->broken))
			continue;
		tcp_close_place(st, c);
		LOG_AT(c->slow ? LOG_WARN : LOG_INFO, "%s: %s is gone: %s",
			 name_of(st), socket_address_print(&c->peer, text),
			 c->why);
		if (!st->server)
			schedule(st);
	}
}

/* Nobody reads: what comes must not stop up the peer, and tells of its end. */
static void take_away(struct tcp *st, struct tcp_connection *c)
{
	ssize_t n = recv(c->socket.fd, NULL, 1 << 20, MSG_TRUNC | MSG_DONTWAIT);

	if (!n)
		tcp_break(st, c, "it has closed the connection");
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		tcp_break(st, c, strerror(errno));
}

static void place_event(struct tcp *st, const struct epoll_event *e)
{
	struct tcp_connection *c = tcp_event_place(st, e->data.u64);

	if (!c)
		return;
	pthread_mutex_lock(&st->tx_lock);
	if (e->events & (EPOLLOUT | EPOLLHUP | EPOLLERR)) {
		c->watched = !tcp_flush(st, c) && !c->tx_dead;
		if (c->watched || !st->read)
			watch(st->epoll_fd, EPOLL_CTL_MOD, c->socket.fd,
			      (c->watched ? EPOLLOUT : 0) |
				      (st->read ? EPOLLONESHOT : EPOLLIN),
			      e->data.u64);
	}
	pthread_mutex_unlock(&st->tx_lock);
	if (!st->read && e->events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		take_away(st, c);
}

static void handle(struct tcp *st, const struct epoll_event *e)
{
	uint64_t count;

	switch (e->data.u64) {
	case EVENT_WAKE:
		if (read(st->wake_fd, &count, sizeof(count)) < 0) {
			/* Nobody had written. */
		}
		break;
	case EVENT_LISTENER:
		accept_one(st);
		break;
	case EVENT_ATTEMPT:
		if (st->attempt >= 0)
			attempt_ended(st);
		break;
	default:
		place_event(st, e);
	}
}

/* Milliseconds until something is due, -1: never. */
static int due_ms(const struct tcp *st)
{
	uint64_t now = clock_now_ns(), at = 0;

	if (!st->shown)
		return STATE_MS;
	if (st->attempt >= 0)
		at = st->attempt_end_ns;
	else if (!st->server && !atomic_load(&st->connected))
		at = st->retry.at_ns;
	if (!at)
		return -1;
	return at > now ? (int)((at - now) / MS + 1) : 0;
}

void *tcp_run(void *tcp)
{
	struct tcp *st = tcp;
	struct epoll_event events[TCP_EVENTS];

	if (!st->server)
		attempt(st);
	while (!atomic_load(&st->stop)) {
		int n = epoll_wait(st->epoll_fd, events, TCP_EVENTS,
				   due_ms(st));

		for (int i = 0; i < n; i++)
			handle(st, &events[i]);
		clear_away(st);
		if (st->attempt >= 0 && clock_now_ns() > st->attempt_end_ns)
			attempt_failed(st, strerror(ETIMEDOUT));
		if (!st->server && st->attempt < 0 &&
		    !atomic_load(&st->connected) &&
		    backoff_is_due(&st->retry, clock_now_ns()))
			attempt(st);
		tell_state(st);
	}
	return NULL;
}
