/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines in datagrams, for the listener of InfluxDB for UDP. Nobody confirms them. */
#define LOG_ROOM "gateway/influxdb"
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/base/lookup.h"
#include "gateway/node/influxdb/influxdb.h"

#define PORT "8089"

/* "host", "host:port", "[::1]:port" */
static int split(const char *server, char host[256], const char **port)
{
	const char *colon = strrchr(server, ':');
	bool bracket = *server == '[';
	const char *end = bracket ? strchr(server, ']') :
			  colon && strchr(server, ':') == colon ? colon : server + strlen(server);

	if (!end || end - server - bracket < 1 || end - server >= 256 ||
	    (bracket && end[1] && end[1] != ':'))
		return -EINVAL;
	snprintf(host, 256, "%.*s", (int)(end - server - bracket), server + bracket);
	end += bracket;
	*port = *end == ':' ? end + 1 : PORT;
	return **port ? 0 : -EINVAL;
}

static int udp_open(struct outside *o)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	struct influx_node *x = influx_of(o);
	struct addrinfo *list, *a;
	const char *port;
	char host[256];
	int ret;

	if (split(x->server, host, &port))
		return outside_fail(o, -EINVAL, "expected \"host:port\"");
	ret = lookup_address_within(host, port, &hints, &list,
				    (uint64_t)(o->connect_timeout_s * 1e9), &o->ending);
	if (ret)
		return outside_fail(o, -EHOSTUNREACH, "%s", gai_strerror(ret));
	ret = -EHOSTUNREACH;
	for (a = list; a && ret; a = a->ai_next) {
		x->fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC,
			       a->ai_protocol);
		ret = x->fd < 0 || connect(x->fd, a->ai_addr, a->ai_addrlen) ? -errno : 0;
		if (ret && x->fd >= 0)
			close(x->fd);
	}
	freeaddrinfo(list);
	x->last_samples = 0;
	x->is_full = false;
	return ret ? outside_fail(o, ret, "%s", strerror(-ret)) : 0;
}

static void udp_close(struct outside *o)
{
	close(influx_of(o)->fd);
}

/* The host has told that nobody takes datagrams there: the last one is lost. */
static void note_refusal(struct influx_node *x)
{
	if (x->last_samples)
		node_lose(x->outside.node, NODE_LOSS_ABSENT, x->last_samples,
			  "nobody takes datagrams at %s", x->target);
	x->last_samples = 0;
}

static int udp_send(struct outside *o, struct outbox_message *m)
{
	struct influx_node *x = influx_of(o);
	ssize_t n = send(x->fd, m->data, m->len, MSG_NOSIGNAL);

	/* An error of a datagram before this one, which was not sent therefore. */
	if (n < 0 && errno == ECONNREFUSED) {
		note_refusal(x);
		n = send(x->fd, m->data, m->len, MSG_NOSIGNAL);
	}
	x->is_full = n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ECONNREFUSED);
	if (x->is_full) {
		outside_wake(o);
		return -EAGAIN;
	}
	if (n < 0 && errno == EMSGSIZE)
		return outside_fail(o, -EMSGSIZE, "a datagram of %zu bytes is too long", m->len);
	if (n < 0)
		return -errno;
	x->last_samples = m->samples;
	node_figure_add(o->node, INFLUX_REQUESTS, 1);
	return OUTSIDE_SENT;
}

static int udp_turn(struct outside *o)
{
	struct influx_node *x = influx_of(o);
	socklen_t len = sizeof(int);
	int error = 0;
	char buf[64];

	if (!getsockopt(x->fd, SOL_SOCKET, SO_ERROR, &error, &len) && error == ECONNREFUSED)
		note_refusal(x);
	/* Answers make no sense, and would be reported as ready for ever. */
	for (int i = 0; i < 64 && recv(x->fd, buf, sizeof(buf), MSG_DONTWAIT) >= 0; i++)
		;
	return 0;
}

static unsigned udp_wait(struct outside *o, struct pollfd fds[OUTSIDE_FDS], uint64_t *until_ns)
{
	struct influx_node *x = influx_of(o);

	fds[0] = (struct pollfd){
		.fd = x->fd,
		.events = (short)(POLLIN | (x->is_full ? POLLOUT : 0)),
	};
	return 1;
}

const struct outside_ops influx_udp_ops = {
	.open = udp_open,
	.close = udp_close,
	.send = udp_send,
	.turn = udp_turn,
	.wait = udp_wait,
	.print = influx_print,
};
