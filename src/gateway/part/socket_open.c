/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses and options of the socket of a node; see socket_ends.h. */
#define LOG_ROOM "gateway/node"
#include "gateway/part/socket_ends.h"

#include <errno.h>
#include <linux/filter.h>
#include <string.h>
#include <sys/socket.h>

#include "gateway/part/socket_option.h"
#include "util/log.h"

#define SEND_BUFFER_BYTES (1 << 20)

/* One socket has one family: an address in numbers decides. */
static int find_family(const struct socket_ends *e)
{
	const struct multicast *m = &e->in.multicast;
	int family = AF_UNSPEC;

	if (!layer_is_internet(e->layer))
		return AF_UNSPEC;
	if (e->in.address)
		family = socket_address_family(e->in.address);
	if (family == AF_UNSPEC && socket_ends_has_peer(e))
		family = socket_address_family(e->out.address);
	if (family == AF_UNSPEC && m->enabled && m->group)
		family = strchr(m->group, ':') ? AF_INET6 : AF_INET;
	return family;
}

int socket_ends_resolve(struct socket_ends *e)
{
	const char *key = "out.address";
	int family = find_family(e), ret = 0;
	char why[SOCKET_WHY_MAX];

	e->has_local = e->has_remote = false;
	if (socket_ends_has_peer(e)) {
		ret = socket_address_resolve(e->layer, e->out.address, family, &e->remote, why);
		e->has_remote = !ret;
		if (!ret && layer_is_internet(e->layer))
			family = e->remote.sa.sa_family;
	}
	if (!ret && e->in.address) {
		key = "in.address";
		ret = socket_address_resolve(e->layer, e->in.address, family, &e->local, why);
		e->has_local = !ret;
	}
	if (ret)
		log_error("%s: %s: %s", e->node->name, key, why);
	return ret;
}

int socket_ends_bind(struct socket_ends *e, int fd, const struct socket_address *at,
		     const char *what)
{
	const struct multicast *in = &e->in.multicast;
	const struct multicast *out = e->out.multicast.present ? &e->out.multicast : in;
	const char *node = e->node->name;
	char text[SOCKET_ADDRESS_MAX];
	int one = 1, zero = 0, ret = 0;

	if (e->layer == LAYER_UDP && at->sa.sa_family == AF_INET6)
		ret = socket_option_set(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero), node,
					"IPV6_V6ONLY");
	/* All receivers of a group on this host have the same port. Otherwise a second
	 * gateway must not take the first one's datagrams away. */
	if (!ret && in->enabled)
		ret = socket_option_set(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one), node,
					"SO_REUSEADDR");
	if (ret)
		return ret;
	socket_option_try(fd, SOL_SOCKET, SO_BROADCAST, 1, node, "SO_BROADCAST");
	if (e->has_local) {
		socket_address_print(at, text);
		if (bind(fd, &at->sa, at->len)) {
			ret = -errno;
			log_error("%s: in.address: cannot receive at %s: %s", node, text,
				  strerror(-ret));
			return ret;
		}
		log_info("%s: receiving%s at %s", node, what, text);
	}
	ret = multicast_join(fd, in, node);
	if (!ret && e->has_remote)
		ret = multicast_set_out(fd, out, e->remote.sa.sa_family, node);
	return ret;
}

static void set_buffer(struct socket_ends *e, int force, int option, int size, const char *name)
{
	/* Only a privileged process may exceed the machine's limit. */
	if (setsockopt(e->fd, SOL_SOCKET, force, &size, sizeof(size)))
		socket_option_try(e->fd, SOL_SOCKET, option, size, e->node->name, name);
}

int socket_ends_tune(struct socket_ends *e)
{
	const struct timeval block = { .tv_usec = SOCKET_BLOCK_MS * 1000 };
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { .len = 1, .filter = &nothing };
	const char *node = e->node->name;
	int ret;

	set_buffer(e, SO_RCVBUFFORCE, SO_RCVBUF, (int)e->in.buffer_size, "SO_RCVBUF");
	set_buffer(e, SO_SNDBUFFORCE, SO_SNDBUF, SEND_BUFFER_BYTES, "SO_SNDBUF");
	socket_option_try(e->fd, SOL_SOCKET, SO_RXQ_OVFL, 1, node, "SO_RXQ_OVFL");
	ret = socket_option_set(e->fd, SOL_SOCKET, SO_SNDTIMEO, &block, sizeof(block), node,
				"SO_SNDTIMEO");
	/* The kernel drops what no path reads, so that it does not fill the buffer. */
	if (!ret && !e->node->is_source)
		ret = socket_option_set(e->fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
					sizeof(filter), node, "SO_ATTACH_FILTER");
	return ret;
}
