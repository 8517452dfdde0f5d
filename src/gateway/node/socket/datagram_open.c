/* SPDX-License-Identifier: BSD-2-Clause */
/* Sockets of datagrams: options, multicast groups, binding. */
#define LOG_ROOM "gateway/socket"
#include "gateway/node/socket/datagram.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/log.h"

static int fail_errno(const struct socket_node *s, const char *what)
{
	int err = errno;
	const char *hint = "";

	if (err == EPERM && (s->layer == LAYER_IP || s->layer == LAYER_ETH))
		hint = "; layer ip and eth need root or CAP_NET_RAW";
	log_error("%s: %s: %s%s", s->node->name, what, strerror(err), hint);
	return -err;
}

/* An option that helps, but without which it goes too. */
static void try_option(const struct socket_node *s, int level, int option,
		       int value, const char *name)
{
	if (setsockopt(s->datagram->fd, level, option, &value, sizeof(value)))
		log_debug("%s: %s: %s", s->node->name, name, strerror(errno));
}

static int need_option(const struct socket_node *s, int level, int option,
		       const void *value, size_t size, const char *name)
{
	if (!setsockopt(s->datagram->fd, level, option, value, (socklen_t)size))
		return 0;
	return fail_errno(s, name);
}

int socket_set_mark(struct socket_node *s, int fd)
{
	int mark = (int)(uint32_t)s->out.fwmark, err;

	if (s->out.fwmark < 0)
		return 0;
	if (!setsockopt(fd, SOL_SOCKET, SO_MARK, &mark, sizeof(mark)))
		return 0;
	err = errno;
	log_error("%s: out.fwmark: %s%s", s->node->name, strerror(err),
		  err == EPERM ? "; a mark needs root or CAP_NET_ADMIN" : "");
	return -err;
}

static void set_buffers(struct socket_node *s)
{
	int size = (int)s->in.buffer_size, fd = s->datagram->fd;

	/* Beyond the machine's limit only with the right to it. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)))
		try_option(s, SOL_SOCKET, SO_RCVBUF, size, "SO_RCVBUF");
	size = 1 << 20;
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)))
		try_option(s, SOL_SOCKET, SO_SNDBUF, size, "SO_SNDBUF");
}

static int set_options(struct socket_node *s)
{
	const struct timeval block = { .tv_usec = SOCKET_BLOCK_MS * 1000 };
	/* A program that takes nothing. */
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	const struct sock_fprog filter = { .len = 1, .filter = &nothing };
	int one = 1, ret;

	set_buffers(s);
	ret = need_option(s, SOL_SOCKET, SO_SNDTIMEO, &block, sizeof(block),
			  "SO_SNDTIMEO");
	if (!ret && s->in.stamp == STAMP_KERNEL)
		ret = need_option(s, SOL_SOCKET, SO_TIMESTAMPNS, &one,
				  sizeof(one), "in.received = kernel");
	if (!ret)
		ret = socket_set_mark(s, s->datagram->fd);
	try_option(s, SOL_SOCKET, SO_RXQ_OVFL, 1, "SO_RXQ_OVFL");
	try_option(s, SOL_SOCKET, SO_BROADCAST, 1, "SO_BROADCAST");
	if (s->wait.polling == POLLING_BUSY || s->wait.polling == POLLING_ADAPTIVE)
		try_option(s, SOL_SOCKET, SO_BUSY_POLL,
			   s->wait.polling == POLLING_BUSY ? 50 :
					     (int)MIN(s->in.spin_us, 1000),
			   "SO_BUSY_POLL");
	/* Raw sockets also receive packets for others, which are not read. */
	if (!ret && !s->node->is_source)
		ret = need_option(s, SOL_SOCKET, SO_ATTACH_FILTER, &filter,
				  sizeof(filter), "SO_ATTACH_FILTER");
	return ret;
}

int socket_resolve(struct socket_node *s)
{
	const struct multicast *m = &s->in.multicast;
	/* A server sends to whoever has connected. */
	bool use_out = s->out.address && (s->layer != LAYER_TCP_SERVER ||
					  s->verify_source);
	char why[SOCKET_WHY_MAX];
	int family = AF_UNSPEC, ret = 0;

	/* One socket has one family: what is written in numbers decides. */
	if (s->in.address && layer_is_internet(s->layer))
		family = socket_address_family(s->in.address);
	if (family == AF_UNSPEC && use_out && layer_is_internet(s->layer))
		family = socket_address_family(s->out.address);
	if (family == AF_UNSPEC && m->enabled && m->group)
		family = strchr(m->group, ':') ? AF_INET6 : AF_INET;
	s->has_local = s->has_remote = false;
	if (use_out) {
		ret = socket_address_resolve(s->layer, s->out.address, family,
					     &s->remote, why);
		if (ret) {
			log_error("%s: out.address: %s", s->node->name, why);
			return ret;
		}
		s->has_remote = true;
		if (layer_is_internet(s->layer))
			family = s->remote.sa.sa_family;
	}
	if (s->in.address) {
		ret = socket_address_resolve(s->layer, s->in.address, family,
					     &s->local, why);
		if (ret)
			log_error("%s: in.address: %s", s->node->name, why);
		s->has_local = !ret;
	}
	return ret;
}

/*
 * A regular file at our own address, as mktemp(1) makes one to have a name: it goes.
 * One that holds something may be meant for something else: it is moved aside.
 */
static int clear_file(struct socket_node *s, const char *path, off_t size)
{
	char aside[sizeof(s->local.un.sun_path) + 8];
	int ret;

	if (!size) {
		log_warn("%s: in.address: the empty regular file '%s' stands in the place of the socket, it is removed",
			 s->node->name, path);
		return unlink(path) ? -errno : 0;
	}
	snprintf(aside, sizeof(aside), "%s.stale", path);
	if (!renameat2(AT_FDCWD, path, AT_FDCWD, aside, RENAME_NOREPLACE)) {
		log_warn("%s: in.address: a regular file of %jd bytes stands in the place of the socket '%s', it is called '%s' now",
			 s->node->name, (intmax_t)size, path, aside);
		return 0;
	}
	ret = -errno;
	log_error("%s: in.address: a regular file stands in the place of the socket '%s' and cannot be moved to '%s': %s; remove it, or choose another address",
		  s->node->name, path, aside, strerror(-ret));
	return ret;
}

/* What is left of a process that is no more may go; a living one may not. Nothing
 * but what stands at the configured address itself: no link is followed. */
static int clear_path(struct socket_node *s)
{
	const char *path = s->local.un.sun_path;
	struct stat st;
	int fd, err;

	if (!*path || lstat(path, &st))
		return 0;
	if (S_ISREG(st.st_mode))
		return clear_file(s, path, st.st_size);
	if (!S_ISSOCK(st.st_mode)) {
		log_error("%s: in.address: '%s' is there and is neither a socket nor a regular file; remove it, or choose another address",
			  s->node->name, path);
		return -EEXIST;
	}
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return fail_errno(s, "socket");
	err = connect(fd, &s->local.sa, s->local.len) ? errno : 0;
	close(fd);
	if (err != ECONNREFUSED) {
		log_error("%s: in.address: another process receives at '%s'",
			  s->node->name, path);
		return -EADDRINUSE;
	}
	unlink(path);
	return 0;
}

static int bind_local(struct socket_node *s)
{
	struct datagram *d = s->datagram;
	int one = 1, zero = 0, ret = 0;
	char text[SOCKET_ADDRESS_MAX];

	if (s->layer == LAYER_UDP && s->local.sa.sa_family == AF_INET6)
		ret = need_option(s, IPPROTO_IPV6, IPV6_V6ONLY, &zero,
				  sizeof(zero), "IPV6_V6ONLY");
	/* All receivers of a group on this host have the same port. Otherwise
	 * a second gateway must not take the first one's datagrams away. */
	if (!ret && s->in.multicast.enabled)
		ret = need_option(s, SOL_SOCKET, SO_REUSEADDR, &one,
				  sizeof(one), "SO_REUSEADDR");
	if (!ret && s->layer == LAYER_UNIX)
		ret = clear_path(s);
	if (ret)
		return ret;
	if (bind(d->fd, &s->local.sa, s->local.len)) {
		ret = -errno;
		log_error("%s: in.address: cannot receive at %s: %s",
			  s->node->name, socket_address_print(&s->local, text),
			  strerror(-ret));
		return ret;
	}
	if (s->layer == LAYER_UNIX && s->local.un.sun_path[0])
		d->unlink_path = strdup(s->local.un.sun_path);
	log_info("%s: receiving at %s", s->node->name,
		 socket_address_print(&s->local, text));
	return 0;
}

/* The bytes that one datagram may have. */
static int find_size_max(struct socket_node *s)
{
	struct ifreq request = { 0 };
	size_t max;

	switch (s->layer) {
	case LAYER_UDP:
		max = s->remote.sa.sa_family == AF_INET6 ? 65527 : 65507;
		break;
	case LAYER_IP:
		max = s->remote.sa.sa_family == AF_INET6 ? 65535 : 65515;
		break;
	case LAYER_ETH:
		if_indextoname((unsigned)s->remote.ll.sll_ifindex,
			       request.ifr_name);
		if (ioctl(s->datagram->fd, SIOCGIFMTU, &request))
			return fail_errno(s, "the interface's MTU");
		max = (size_t)request.ifr_mtu;
		break;
	default:
		max = DATAGRAM_MAX;
	}
	if (s->out.datagram_size)
		max = MIN(max, (size_t)s->out.datagram_size);
	s->datagram->tx.size_max = max;
	return 0;
}

static int open_socket(struct socket_node *s)
{
	const struct socket_address *a = s->has_local ? &s->local : &s->remote;
	int type = s->layer == LAYER_IP ? SOCK_RAW : SOCK_DGRAM, protocol = 0;
	struct datagram *d = s->datagram;
	struct ifreq request = { 0 };

	if (s->layer == LAYER_IP)
		protocol = a->protocol;
	else if (s->layer == LAYER_ETH)
		protocol = a->ll.sll_protocol;
	d->fd = socket(a->sa.sa_family, type | SOCK_CLOEXEC, protocol);
	if (d->fd < 0)
		return fail_errno(s, "cannot open a socket");
	if (s->layer == LAYER_ETH) {
		if_indextoname((unsigned)a->ll.sll_ifindex, request.ifr_name);
		d->accept_others = !ioctl(d->fd, SIOCGIFFLAGS, &request) &&
				   request.ifr_flags & IFF_LOOPBACK;
	}
	return 0;
}

static int allocate(struct socket_node *s)
{
	struct datagram_rx *rx = &s->datagram->rx;
	struct datagram_tx *tx = &s->datagram->tx;

	/* Pages that are never used cost nothing. */
	rx->buffers = malloc(RX_BATCH * (size_t)(DATAGRAM_MAX + 1));
	tx->arena = malloc(TX_ARENA);
	if (!rx->buffers || !tx->arena)
		return -ENOMEM;
	rx->want = 2;
	for (unsigned i = 0; i < RX_BATCH; i++) {
		rx->pieces[i].iov_base =
			rx->buffers + i * (size_t)(DATAGRAM_MAX + 1);
		rx->pieces[i].iov_len = DATAGRAM_MAX;
		rx->headers[i].msg_hdr = (struct msghdr){
			.msg_iov = &rx->pieces[i],
			.msg_iovlen = 1,
			.msg_control = rx->control[i],
		};
	}
	for (unsigned i = 0; i < TX_BATCH; i++)
		tx->headers[i].msg_hdr = (struct msghdr){
			.msg_name = &s->remote.storage,
			.msg_namelen = s->remote.len,
			.msg_iov = &tx->pieces[i],
			.msg_iovlen = 1,
		};
	return 0;
}

int datagram_start(struct socket_node *s)
{
	struct datagram *d = calloc(1, sizeof(*d));
	const struct multicast *out = s->out.multicast.present ?
						     &s->out.multicast :
						     &s->in.multicast;
	int ret;

	if (!d)
		return -ENOMEM;
	d->fd = -1;
	s->datagram = d;
	ret = socket_resolve(s);
	if (!ret)
		ret = open_socket(s);
	if (!ret)
		ret = set_options(s);
	if (!ret && s->has_local)
		ret = bind_local(s);
	if (!ret)
		ret = multicast_join(d->fd, &s->in.multicast, s->node->name);
	if (!ret && s->has_remote)
		ret = multicast_set_out(d->fd, out, s->remote.sa.sa_family,
					s->node->name);
	if (!ret && s->has_remote)
		ret = find_size_max(s);
	if (!ret)
		ret = allocate(s);
	if (!ret)
		ret = sources_open(s);
	if (!ret && s->has_remote && s->out.netem.enabled)
		ret = netem_open(&s->netem, &s->out.netem,
				 datagram_send_delayed, s);
	if (ret)
		datagram_stop(s);
	return ret;
}

void datagram_stop(struct socket_node *s)
{
	struct datagram *d = s->datagram;

	if (!d)
		return;
	netem_close(s->netem, s->node->name);
	s->netem = NULL;
	if (d->fd >= 0)
		close(d->fd);
	if (d->unlink_path)
		unlink(d->unlink_path);
	free(d->unlink_path);
	sources_close(s);
	free(d->rx.buffers);
	free(d->tx.arena);
	free(d);
	s->datagram = NULL;
}
