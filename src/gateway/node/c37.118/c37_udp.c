/* SPDX-License-Identifier: BSD-2-Clause */
/* See c37_udp.h. */
#define LOG_ROOM "gateway/c37.118"
#include "gateway/node/c37.118/c37_udp.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gateway/part/socket_option.h"
#include "util/clock.h"
#include "util/log.h"

/* Datagrams of one turn. */
#define READS_MAX 16

/* ---- sending ---- */

static void note_sent(struct c37_node *c, ssize_t n)
{
	/* The host said of an earlier one that nobody listens, or there is no room now. */
	node_figure_add(c->node, n >= 0 ? C37_FRAMES_SENT : C37_DATAGRAMS_LOST, 1);
}

void c37_udp_send_to(struct c37_node *c, int fd, const uint8_t *frame, size_t len)
{
	note_sent(c, send(fd, frame, len, MSG_DONTWAIT | MSG_NOSIGNAL));
}

void c37_udp_send(struct c37_udp *u, const uint8_t *frame, size_t len)
{
	for (unsigned i = 0; i < u->destinations; i++)
		c37_udp_send_to(u->node, u->fds[i], frame, len);
	for (unsigned i = 0; i < u->client_count; i++)
		note_sent(u->node, sendto(u->fd, frame, len, MSG_DONTWAIT | MSG_NOSIGNAL,
					  &u->clients[i].sa, u->clients[i].len));
}

/* Each frame in a datagram of its own. */
static void send_frames(int fd, const struct socket_address *to, const uint8_t *data, size_t len)
{
	size_t at = 0, skip;
	struct c37_frame f;
	const char *why;

	while (at < len) {
		int n = c37_next(data + at, len - at, &f, &skip, &why);

		if (n <= 0)
			return;
		sendto(fd, data + at, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL, to ? &to->sa : NULL,
		       to ? to->len : 0);
		at += (size_t)n;
	}
}

/* ---- clients ---- */

static unsigned find(const struct c37_udp *u, const struct socket_address *from)
{
	unsigned i = 0;

	while (i < u->client_count && !socket_address_equal(&u->clients[i], from, true))
		i++;
	return i;
}

static void forget(struct c37_udp *u, unsigned i, const char *why)
{
	char text[SOCKET_ADDRESS_MAX];

	if (fault_may_log(&u->node->faults))
		log_info("node %s: %s gets no more data by UDP: %s", u->node->node->name,
			 socket_address_print(&u->clients[i], text), why);
	u->clients[i] = u->clients[--u->client_count];
	node_figure_set(u->node->node, C37_UDP_CLIENTS, u->client_count);
}

static void add(struct c37_udp *u, const struct socket_address *from)
{
	char text[SOCKET_ADDRESS_MAX];

	socket_address_print(from, text);
	if (u->client_count == u->client_max) {
		fault_note(&u->node->faults, FAULT_DROPPED, 1,
			   "%s asks for data by UDP, there are %u clients already (out.max_clients)",
			   text, u->client_max);
		return;
	}
	u->clients[u->client_count++] = *from;
	node_figure_set(u->node->node, C37_UDP_CLIENTS, u->client_count);
	if (fault_may_log(&u->node->faults))
		log_info("node %s: %s gets data by UDP", u->node->node->name, text);
}

static void obey(struct c37_udp *u, const struct c37_frame *f, const struct socket_address *from,
		 uint8_t *answer)
{
	unsigned i = find(u, from);
	const struct c37_answer a =
		c37_source_answer(&u->node->source, f, i < u->client_count,
				  (int64_t)timespec_to_ns(clock_realtime()), answer, C37_ANSWER_MAX);

	if (!a.known) {
		fault_note(&u->node->faults, FAULT_FOREIGN, 1,
			   "a frame for stream %u by UDP; this one has IDCODE %u", f->idcode,
			   u->node->source.idcode);
		return;
	}
	node_figure_add(u->node->node, C37_COMMANDS, 1);
	if (a.sends && i == u->client_count)
		add(u, from);
	else if (!a.sends && i < u->client_count)
		forget(u, i, "it has said so");
	send_frames(u->fd, from, answer, a.len);
}

static void take_one(struct c37_udp *u, size_t len, const struct socket_address *from,
		     uint8_t *answer)
{
	char text[SOCKET_ADDRESS_MAX];
	struct c37_frame f;
	const char *why = "it is not complete";
	size_t skip;

	if (!peers_have(&u->node->out.peers, &from->sa)) {
		fault_note(&u->node->faults, FAULT_FOREIGN, 1,
			   "a datagram from %s, which out.peers does not have",
			   socket_address_print(from, text));
		return;
	}
	if (c37_next(u->datagram, len, &f, &skip, &why) <= 0)
		fault_note(&u->node->faults, FAULT_MALFORMED, 1, "%s", why);
	else
		obey(u, &f, from, answer);
}

/* Hosts that say that nobody listens there. */
static void take_errors(struct c37_udp *u)
{
	for (unsigned k = 0; k < READS_MAX; k++) {
		struct socket_address to = { .len = sizeof(to.storage) };
		char control[512], data[64];
		struct iovec part = { data, sizeof(data) };
		struct msghdr m = { .msg_name = &to.sa, .msg_namelen = to.len, .msg_iov = &part,
				    .msg_iovlen = 1, .msg_control = control,
				    .msg_controllen = sizeof(control) };
		unsigned i;

		if (recvmsg(u->fd, &m, MSG_ERRQUEUE | MSG_DONTWAIT) < 0)
			return;
		to.len = m.msg_namelen;
		i = find(u, &to);
		if (i < u->client_count)
			forget(u, i, "nobody listens there");
	}
}

void c37_udp_take(struct c37_udp *u, uint8_t *answer)
{
	take_errors(u);
	for (unsigned k = 0; k < READS_MAX; k++) {
		struct socket_address from = { .len = sizeof(from.storage) };
		ssize_t n = recvfrom(u->fd, u->datagram, C37_FRAME_MAX, MSG_DONTWAIT, &from.sa,
				     &from.len);

		if (n < 0)
			return;
		take_one(u, (size_t)n, &from, answer);
	}
}

uint64_t c37_udp_tick(struct c37_udp *u, uint64_t now_ns, uint8_t *answer)
{
	size_t len;

	if (!u->destinations)
		return UINT64_MAX;
	if (now_ns < u->config_ns)
		return u->config_ns;
	u->config_ns = now_ns + (uint64_t)(u->node->out.config_s * 1e9);
	len = c37_source_config(&u->node->source, C37_CFG2, C37_VERSION_2005,
				(int64_t)timespec_to_ns(clock_realtime()), answer, C37_ANSWER_MAX);
	for (unsigned i = 0; i < u->destinations; i++)
		send_frames(u->fds[i], NULL, answer, len);
	return u->config_ns;
}

/* ---- life ---- */

int c37_udp_connect(const struct socket_address *host, uint16_t port)
{
	struct socket_address to = *host;
	int fd = socket(to.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret;

	if (fd < 0)
		return -errno;
	if (port && to.sa.sa_family == AF_INET6)
		to.in6.sin6_port = htons(port);
	else if (port)
		to.in4.sin_port = htons(port);
	if (!connect(fd, &to.sa, to.len))
		return fd;
	ret = -errno;
	close(fd);
	return ret;
}

static int open_destination(struct c37_udp *u, const char *text)
{
	const char *name = u->node->node->name;
	char why[SOCKET_WHY_MAX];
	struct socket_address to;
	int fd = socket_address_resolve(LAYER_UDP, text, AF_UNSPEC, &to, why);

	if (fd) {
		log_error("node %s: out.destinations: %s: %s", name, text, why);
		return fd;
	}
	fd = c37_udp_connect(&to, 0);
	if (fd < 0) {
		log_error("node %s: out.destinations: %s: %s", name, text, strerror(-fd));
		return fd;
	}
	u->fds[u->destinations++] = fd;
	return 0;
}

static int open_commands(struct c37_udp *u)
{
	const char *name = u->node->node->name;
	char why[SOCKET_WHY_MAX];
	struct socket_address at;
	int ret = socket_address_resolve(LAYER_UDP, u->node->out.udp_address, AF_UNSPEC, &at, why);

	if (ret) {
		log_error("node %s: out.udp_address: %s", name, why);
		return ret;
	}
	u->fd = socket(at.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (u->fd < 0 || bind(u->fd, &at.sa, at.len)) {
		ret = -errno;
		log_error("node %s: out.udp_address: %s: %s", name, u->node->out.udp_address,
			  strerror(-ret));
		return ret;
	}
	socket_option_try(u->fd, IPPROTO_IP, IP_RECVERR, 1, name, "IP_RECVERR");
	if (at.sa.sa_family == AF_INET6)
		socket_option_try(u->fd, IPPROTO_IPV6, IPV6_RECVERR, 1, name, "IPV6_RECVERR");
	log_info("node %s: commands are taken by UDP at %s", name, socket_address_print(&at, why));
	return 0;
}

int c37_udp_open(struct c37_udp *u, struct c37_node *c)
{
	size_t i;
	json_t *e;
	int ret = 0;

	*u = (struct c37_udp){ .node = c, .fd = -1, .client_max = (unsigned)c->out.max_clients };
	u->clients = calloc(u->client_max, sizeof(*u->clients));
	u->datagram = malloc(C37_FRAME_MAX);
	if (!u->clients || !u->datagram)
		return -ENOMEM;
	if (c->out.udp_address)
		ret = open_commands(u);
	json_array_foreach(c->out.destinations, i, e)
		ret = ret ?: open_destination(u, json_string_value(e));
	return ret;
}

void c37_udp_close(struct c37_udp *u)
{
	for (unsigned i = 0; i < u->destinations; i++)
		close(u->fds[i]);
	if (u->node && u->fd >= 0)
		close(u->fd);
	free(u->clients);
	free(u->datagram);
	*u = (struct c37_udp){ .fd = -1 };
}
