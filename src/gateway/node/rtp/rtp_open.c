/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and sockets of a node rtp; see rtp.h. */
#define LOG_ROOM "gateway/rtp"
#include "gateway/node/rtp/rtp.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/log.h"

/* A write waits this long for room in the socket's buffer. */
#define SEND_WAIT_US 100000

static int fail_errno(const struct rtp_node *r, const char *what)
{
	int err = errno;

	log_error("%s: %s: %s", r->node->name, what, strerror(err));
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
	log_warn("%s: %s: port %u is odd: packets take %u, reports %u", r->node->name, key,
		 port, port - 1, port);
}

static int resolve_one(struct rtp_node *r, const char *key, const char *text, int *family,
		       struct socket_address *out)
{
	char why[SOCKET_WHY_MAX];
	int ret = socket_address_resolve(LAYER_UDP, text, *family, out, why);

	if (!ret && port_of(out) < 2) {
		snprintf(why, sizeof(why), "'%.80s' has no port that both ends can know", text);
		ret = -EINVAL;
	}
	if (ret) {
		log_error("%s: %s: %s", r->node->name, key, why);
		return ret;
	}
	*family = out->sa.sa_family;
	make_even(r, key, out);
	return 0;
}

/* One socket has one family: what is written in numbers decides. */
static int resolve(struct rtp_node *r)
{
	const struct multicast *m = &r->in.multicast;
	int family = AF_UNSPEC, ret = 0;

	if (r->in.address)
		family = socket_address_family(r->in.address);
	if (family == AF_UNSPEC && r->out.address)
		family = socket_address_family(r->out.address);
	if (family == AF_UNSPEC && m->enabled && m->group)
		family = strchr(m->group, ':') ? AF_INET6 : AF_INET;
	r->has_local = r->has_remote = false;
	if (r->out.address) {
		ret = resolve_one(r, "out.address", r->out.address, &family, &r->remote);
		if (ret)
			return ret;
		r->has_remote = true;
	}
	if (r->in.address) {
		ret = resolve_one(r, "in.address", r->in.address, &family, &r->local);
		r->has_local = !ret;
	}
	return ret;
}

static void try_option(const struct rtp_node *r, int fd, int level, int option, int value,
		       const char *name)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		log_debug("%s: %s: %s", r->node->name, name, strerror(errno));
}

static void set_buffers(const struct rtp_node *r, int fd)
{
	int size = (int)r->in.buffer_size;

	/* Beyond the machine's limit only with the right to it. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		try_option(r, fd, SOL_SOCKET, SO_RCVBUF, size, "SO_RCVBUF");
	size = 1 << 20;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		try_option(r, fd, SOL_SOCKET, SO_SNDBUF, size, "SO_SNDBUF");
}

/* A socket bound to in.address, `port_more` above its port, and a member of the group. */
static int open_socket(struct rtp_node *r, unsigned port_more, int *out)
{
	const struct multicast *m = r->out.multicast.present ? &r->out.multicast :
							       &r->in.multicast;
	struct socket_address at = r->has_local ? r->local : r->remote;
	char text[SOCKET_ADDRESS_MAX];
	int fd = socket(at.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), ret = 0;

	if (fd < 0)
		return fail_errno(r, "cannot open a socket");
	*out = fd;
	try_option(r, fd, SOL_SOCKET, SO_BROADCAST, 1, "SO_BROADCAST");
	if (at.sa.sa_family == AF_INET6)
		try_option(r, fd, IPPROTO_IPV6, IPV6_V6ONLY, 0, "IPV6_V6ONLY");
	/* All receivers of a group on this host have the same port. Otherwise a second
	 * gateway must not take the first one's packets away. */
	if (r->in.multicast.enabled)
		try_option(r, fd, SOL_SOCKET, SO_REUSEADDR, 1, "SO_REUSEADDR");
	if (r->has_local) {
		set_port(&at, port_of(&r->local) + port_more);
		if (bind(fd, &at.sa, at.len)) {
			ret = -errno;
			log_error("%s: in.address: cannot receive at %s: %s", r->node->name,
				  socket_address_print(&at, text), strerror(-ret));
			return ret;
		}
		log_info("%s: receiving %s at %s", r->node->name,
			 port_more ? "reports" : "packets", socket_address_print(&at, text));
	}
	ret = multicast_join(fd, &r->in.multicast, r->node->name);
	if (!ret && r->has_remote)
		ret = multicast_set_out(fd, m, at.sa.sa_family, r->node->name);
	return ret;
}

/* The address from which packets to the peer go: theirs are known by it when they return. */
static void find_own_address(struct rtp_node *r)
{
	struct socket_address *own = &r->session.local;
	int fd;

	if (!r->has_remote)
		return;
	fd = socket(r->remote.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	own->len = sizeof(own->storage);
	if (fd < 0 || connect(fd, &r->remote.sa, r->remote.len) ||
	    getsockname(fd, &own->sa, &own->len))
		own->len = 0;
	if (fd >= 0)
		close(fd);
	if (r->has_local)
		set_port(own, port_of(&r->local));
	r->session.to_itself = own->len && socket_address_equal(own, &r->remote, true);
}

int rtp_open(struct rtp_node *r)
{
	const struct timeval wait = { .tv_usec = SEND_WAIT_US };
	/* A program that takes nothing. */
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { .len = 1, .filter = &nothing };
	int ret = resolve(r);

	if (!ret)
		ret = open_socket(r, 0, &r->fd);
	if (ret)
		return ret;
	if (r->has_remote)
		r->session.remote = r->remote;
	find_own_address(r);
	set_buffers(r, r->fd);
	try_option(r, r->fd, SOL_SOCKET, SO_RXQ_OVFL, 1, "SO_RXQ_OVFL");
	if (setsockopt(r->fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait)))
		return fail_errno(r, "SO_SNDTIMEO");
	/* What no path reads must not fill the buffer. */
	if (!r->node->is_source &&
	    setsockopt(r->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)))
		return fail_errno(r, "SO_ATTACH_FILTER");
	return 0;
}

int rtp_open_rtcp(struct rtp_node *r, int *fd, struct socket_address *remote)
{
	*remote = r->remote;
	set_port(remote, port_of(remote) + 1);
	return open_socket(r, 1, fd);
}

bool rtp_is_peer(struct rtp_node *r, const struct socket_address *from, int port_more)
{
	struct socket_address wanted = r->remote;
	char text[SOCKET_ADDRESS_MAX];

	if (port_more > 0)
		set_port(&wanted, port_of(&wanted) + (unsigned)port_more);
	if (socket_address_equal(from, &wanted, port_more >= 0))
		return true;
	fault_note(&r->faults, FAULT_FOREIGN, 1, "from %s", socket_address_print(from, text));
	return false;
}
