/* SPDX-License-Identifier: BSD-2-Clause */
/* See stream_server.h. */
#define LOG_ROOM "gateway/stream"
#include "gateway/stream/stream_server.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "gateway/part/socket_option.h"
#include "gateway/plugin/node.h"
#include "util/clock.h"
#include "util/log.h"

#define BACKLOG 16
/* Without descriptors or memory for a connection the next one is accepted after so long. */
#define PAUSE_NS UINT64_C(50000000)

/* ---- life ---- */

int stream_server_init(struct stream_server *s, unsigned max, size_t size)
{
	s->size = size;
	s->clients = calloc(max + 1, size);
	s->fds = calloc(STREAM_SERVER_CLIENTS + max, sizeof(*s->fds));
	if (!s->clients || !s->fds)
		return -ENOMEM;
	s->max = max;
	for (unsigned i = 0; i < max; i++)
		stream_init(&stream_server_at(s, i)->stream, -1);
	return 0;
}

void stream_server_close_listener(struct stream_server *s)
{
	if (s->listener >= 0)
		close(s->listener);
	s->listener = -1;
}

void stream_server_free(struct stream_server *s)
{
	stream_server_close_listener(s);
	free(s->clients);
	free(s->fds);
	s->clients = NULL;
	s->fds = NULL;
	s->max = 0;
}

static int open_listener(const struct socket_address *own, const char *node, const char *key,
			 int (*prepare)(void *arg, int fd), void *arg)
{
	int fd = socket(own->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret = 0;
	char text[SOCKET_ADDRESS_MAX];

	if (fd >= 0 && prepare)
		ret = prepare(arg, fd);
	if (ret)
		goto err_close;
	/* The port may still have connections of an earlier run. */
	if (fd >= 0)
		socket_option_try(fd, SOL_SOCKET, SO_REUSEADDR, 1, node, "SO_REUSEADDR");
	if (fd >= 0 && own->sa.sa_family == AF_INET6)
		socket_option_try(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0, node, "IPV6_V6ONLY");
	if (fd >= 0 && !bind(fd, &own->sa, own->len) && !listen(fd, BACKLOG))
		return fd;
	ret = -errno;
	log_error("%s: %s: cannot listen on %s: %s", node, key, socket_address_print(own, text),
		  strerror(-ret));
err_close:
	if (fd >= 0)
		close(fd);
	return ret;
}

int stream_server_listen(struct stream_server *s, const struct socket_address *own,
			 const char *key, int (*prepare)(void *arg, int fd), void *arg)
{
	const char *name = s->node->name;
	char text[SOCKET_ADDRESS_MAX];

	s->listener = open_listener(own, name, key, prepare, arg);
	if (s->listener < 0)
		return s->listener;
	log_info("%s: listening on %s%s", name, socket_address_print(own, text),
		 s->peers && peers_are_all(s->peers) ? ", for every host that reaches it (peers)" : "");
	return 0;
}

int stream_server_listen_at(struct stream_server *s, const char *address, unsigned port,
			    const char *key)
{
	char text[SOCKET_ADDRESS_MAX + 32], why[SOCKET_WHY_MAX];
	struct socket_address own;
	int ret;

	if (port)
		snprintf(text, sizeof(text), strchr(address, ':') ? "[%s]:%u" : "%s:%u", address, port);
	ret = socket_address_resolve(LAYER_TCP_SERVER, port ? text : address, AF_UNSPEC, &own, why);
	if (!ret)
		return stream_server_listen(s, &own, key, NULL, NULL);
	log_error("%s: %s: %s", s->node->name, key, why);
	return ret;
}

/* ---- places ---- */

/* Does `a` give way before `b`? */
static bool is_idler(const struct stream_client *a, const struct stream_client *b)
{
	return a->heard != b->heard ? b->heard : a->heard_ns < b->heard_ns;
}

struct stream_client *stream_server_find_place(struct stream_server *s, uint64_t now_ns)
{
	struct stream_client *idle = NULL;

	for (unsigned i = 0; i < s->max; i++) {
		struct stream_client *k = stream_server_at(s, i);

		if (k->stream.fd < 0)
			return k;
		if (s->give_way && !k->stays && now_ns - k->heard_ns >= s->idle_ns &&
		    (!idle || is_idler(k, idle)))
			idle = k;
	}
	if (idle)
		s->give_way(s, idle);
	return idle;
}

void stream_server_enter(struct stream_server *s, struct stream_client *k, uint64_t now_ns)
{
	k->heard_ns = now_ns;
	k->heard = k->stays = false;
	node_figure_set(s->node, s->clients_figure, atomic_fetch_add(&s->count, 1) + 1);
}

void stream_server_leave(struct stream_server *s, struct stream_client *k)
{
	stream_close(&k->stream);
	node_figure_set(s->node, s->clients_figure, atomic_fetch_sub(&s->count, 1) - 1);
}

void stream_server_close(struct stream_server *s, struct stream_client *k, const char *why)
{
	char text[SOCKET_ADDRESS_MAX];

	if (fault_may_log(s->faults))
		log_info("%s: %s is gone: %s", s->node->name, socket_address_print(&k->peer, text),
			 why);
	stream_server_leave(s, k);
}

/* ---- new clients ---- */

static bool may_connect(const struct stream_server *s, const struct socket_address *from)
{
	return (!s->peers || peers_have(s->peers, &from->sa)) &&
	       (!s->only || socket_address_equal(from, s->only, false));
}

static void turn_away(struct stream_server *s, int fd, const struct socket_address *from,
		      bool allowed)
{
	char text[SOCKET_ADDRESS_MAX];

	close(fd);
	if (s->turned_away_figure)
		node_figure_add(s->node, s->turned_away_figure, 1);
	socket_address_print(from, text);
	if (!allowed)
		fault_note(s->faults, FAULT_FOREIGN, 1, "%s is turned away, %s does not have it",
			   text, s->peers_key);
	else if (s->logs_full)
		log_warn("%s: %s is turned away, there are %u peers already (%s)", s->node->name, text,
			 s->max, s->max_key);
	else
		fault_note(s->faults, FAULT_DROPPED, 1,
			   "%s is turned away, there are %u clients already (%s)", text, s->max,
			   s->max_key);
}

struct stream_client *stream_server_accept(struct stream_server *s, uint64_t now_ns)
{
	struct socket_address from = { .len = sizeof(from.storage) };
	int fd = accept4(s->listener, &from.sa, &from.len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct stream_client *k = NULL;
	char text[SOCKET_ADDRESS_MAX];
	bool allowed;

	if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) {
		fault_note(s->faults, FAULT_DROPPED, 1, "cannot accept a connection: %s",
			   strerror(errno));
		s->accept_ns = now_ns + PAUSE_NS;
	}
	if (fd < 0)
		return NULL;
	allowed = may_connect(s, &from);
	if (allowed)
		k = stream_server_find_place(s, now_ns);
	if (!k) {
		turn_away(s, fd, &from, allowed);
		return NULL;
	}
	stream_init(&k->stream, fd);
	k->peer = from;
	stream_server_enter(s, k, now_ns);
	if (fault_may_log(s->faults))
		log_info("%s: %s has connected", s->node->name, socket_address_print(&from, text));
	return k;
}

void stream_server_watch_peer(int fd, const char *node)
{
	socket_option_try(fd, IPPROTO_TCP, TCP_NODELAY, 1, node, "TCP_NODELAY");
	/* A host that went down does not end its connections. So the kernel probes the peer, and
	 * does not repeat for ever what it has sent. */
	socket_option_try(fd, SOL_SOCKET, SO_KEEPALIVE, 1, node, "SO_KEEPALIVE");
	socket_option_try(fd, IPPROTO_TCP, TCP_KEEPIDLE, 10, node, "TCP_KEEPIDLE");
	socket_option_try(fd, IPPROTO_TCP, TCP_KEEPINTVL, 5, node, "TCP_KEEPINTVL");
	socket_option_try(fd, IPPROTO_TCP, TCP_KEEPCNT, 3, node, "TCP_KEEPCNT");
	socket_option_try(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 30000, node, "TCP_USER_TIMEOUT");
}

void stream_server_pause(const struct stream_server *s)
{
	uint64_t now = clock_now_ns();
	struct timespec t = timespec_from_ns(s->accept_ns > now ? s->accept_ns - now : 0);

	if (s->accept_ns > now)
		nanosleep(&t, NULL);
}

unsigned stream_server_fill(struct stream_server *s, int wake_fd, uint64_t now_ns)
{
	unsigned count = STREAM_SERVER_CLIENTS;

	s->fds[STREAM_SERVER_WAKE] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	s->fds[STREAM_SERVER_LISTENER] = (struct pollfd){
		.fd = s->accept_ns > now_ns ? -1 : s->listener,
		.events = POLLIN,
	};
	for (unsigned i = 0; i < s->max; i++) {
		const struct stream_client *k = stream_server_at(s, i);
		struct pollfd *p = &s->fds[STREAM_SERVER_CLIENTS + i];

		*p = (struct pollfd){ .fd = k->stream.fd };
		if (k->stream.fd < 0)
			continue;
		p->events = s->events(k);
		count = STREAM_SERVER_CLIENTS + i + 1;
	}
	return count;
}
