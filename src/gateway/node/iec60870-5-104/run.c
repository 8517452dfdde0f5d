/* SPDX-License-Identifier: BSD-2-Clause */
/* The thread of a node: it accepts or connects, waits for sockets and time-outs. */
#define LOG_ROOM "gateway/iec60870-5-104"
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/node/iec60870-5-104/station.h"
#include "gateway/part/listener.h"
#include "gateway/part/socket_option.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/wakeup.h"

#define MS (NSEC_PER_SEC / 1000)
/* How often the thread looks whether it can tell the node's state. */
#define STATE_NS (20 * MS)
/* What waits is sent until so long after the node was asked to stop. */
#define END_NS NSEC_PER_SEC

enum { FD_WAKE, FD_LISTENER, FD_CONNECTIONS };

/* ---- connections ---- */

int station_listen(struct station *s)
{
	char text[SOCKET_ADDRESS_MAX + 32], shown[SOCKET_ADDRESS_MAX], why[SOCKET_WHY_MAX];
	struct socket_address own;
	int ret;

	snprintf(text, sizeof(text), strchr(s->address, ':') ? "[%s]:%lld" : "%s:%lld", s->address,
		 (long long)s->port);
	ret = socket_address_resolve(LAYER_TCP_SERVER, text, AF_UNSPEC, &own, why);
	if (ret) {
		log_error("%s: address: %s", s->node->name, why);
		return ret;
	}
	s->listener = listener_open(&own, s->node->name, "address", NULL, NULL);
	if (s->listener < 0)
		return s->listener;
	log_info("%s: listening on %s%s", s->node->name, socket_address_print(&own, shown),
		 !peers_are_all(&s->peers) ? "" : ", for every host that reaches it (peers)");
	return 0;
}

static struct station_connection *free_connection(struct station *s)
{
	for (unsigned i = 0; i < s->connection_count; i++)
		if (s->connections[i].stream.fd < 0)
			return &s->connections[i];
	return NULL;
}

static void accept_one(struct station *s, uint64_t now_ns)
{
	struct socket_address peer;
	struct station_connection *c = free_connection(s);
	char text[SOCKET_ADDRESS_MAX];
	int fd = listener_accept(s->listener, &peer, &s->faults);
	bool allowed;

	if (fd < 0) {
		if (fd != -EAGAIN)
			s->accept_ns = now_ns + LISTENER_PAUSE_NS;
		return;
	}
	allowed = peers_have(&s->peers, &peer.sa);
	if (!allowed || !c) {
		node_figure_add(s->node, STATION_TURNED_AWAY, 1);
		fault_note(&s->faults, allowed ? FAULT_DROPPED : FAULT_FOREIGN, 1,
			   allowed ? "%s is turned away, there are max_clients connections" :
				     "%s is turned away, peers does not have it",
			   socket_address_print(&peer, text));
		close(fd);
		return;
	}
	socket_option_try(fd, IPPROTO_TCP, TCP_NODELAY, 1, s->node->name, "TCP_NODELAY");
	stream_init(&c->stream, fd);
	c->peer = peer;
	if (fault_may_log(&s->faults))
		log_info("%s: %s has connected", s->node->name, socket_address_print(&peer, text));
	station_connection_begin(c, now_ns);
}

/* ---- a master connects ---- */

static void cannot_reach(struct station_connection *c, const char *why, uint64_t now_ns)
{
	struct station *s = c->station;
	struct station_remote *r = c->remote;

	stream_close(&c->stream);
	c->connecting = false;
	if (!r->said_unreachable)
		log_info("%s: cannot reach %s: %s; trying again every %g s at least", s->node->name,
			 r->address, why, s->reconnect_s);
	r->said_unreachable = true;
	if (++r->target_next < r->target_count)
		r->retry.at_ns = now_ns; /* the next address of the name, at once */
	else
		backoff_plan(&r->retry, (uint64_t)(s->reconnect_s * 1e9), now_ns);
}

static void connected(struct station_connection *c, uint64_t now_ns)
{
	struct station *s = c->station;
	char text[SOCKET_ADDRESS_MAX];

	backoff_reset(&c->remote->retry);
	c->remote->said_unreachable = false;
	if (fault_may_log(&s->faults))
		log_info("%s: connected to %s", s->node->name,
			 socket_address_print(&c->peer, text));
	station_connection_begin(c, now_ns);
	station_master_choose(s, now_ns);
}

/* Begins to connect; without the lock while the name is looked up. */
static void attempt(struct station_connection *c)
{
	struct station *s = c->station;
	struct station_remote *r = c->remote;
	char why[SOCKET_WHY_MAX];
	int fd, found = 1;

	if (r->target_next >= r->target_count) {
		pthread_mutex_unlock(&s->lock);
		found = socket_address_resolve_all(LAYER_TCP_CLIENT, r->address, AF_UNSPEC,
						   r->targets, STATION_TARGETS, why);
		pthread_mutex_lock(&s->lock);
		r->target_count = found > 0 ? (unsigned)found : 0;
		r->target_next = 0;
	}
	if (found <= 0) {
		cannot_reach(c, why, clock_now_ns());
		return;
	}
	c->peer = r->targets[r->target_next];
	fd = socket(c->peer.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	stream_init(&c->stream, fd);
	c->until_ns = clock_now_ns() + (uint64_t)(s->t0_s * 1e9);
	if (fd >= 0)
		socket_option_try(fd, IPPROTO_TCP, TCP_NODELAY, 1, s->node->name, "TCP_NODELAY");
	if (fd >= 0 && !connect(fd, &c->peer.sa, c->peer.len))
		connected(c, clock_now_ns());
	else if (fd >= 0 && errno == EINPROGRESS)
		c->connecting = true;
	else
		cannot_reach(c, strerror(errno), clock_now_ns());
}

static void attempts(struct station *s, uint64_t now_ns)
{
	for (unsigned i = 0; i < s->remote_count && !s->ending; i++) {
		struct station_connection *c = &s->connections[i];

		if (c->stream.fd < 0 && backoff_is_due(&c->remote->retry, now_ns))
			attempt(c);
	}
}

static void connecting(struct station_connection *c, bool ready, uint64_t now_ns)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (ready) {
		if (getsockopt(c->stream.fd, SOL_SOCKET, SO_ERROR, &err, &len))
			err = errno;
		if (err)
			cannot_reach(c, strerror(err), now_ns);
		else
			connected(c, now_ns);
	} else if (now_ns >= c->until_ns) {
		cannot_reach(c, "it does not answer within apci_t0", now_ns);
	}
}

/* ---- turns ---- */

static void tell_state(struct station *s)
{
	enum node_state state = s->started ? NODE_CONNECTED : NODE_PENDING_CONNECT;

	if (s->shown == state || !node_is_running(s->node))
		return;
	s->shown = state;
	node_set_state(s->node, state);
}

/* The node is to stop: ends the connection when all is sent. */
static void end_if_empty(struct station *s, struct station_connection *c, uint64_t now_ns)
{
	bool idle = station_connection_is_empty(c) && !s->orders.count;

	if (c->shut || !idle)
		return;
	if (s->mode == STATION_MASTER) {
		iec104_link_stop(&c->link, now_ns);
		if (c->link.state != IEC104_STOPPED)
			return;
	}
	stream_shut(&c->stream);
	c->shut = true;
}

static void turn(struct station *s, struct station_connection *c, short revents, uint64_t now_ns)
{
	const char *why;

	if (c->stream.fd < 0)
		return;
	if (c->connecting) {
		connecting(c, revents, now_ns);
		return;
	}
	if (!station_connection_turn(c, revents & (POLLIN | POLLHUP | POLLERR), now_ns, &why)) {
		station_connection_end(c, why);
		if (c->remote) {
			backoff_plan(&c->remote->retry, (uint64_t)(s->reconnect_s * 1e9), now_ns);
			station_master_choose(s, now_ns);
		}
		return;
	}
	if (s->end_ns)
		end_if_empty(s, c, now_ns);
	/* The link may have more to send, such as the request to stop. */
	if (stream_buffer_filled(&c->stream.out) &&
	    !station_connection_turn(c, false, now_ns, &why))
		station_connection_end(c, why);
}

static uint64_t due_ns(const struct station *s, uint64_t role_ns, uint64_t now_ns)
{
	uint64_t due = role_ns;

	if (!s->shown)
		due = MIN(due, now_ns + STATE_NS);
	if (s->end_ns)
		due = MIN(due, s->end_ns);
	for (unsigned i = 0; i < s->remote_count && !s->end_ns; i++)
		if (s->connections[i].stream.fd < 0 && s->remotes[i].retry.at_ns)
			due = MIN(due, s->remotes[i].retry.at_ns);
	if (s->accept_ns > now_ns)
		due = MIN(due, s->accept_ns);
	for (unsigned i = 0; i < s->connection_count; i++) {
		const struct station_connection *c = &s->connections[i];

		if (c->stream.fd >= 0)
			due = MIN(due, c->connecting ? c->until_ns : c->shut ? IEC104_NEVER :
									      iec104_link_due_ns(&c->link));
	}
	return due;
}

/* Descriptors of who wakes the thread, of the listener and of the connections. Returns the number
 * up to the last one that is used: poll() refuses more than the process may open. */
static unsigned fill(const struct station *s, struct pollfd *fds, uint64_t now_ns)
{
	unsigned count = FD_CONNECTIONS;

	fds[FD_WAKE] = (struct pollfd){ .fd = s->wake_fd, .events = POLLIN };
	fds[FD_LISTENER] = (struct pollfd){ .fd = s->accept_ns > now_ns ? -1 : s->listener,
					    .events = POLLIN };
	for (unsigned i = 0; i < s->connection_count; i++) {
		const struct station_connection *c = &s->connections[i];
		struct pollfd *p = &fds[FD_CONNECTIONS + i];

		*p = (struct pollfd){ .fd = c->stream.fd, .events = POLLOUT };
		if (c->stream.fd < 0)
			continue;
		if (!c->connecting)
			p->events = stream_events(&c->stream, station_connection_reads(c), false);
		count = FD_CONNECTIONS + i + 1;
	}
	return count;
}

/* The node was asked to stop: no master comes any more. */
static void begin_end(struct station *s, uint64_t now_ns)
{
	s->end_ns = now_ns + END_NS;
	if (s->listener >= 0)
		close(s->listener);
	s->listener = -1;
}

static bool is_over(const struct station *s, uint64_t now_ns)
{
	if (!s->end_ns)
		return false;
	for (unsigned i = 0; i < s->connection_count; i++)
		if (s->connections[i].stream.fd >= 0 && !s->connections[i].connecting)
			return now_ns >= s->end_ns;
	return true;
}

static void wait_for_events(struct station *s, struct pollfd *fds, uint64_t until_ns)
{
	unsigned count = fill(s, fds, clock_now_ns());

	s->asleep = true;
	pthread_mutex_unlock(&s->lock);
	wakeup_poll(fds, count, until_ns);
	pthread_mutex_lock(&s->lock);
	s->asleep = false;
}

/* Closes what is left. With the lock. */
static void finish(struct station *s)
{
	for (unsigned i = 0; i < s->connection_count; i++) {
		struct station_connection *c = &s->connections[i];

		if (c->stream.fd >= 0 && c->connecting)
			stream_close(&c->stream);
		else if (c->stream.fd >= 0)
			station_connection_end(c, "it has not taken all before the node stopped");
	}
	station_master_forget(s, "the node has stopped");
}

void *station_run(void *station)
{
	struct station *s = station;
	unsigned n = s->connection_count;
	struct pollfd *fds = calloc(FD_CONNECTIONS + n, sizeof(*fds));
	uint64_t now = clock_now_ns();

	pthread_mutex_lock(&s->lock);
	if (!fds)
		log_error("%s: no memory", s->node->name);
	for (unsigned i = 0; i < s->remote_count; i++)
		s->remotes[i].retry.at_ns = now;
	while (fds) {
		uint64_t role_ns = s->role->tick(s, now);

		for (unsigned i = 0; i < n; i++)
			turn(s, &s->connections[i], fds[FD_CONNECTIONS + i].revents, now);
		if (fds[FD_LISTENER].revents && s->listener >= 0)
			accept_one(s, now);
		attempts(s, now);
		tell_state(s);
		if (is_over(s, now))
			break;
		/* An answer may have begun the next commands. */
		wait_for_events(s, fds, MIN(due_ns(s, role_ns, now), s->role->tick(s, now)));
		now = clock_now_ns();
		if (s->ending && !s->end_ns)
			begin_end(s, now);
	}
	finish(s);
	pthread_mutex_unlock(&s->lock);
	free(fds);
	return NULL;
}
