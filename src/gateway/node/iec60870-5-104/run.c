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

/* ---- connections ---- */

static void accept_one(struct station *s, uint64_t now_ns)
{
	struct stream_client *k = stream_server_accept(&s->server, now_ns);

	if (!k)
		return;
	socket_option_try(k->stream.fd, IPPROTO_TCP, TCP_NODELAY, 1, s->node->name, "TCP_NODELAY");
	station_connection_begin(container_of(k, struct station_connection, base), now_ns);
}

/* ---- a master connects ---- */

static void cannot_reach(struct station_connection *c, const char *why, uint64_t now_ns)
{
	struct station *s = c->station;
	struct station_remote *r = c->remote;

	stream_close(&c->base.stream);
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
			 socket_address_print(&c->base.peer, text));
	stream_server_enter(&s->server, &c->base, now_ns);
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
	c->base.peer = r->targets[r->target_next];
	fd = socket(c->base.peer.sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	stream_init(&c->base.stream, fd);
	c->until_ns = clock_now_ns() + (uint64_t)(s->t0_s * 1e9);
	if (fd >= 0)
		socket_option_try(fd, IPPROTO_TCP, TCP_NODELAY, 1, s->node->name, "TCP_NODELAY");
	if (fd >= 0 && !connect(fd, &c->base.peer.sa, c->base.peer.len))
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

		if (c->base.stream.fd < 0 && backoff_is_due(&c->remote->retry, now_ns))
			attempt(c);
	}
}

static void connecting(struct station_connection *c, bool ready, uint64_t now_ns)
{
	socklen_t len = sizeof(int);
	int err = 0;

	if (ready) {
		if (getsockopt(c->base.stream.fd, SOL_SOCKET, SO_ERROR, &err, &len))
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
	stream_shut(&c->base.stream);
	c->shut = true;
}

static void turn(struct station *s, struct station_connection *c, short revents, uint64_t now_ns)
{
	const char *why;

	if (c->base.stream.fd < 0)
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
	if (stream_buffer_filled(&c->base.stream.out) &&
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
		if (s->connections[i].base.stream.fd < 0 && s->remotes[i].retry.at_ns)
			due = MIN(due, s->remotes[i].retry.at_ns);
	if (s->server.accept_ns > now_ns)
		due = MIN(due, s->server.accept_ns);
	for (unsigned i = 0; i < s->server.max; i++) {
		const struct station_connection *c = &s->connections[i];

		if (c->base.stream.fd >= 0)
			due = MIN(due, c->connecting ? c->until_ns : c->shut ? IEC104_NEVER :
									      iec104_link_due_ns(&c->link));
	}
	return due;
}

/* The node was asked to stop: no master comes any more. */
static void begin_end(struct station *s, uint64_t now_ns)
{
	s->end_ns = now_ns + END_NS;
	stream_server_close_listener(&s->server);
}

static bool is_over(const struct station *s, uint64_t now_ns)
{
	if (!s->end_ns)
		return false;
	for (unsigned i = 0; i < s->server.max; i++)
		if (s->connections[i].base.stream.fd >= 0 && !s->connections[i].connecting)
			return now_ns >= s->end_ns;
	return true;
}

static void wait_for_events(struct station *s, uint64_t until_ns)
{
	unsigned count = stream_server_fill(&s->server, s->wake_fd, clock_now_ns());

	s->asleep = true;
	pthread_mutex_unlock(&s->lock);
	wakeup_poll(s->server.fds, count, until_ns);
	pthread_mutex_lock(&s->lock);
	s->asleep = false;
}

/* Closes what is left. With the lock. */
static void finish(struct station *s)
{
	for (unsigned i = 0; i < s->server.max; i++) {
		struct station_connection *c = &s->connections[i];

		if (c->base.stream.fd >= 0 && c->connecting)
			stream_close(&c->base.stream);
		else if (c->base.stream.fd >= 0)
			station_connection_end(c, "it has not taken all before the node stopped");
	}
	station_master_forget(s, "the node has stopped");
}

void *station_run(void *station)
{
	struct station *s = station;
	const struct pollfd *fds = s->server.fds;
	uint64_t now = clock_now_ns();

	pthread_mutex_lock(&s->lock);
	for (unsigned i = 0; i < s->remote_count; i++)
		s->remotes[i].retry.at_ns = now;
	for (;;) {
		uint64_t role_ns = s->role->tick(s, now);

		for (unsigned i = 0; i < s->server.max; i++)
			turn(s, &s->connections[i], fds[STREAM_SERVER_CLIENTS + i].revents, now);
		if (fds[STREAM_SERVER_LISTENER].revents && s->server.listener >= 0)
			accept_one(s, now);
		attempts(s, now);
		node_tell_connected(s->node, &s->shown, s->started);
		if (is_over(s, now))
			break;
		/* An answer may have begun the next commands. */
		wait_for_events(s, MIN(due_ns(s, role_ns, now), s->role->tick(s, now)));
		now = clock_now_ns();
		if (s->ending && !s->end_ns)
			begin_end(s, now);
	}
	finish(s);
	pthread_mutex_unlock(&s->lock);
	return NULL;
}
