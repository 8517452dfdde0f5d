/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of the node, one for each direction, from their start to their end.
 *
 * A socket that binds lasts as long as the node. One that connects is made anew after it has
 * lost its last peer, so that attempts are planned and counted as those of other node-types;
 * while it has a peer, the library connects to its other addresses again by itself.
 *
 * The publisher is an XPUB: it sees subscriptions, and says when a subscriber has no room.
 */
#define LOG_ROOM "gateway/zeromq"
#include "gateway/node/zeromq/zeromq.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "gateway/base/ending.h"
#include "gateway/base/lookup.h"
#include "gateway/base/thread.h"
#include "util/clock.h"
#include "util/log.h"

/* At the end, for what the library has and the network has not taken. */
#define LINGER_MS 500
/* The thread of the node has this time until ENDING_JOIN_MS after it has waited. */
#define LEAVE_MS 50

#define EVENTS (ZMQ_EVENT_CONNECT_RETRIED | ZMQ_EVENT_DISCONNECTED | \
		ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL | \
		ZMQ_EVENT_HANDSHAKE_FAILED_PROTOCOL | ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)

bool zeromq_is_used(const struct zeromq_node *m, const struct zeromq_side *d)
{
	return d == &m->in ? m->outside.node->is_source : m->outside.node->is_destination;
}

/* The side whose connection is the one of the node. */
struct zeromq_side *zeromq_main_side(struct zeromq_node *m)
{
	return zeromq_is_used(m, &m->out) ? &m->out : &m->in;
}

int zeromq_fail(struct zeromq_node *m, const char *what)
{
	int error = errno;

	return outside_fail(&m->outside, error ? -error : -EIO, "%s: %s", what,
			    zmq_strerror(error));
}

/* ---- opening ---- */

struct option {
	int name, value;
};

static int set_options(struct zeromq_node *m, void *socket, const struct option list[], size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (zmq_setsockopt(socket, list[i].name, &list[i].value, sizeof(list[i].value)))
			return zeromq_fail(m, "a socket");
	return 0;
}

static int set_socket(struct zeromq_node *m, struct zeromq_side *d)
{
	const struct outside *o = &m->outside;
	int timeout_ms = MAX((int)(o->connect_timeout_s * 1e3), 10);
	int heartbeat_ms = (int)(m->heartbeat_s * 1e3);
	int64_t max = m->in_message_max;
	const struct option options[] = {
		{ ZMQ_LINGER, 0 },
		{ ZMQ_IPV6, m->ipv6 },
		{ ZMQ_RECONNECT_IVL, (int)o->reconnect_ms },
		{ ZMQ_CONNECT_TIMEOUT, timeout_ms },
		{ ZMQ_HANDSHAKE_IVL, timeout_ms },
		{ ZMQ_HEARTBEAT_IVL, heartbeat_ms ? MAX(heartbeat_ms / 4, 10) : 0 },
		{ ZMQ_HEARTBEAT_TIMEOUT, heartbeat_ms },
		{ d == &m->in ? ZMQ_RCVHWM : ZMQ_SNDHWM, (int)d->hwm },
		/* A peer that is away has no queue that could fill up. */
		{ ZMQ_IMMEDIATE, d == &m->out },
	};
	const struct option publisher[] = { { ZMQ_XPUB_NODROP, !m->drop_slow } };
	int ret = set_options(m, d->socket, options, ARRAY_SIZE(options));

	if (!ret && d == &m->in && zmq_setsockopt(d->socket, ZMQ_MAXMSGSIZE, &max, sizeof(max)))
		ret = zeromq_fail(m, "in.max_message");
	if (!ret && d == &m->out && m->pattern == ZEROMQ_PUBSUB)
		ret = set_options(m, d->socket, publisher, ARRAY_SIZE(publisher));
	return ret ?: zeromq_curve_set(m, d);
}

static int subscribe(struct zeromq_node *m, struct zeromq_side *d)
{
	const char *filter = d->filter ? d->filter : "";
	int rc;

	if (d != &m->in)
		return 0;
#ifdef ZMQ_BUILD_DRAFT_API
	if (m->pattern == ZEROMQ_RADIODISH)
		rc = zmq_join(d->socket, filter);
	else
#endif
		rc = zmq_setsockopt(d->socket, ZMQ_SUBSCRIBE, filter, strlen(filter));
	return rc ? zeromq_fail(m, "in.filter") : 0;
}

static int open_monitor(struct zeromq_node *m, struct zeromq_side *d)
{
	/* Else the library's thread would wait for a reader. */
	const struct option options[] = { { ZMQ_RCVHWM, 0 }, { ZMQ_LINGER, 0 } };
	const char *name = d == &m->in ? "inproc://in" : "inproc://out";
	size_t size = sizeof(d->fd);
	int ret;

	if (zmq_socket_monitor(d->socket, name, EVENTS))
		return zeromq_fail(m, "a monitor");
	d->monitor = zmq_socket(m->context, ZMQ_PAIR);
	if (!d->monitor)
		return zeromq_fail(m, "a monitor");
	ret = set_options(m, d->monitor, options, ARRAY_SIZE(options));
	if (!ret && (zmq_connect(d->monitor, name) ||
		     zmq_getsockopt(d->monitor, ZMQ_FD, &d->monitor_fd, &size) ||
		     zmq_getsockopt(d->socket, ZMQ_FD, &d->fd, &size)))
		ret = zeromq_fail(m, "a monitor");
	return ret;
}

static void close_side(struct zeromq_side *d)
{
	if (d->monitor) {
		zmq_socket_monitor(d->socket, NULL, 0);
		zmq_close(d->monitor);
	}
	if (d->socket)
		zmq_close(d->socket);
	d->socket = d->monitor = NULL;
	d->broken = d->half = d->left = false;
	d->peers = d->failed = 0;
	d->topics = 0;
	memset(d->address, 0, sizeof(d->address));
	d->retry_ns = 0;
	d->silent_since_ns = 0;
	d->why[0] = 0;
}

/* An address with a number in place of the host's name, because the library's own thread would
 * wait for the name service. 0 or an error of getaddrinfo(). */
static int resolve(const struct zeromq_node *m, const char *url, char out[ZEROMQ_URL_MAX])
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM,
					.ai_family = m->ipv6 ? AF_UNSPEC : AF_INET };
	const char *host = url + strlen("tcp://"), *colon = strrchr(host, ':');
	char name[ZEROMQ_URL_MAX], number[64];
	struct addrinfo *list;
	int ret;

	snprintf(out, ZEROMQ_URL_MAX, "%s", url);
	/* A local address stands before a semicolon, one of IPv6 in brackets. */
	if (strncmp(url, "tcp://", strlen("tcp://")) || !colon || strchr(host, ';') || *host == '[')
		return 0;
	snprintf(name, sizeof(name), "%.*s", (int)(colon - host), host);
	ret = lookup_address_within(name, NULL, &hints, &list,
				    (uint64_t)(m->outside.connect_timeout_s * 1e9),
				    &m->outside.ending);
	if (ret)
		return ret;
	ret = getnameinfo(list->ai_addr, list->ai_addrlen, number, sizeof(number), NULL, 0,
			  NI_NUMERICHOST);
	if (!ret)
		snprintf(out, ZEROMQ_URL_MAX, list->ai_family == AF_INET6 ? "tcp://[%s]%s" :
			 "tcp://%s%s", number, colon);
	freeaddrinfo(list);
	return ret;
}

static int attach(struct zeromq_node *m, struct zeromq_side *d)
{
	for (unsigned i = 0; i < d->url_count; i++) {
		int ret = d->bind ? 0 : resolve(m, d->url[i], d->address[i].text);

		/* Of several, the others may be there; the library asks for its name again. */
		if (ret && d->url_count == 1)
			return outside_fail(&m->outside, -EHOSTUNREACH, "%s", gai_strerror(ret));
		if (d->bind ? zmq_bind(d->socket, d->url[i]) : zmq_connect(d->socket, d->address[i].text))
			return zeromq_fail(m, d->url[i]);
		if (d->bind)
			log_info("node %s: %s at %s", m->outside.node->name,
				 d == &m->in ? "takes publishers" : "takes subscribers", d->url[i]);
	}
	return 0;
}

static int socket_type(const struct zeromq_node *m, const struct zeromq_side *d)
{
#ifdef ZMQ_BUILD_DRAFT_API
	if (m->pattern == ZEROMQ_RADIODISH)
		return d == &m->in ? ZMQ_DISH : ZMQ_RADIO;
#endif
	return d == &m->in ? ZMQ_SUB : ZMQ_XPUB;
}

static int open_side(struct zeromq_node *m, struct zeromq_side *d)
{
	int ret;

	for (unsigned i = 0; i < d->url_count; i++)
		d->address[i].failed = false;
	d->opened_ns = clock_now_ns();
	d->left = true;
	if (d->socket)
		return 0;
	d->socket = zmq_socket(m->context, socket_type(m, d));
	if (!d->socket)
		return zeromq_fail(m, "a socket");
	ret = set_socket(m, d) ?: subscribe(m, d) ?: open_monitor(m, d) ?: attach(m, d);
	if (ret)
		close_side(d);
	return ret;
}

static int open_context(struct zeromq_node *m)
{
	m->context = zmq_ctx_new();
	return m->context ? zeromq_zap_open(m) : zeromq_fail(m, "the library");
}

int zeromq_open(struct outside *o)
{
	struct zeromq_node *m = zeromq_of(o);
	int ret = m->context ? 0 : open_context(m);

	m->is_up = false;
	m->zap_left = true;
	if (!ret && zeromq_is_used(m, &m->out))
		ret = open_side(m, &m->out);
	if (!ret && zeromq_is_used(m, &m->in))
		ret = open_side(m, &m->in);
	if (ret && !m->in.socket && !m->out.socket)
		zeromq_forget(m);
	return ret ?: 1;
}

/* ---- the end ---- */

void zeromq_close(struct outside *o)
{
	struct zeromq_node *m = zeromq_of(o);
	struct zeromq_side *d = zeromq_main_side(m);
	int linger_ms = MAX(ending_left_ms(ENDING_JOIN_MS, LINGER_MS + 2 * LEAVE_MS) - 2 * LEAVE_MS, 0);

	if (outside_is_ending(o)) {
		if (m->out.socket)
			zmq_setsockopt(m->out.socket, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
		zeromq_forget(m);
		return;
	}
	/* One that lacks subscriptions only goes on. */
	if (d->broken || (!d->bind && !d->peers))
		close_side(d);
}

static void *end_context(void *context)
{
	while (zmq_ctx_term(context) && errno == EINTR)
		;
	return NULL;
}

/* Waits until the sockets have sent what they have (ZMQ_LINGER) and the library's threads have
 * ended, but no longer than the end of the process allows: then they end with it. */
static void end_in_time(void *context)
{
	int wait_ms = MAX(ending_left_ms(ENDING_JOIN_MS, 2 * LINGER_MS) - LEAVE_MS, 0);
	struct timespec until = timespec_from_ns(clock_monotonic_ns_slow() +
						 (uint64_t)wait_ms * 1000000);
	pthread_t thread;

	if (thread_start(&thread, "zeromq-end", THREAD_AS_CALLER, end_context, context))
		log_warn("node-type zeromq: no thread to end the library's; they go on");
	else if (pthread_clockjoin_np(thread, NULL, CLOCK_MONOTONIC, &until))
		pthread_detach(thread);
}

void zeromq_forget(struct zeromq_node *m)
{
	close_side(&m->in);
	close_side(&m->out);
	if (m->zap)
		zmq_close(m->zap);
	m->zap = NULL;
	if (m->context)
		end_in_time(m->context);
	m->context = NULL;
}
