/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and sockets of a node rtp; see rtp.h. */
#define LOG_ROOM "gateway/rtp"
#include "gateway/node/rtp/rtp.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/log.h"

static int fail_errno(const struct rtp_node *r, const char *what)
{
	int err = errno;

	log_error("%s: %s: %s", r->ends.node->name, what, strerror(err));
	return -err;
}

static unsigned port_of(const struct socket_address *a)
{
	return ntohs(a->in4.sin_port); /* at the same place for IPv6 */
}

static void set_port(struct socket_address *a, unsigned port)
{
	a->in4.sin_port = htons((uint16_t)port);
}

/* RFC 3550 section 11: data take the even port, reports the odd one above it. */
static void make_even(const struct rtp_node *r, const char *key, struct socket_address *a)
{
	unsigned port = port_of(a);

	if (!(port & 1))
		return;
	set_port(a, port - 1);
	log_warn("%s: %s: port %u is odd: packets take %u, reports %u", r->ends.node->name, key,
		 port, port - 1, port);
}

/* Both ends have to know the port of an address: it cannot be one that the kernel chooses. */
static int check_port(struct rtp_node *r, const char *key, const char *text,
		      struct socket_address *a)
{
	if (port_of(a) < 2) {
		log_error("%s: %s: '%.80s' has no port that both ends can know",
			  r->ends.node->name, key, text);
		return -EINVAL;
	}
	make_even(r, key, a);
	return 0;
}

static int resolve(struct rtp_node *r)
{
	int ret = socket_ends_resolve(&r->ends);

	if (!ret && r->ends.has_remote)
		ret = check_port(r, "out.address", r->ends.out.address, &r->ends.remote);
	if (!ret && r->ends.has_local)
		ret = check_port(r, "in.address", r->ends.in.address, &r->ends.local);
	return ret;
}

/* A socket for in.address; `port_more` above its port. */
static int open_socket(struct rtp_node *r, unsigned port_more, struct socket_address *at)
{
	int fd;

	*at = r->ends.has_local ? r->ends.local : r->ends.remote;
	if (r->ends.has_local)
		set_port(at, port_of(at) + port_more);
	fd = socket(at->sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	return fd < 0 ? fail_errno(r, "cannot open a socket") : fd;
}

/* The address from which packets to the peer go: theirs are known by it when they return. */
static void find_own_address(struct rtp_node *r)
{
	struct socket_address *own = &r->session.local;
	int fd;

	if (!r->ends.has_remote)
		return;
	fd = socket(r->ends.remote.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	own->len = sizeof(own->storage);
	if (fd < 0 || connect(fd, &r->ends.remote.sa, r->ends.remote.len) ||
	    getsockname(fd, &own->sa, &own->len))
		own->len = 0;
	if (fd >= 0)
		close(fd);
	if (r->ends.has_local)
		set_port(own, port_of(&r->ends.local));
	r->session.to_itself = own->len && socket_address_equal(own, &r->ends.remote, true);
}

int rtp_open(struct rtp_node *r)
{
	struct socket_address at;
	int ret = resolve(r);

	if (ret)
		return ret;
	r->ends.fd = open_socket(r, 0, &at);
	if (r->ends.fd < 0)
		return r->ends.fd;
	if (r->ends.has_remote)
		r->session.remote = r->ends.remote;
	find_own_address(r);
	ret = socket_ends_tune(&r->ends);
	return ret ? ret : socket_ends_bind(&r->ends, r->ends.fd, &at, " packets");
}

int rtp_open_rtcp(struct rtp_node *r, int *fd, struct socket_address *remote)
{
	struct socket_address at;

	*remote = r->ends.remote;
	set_port(remote, port_of(remote) + 1);
	*fd = open_socket(r, 1, &at);
	return *fd < 0 ? *fd : socket_ends_bind(&r->ends, *fd, &at, " reports");
}

bool rtp_is_peer(struct rtp_node *r, const struct socket_address *from, int port_more)
{
	struct socket_address wanted = r->ends.remote;
	char text[SOCKET_ADDRESS_MAX];

	if (port_more > 0)
		set_port(&wanted, port_of(&wanted) + (unsigned)port_more);
	if (socket_address_equal(from, &wanted, port_more >= 0))
		return true;
	fault_note(&r->ends.faults, FAULT_FOREIGN, 1, "from %s", socket_address_print(from, text));
	return false;
}
