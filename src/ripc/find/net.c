/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/find/net.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <unistd.h>

#include "ripc/find/net_group.h"

/* -1 with *ret left alone where the host has no such addresses. */
static int udp(int family, int *ret)
{
	const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const int yes = 1;

	if (fd < 0) {
		if (errno != EAFNOSUPPORT)
			*ret = -errno;
		return -1;
	}
	if (family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
	else
		setsockopt(fd, SOL_SOCKET, SO_BROADCAST, &yes, sizeof(yes));
	return fd;
}

static int bound(const union address *at, bool shared, int *ret)
{
	int fd = udp(at->any.sa_family, ret);
	const int yes = 1;

	if (fd < 0)
		return -1;
	if (shared)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (!bind(fd, &at->any, address_length(at)))
		return fd;
	/* A family that is switched off has sockets, but no addresses. */
	if (shared || errno != EADDRNOTAVAIL)
		*ret = -errno;
	close(fd);
	return -1;
}

static union address any_address(int family, uint16_t port)
{
	union address a = { .in6 = { .sin6_family = (sa_family_t)family } };

	if (family == AF_INET)
		a.in.sin_port = htons(port);
	else
		a.in6.sin6_port = htons(port);
	return a;
}

/* Tells of interfaces and addresses that come and go. */
static int changes_open(void)
{
	const struct sockaddr_nl at = { .nl_family = AF_NETLINK,
		.nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR };
	const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
			      NETLINK_ROUTE);

	if (fd >= 0 && bind(fd, (const struct sockaddr *)&at, sizeof(at))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int own_open(struct net *n)
{
	union address at4 = any_address(AF_INET, 0), at6 = any_address(AF_INET6, 0);
	int ret = 0;

	n->own4 = bound(&at4, false, &ret);
	n->own6 = bound(&at6, false, &ret);
	return ret ? ret : n->own4 < 0 && n->own6 < 0 ? -EAFNOSUPPORT : 0;
}

static int groups_open(struct net *n, bool multicast, bool broadcast)
{
	/* A group of one link cannot be bound to for all of them. */
	union address group4 = net_group4(n->port), all6 = any_address(AF_INET6, n->port),
		      all4 = any_address(AF_INET, n->port);
	int ret = 0;

	if (multicast) {
		n->multicast4 = bound(&group4, true, &ret);
		if (ret)
			return ret;
		n->multicast6 = bound(&all6, true, &ret);
		/* IPv6 may be there in name only. */
		if (n->multicast4 >= 0)
			ret = 0;
		net_group_strict(n->multicast4, n->multicast6);
	}
	if (broadcast && !ret)
		n->broadcast4 = bound(&all4, true, &ret);
	if (n->broadcast4 >= 0)
		net_group_strict(n->broadcast4, -1);
	return ret;
}

int net_open(struct net *n, uint16_t port, bool multicast, bool broadcast,
	     const char **what)
{
	int ret;

	*n = (struct net){ .port = port, .own4 = -1, .own6 = -1, .multicast4 = -1,
			   .multicast6 = -1, .broadcast4 = -1, .changes = -1 };
	pthread_mutex_init(&n->lock, NULL);
	*what = "sockets for questions";
	ret = own_open(n);
	if (!ret) {
		*what = "listening to the questions of others";
		ret = groups_open(n, multicast, broadcast);
	}
	if (ret) {
		net_close(n);
		return ret;
	}
	n->changes = multicast || broadcast ? changes_open() : -1;
	return 0;
}

void net_close(struct net *n)
{
	const int fds[] = { n->own4, n->own6, n->multicast4, n->multicast6, n->broadcast4,
			    n->changes };

	for (size_t i = 0; i < sizeof(fds) / sizeof(fds[0]); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (unsigned i = 0; i < n->port_count; i++)
		close(n->ports[i].fd);
	pthread_mutex_destroy(&n->lock);
}

void net_send(struct net *n, int fd, const union address *to, const void *bytes,
	      size_t length)
{
	if (fd < 0)
		fd = to->any.sa_family == AF_INET ? n->own4 : n->own6;
	/* What is lost is asked for again. */
	if (fd >= 0)
		sendto(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, &to->any,
		       address_length(to));
}

int net_answer_fd(const struct net *n, int fd)
{
	return fd == n->multicast4 || fd == n->multicast6 || fd == n->broadcast4 ? -1 : fd;
}

int net_listen(struct net *n, const union address *at)
{
	int ret = 0, fd;

	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < n->port_count; i++)
		if (address_same(&n->ports[i].address, at, true))
			goto out;
	ret = -EADDRNOTAVAIL;
	fd = bound(at, false, &ret);
	if (fd < 0)
		goto out;
	if (n->port_count == NET_PORTS_MAX) {
		close(fd);
		ret = -ENOBUFS;
		goto out;
	}
	n->ports[n->port_count++] = (struct net_port){ fd, *at };
	ret = 0;
out:
	pthread_mutex_unlock(&n->lock);
	return ret;
}

unsigned net_poll_fds(struct net *n, struct pollfd *out)
{
	const int fds[] = { n->changes, n->own4, n->own6, n->multicast4, n->multicast6,
			    n->broadcast4 };
	unsigned count = 0;

	/* poll() passes over those that are -1. */
	for (; count < sizeof(fds) / sizeof(fds[0]); count++)
		out[count] = (struct pollfd){ .fd = fds[count], .events = POLLIN };
	pthread_mutex_lock(&n->lock);
	for (unsigned i = 0; i < n->port_count; i++)
		out[count++] = (struct pollfd){ .fd = n->ports[i].fd, .events = POLLIN };
	pthread_mutex_unlock(&n->lock);
	return count;
}
