/* SPDX-License-Identifier: BSD-2-Clause */
/* See listener.h. */
#define LOG_ROOM "gateway/part"
#include "gateway/part/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gateway/part/socket_option.h"
#include "util/log.h"

#define BACKLOG 16

static void set_options(int fd, const struct socket_address *own, const char *node)
{
	/* The port may still have connections of an earlier run. */
	socket_option_try(fd, SOL_SOCKET, SO_REUSEADDR, 1, node, "SO_REUSEADDR");
	if (own->sa.sa_family == AF_INET6)
		socket_option_try(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0, node, "IPV6_V6ONLY");
}

int listener_open(const struct socket_address *own, const char *node, const char *key,
		  int (*prepare)(void *arg, int fd), void *arg)
{
	int fd = socket(own->sa.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret = 0;
	char text[SOCKET_ADDRESS_MAX];

	if (fd >= 0 && prepare)
		ret = prepare(arg, fd);
	if (ret)
		goto err_close;
	if (fd >= 0)
		set_options(fd, own, node);
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

int listener_accept(int listener, struct socket_address *peer, struct fault_counters *f)
{
	int fd;

	peer->len = sizeof(peer->storage);
	fd = accept4(listener, &peer->sa, &peer->len, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		return fd;
	if (errno != EMFILE && errno != ENFILE && errno != ENOMEM)
		return -EAGAIN;
	fault_note(f, FAULT_DROPPED, 1, "cannot accept a connection: %s", strerror(errno));
	return -EMFILE;
}

void listener_watch_peer(int fd, const char *node)
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
