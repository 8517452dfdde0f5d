/* SPDX-License-Identifier: BSD-2-Clause */
/* See routed.h. */
#include "gateway/part/routed.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/container_of.h"

#define RECEIVE_BYTES (4 << 20)

bool routed_parse(const char *text, uint16_t port, struct socket_address *out)
{
	*out = (struct socket_address){ .len = 0 };
	if (inet_pton(AF_INET, text, &out->in4.sin_addr) == 1) {
		out->in4.sin_family = AF_INET;
		out->in4.sin_port = htons(port);
		out->len = sizeof(out->in4);
	} else if (inet_pton(AF_INET6, text, &out->in6.sin6_addr) == 1) {
		out->in6.sin6_family = AF_INET6;
		out->in6.sin6_port = htons(port);
		out->len = sizeof(out->in6);
	}
	return out->len;
}

static int fail(char *why, const char *what)
{
	int err = errno;

	snprintf(why, SOCKET_WHY_MAX, "%s: %s%s", what, strerror(err),
		 err == EACCES ? "; ports below 1024 need root or CAP_NET_BIND_SERVICE" : "");
	return -err;
}

static int join(int fd, const struct socket_address *group, unsigned interface, char *why)
{
	char text[INET6_ADDRSTRLEN], what[INET6_ADDRSTRLEN + 40];
	struct ip_mreqn v4 = { .imr_multiaddr = group->in4.sin_addr,
			      .imr_ifindex = (int)interface };
	struct ipv6_mreq v6 = { .ipv6mr_multiaddr = group->in6.sin6_addr,
			       .ipv6mr_interface = interface };
	bool is_v6 = group->sa.sa_family == AF_INET6;

	if (is_v6 ? !setsockopt(fd, IPPROTO_IPV6, IPV6_JOIN_GROUP, &v6, sizeof(v6)) :
		    !setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &v4, sizeof(v4)))
		return 0;
	inet_ntop(group->sa.sa_family, is_v6 ? (const void *)&group->in6.sin6_addr :
		  &group->in4.sin_addr, text, sizeof(text));
	snprintf(what, sizeof(what), "group %s cannot be joined", text);
	return fail(why, what);
}

/* Not what other sockets of this host have joined, also without groups of its own. One of IPv6
 * takes what comes by IPv4, too. */
static void refuse_other_groups(int fd, bool v6)
{
	int none = 0;

	setsockopt(fd, IPPROTO_IP, IP_MULTICAST_ALL, &none, sizeof(none));
	if (v6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &none, sizeof(none));
}

static int set_sending(int fd, bool v6, unsigned interface, int ttl, char *why)
{
	struct ip_mreqn m = { .imr_ifindex = (int)interface };
	int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;

	if (setsockopt(fd, level, v6 ? IPV6_MULTICAST_HOPS : IP_MULTICAST_TTL, &ttl, sizeof(ttl)))
		return fail(why, "ttl");
	if (!interface)
		return 0;
	if (v6 ? !setsockopt(fd, level, IPV6_MULTICAST_IF, &interface, sizeof(interface)) :
		 !setsockopt(fd, level, IP_MULTICAST_IF, &m, sizeof(m)))
		return 0;
	return fail(why, "interface");
}

static int set_up(struct routed *r, const struct routed_settings *s, char *why)
{
	unsigned interface = s->interface ? if_nametoindex(s->interface) : 0;
	int one = 1, receive = RECEIVE_BYTES, ret = 0;
	char text[SOCKET_ADDRESS_MAX];

	if (s->interface && !interface)
		return fail(why, s->interface);
	refuse_other_groups(r->fd, s->local.sa.sa_family == AF_INET6);
	/* Several readers on a host may join the same group. */
	if (s->group_count)
		setsockopt(r->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(r->fd, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
	setsockopt(r->fd, SOL_SOCKET, SO_RXQ_OVFL, &one, sizeof(one));
	if (setsockopt(r->fd, SOL_SOCKET, SO_RCVBUFFORCE, &receive, sizeof(receive)))
		setsockopt(r->fd, SOL_SOCKET, SO_RCVBUF, &receive, sizeof(receive));
	if (bind(r->fd, &s->local.sa, s->local.len))
		return fail(why, socket_address_print(&s->local, text));
	for (unsigned i = 0; i < s->group_count && !ret; i++)
		ret = join(r->fd, &s->groups[i], interface, why);
	if (!ret && s->ttl)
		ret = set_sending(r->fd, s->local.sa.sa_family == AF_INET6, interface, s->ttl, why);
	return ret;
}

int routed_open(struct routed *r, const struct routed_settings *s, char *why)
{
	int ret;

	*r = (struct routed){ .fd = socket(s->local.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) };
	if (r->fd < 0)
		return fail(why, "no socket");
	ret = set_up(r, s, why);
	if (ret)
		routed_close(r);
	return ret;
}

void routed_close(struct routed *r)
{
	if (r->fd >= 0)
		close(r->fd);
	r->fd = -1;
}

static void take_control(struct routed *r, struct msghdr *m, struct routed_datagram *d)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level != SOL_SOCKET)
			continue;
		if (c->cmsg_type == SCM_TIMESTAMPNS)
			memcpy(&d->received, CMSG_DATA(c), sizeof(d->received));
		else if (c->cmsg_type == SO_RXQ_OVFL)
			memcpy(&r->overruns, CMSG_DATA(c), sizeof(r->overruns));
	}
}

int routed_receive(struct routed *r, void *buffer, size_t size, struct routed_datagram *d)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(struct timespec)) + CMSG_SPACE(sizeof(uint32_t))];
	} control;
	struct iovec io = { buffer, size };
	struct msghdr m = { .msg_name = &d->from.storage, .msg_namelen = sizeof(d->from.storage),
			    .msg_iov = &io, .msg_iovlen = 1, .msg_control = control.bytes,
			    .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(r->fd, &m, MSG_DONTWAIT | MSG_TRUNC);

	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	d->from.len = m.msg_namelen;
	d->truncated = (size_t)n > size;
	d->len = MIN((size_t)n, size);
	d->received = (struct timespec){ 0 };
	take_control(r, &m, d);
	if (!d->received.tv_sec)
		d->received = clock_realtime();
	return 0;
}

int routed_send(const struct routed *r, const struct socket_address *to, const void *data,
		size_t len)
{
	return sendto(r->fd, data, len, MSG_DONTWAIT, &to->sa, to->len) < 0 ? -errno : 0;
}

unsigned routed_overruns(struct routed *r)
{
	unsigned more = r->overruns - r->said;

	r->said = r->overruns;
	return more;
}
