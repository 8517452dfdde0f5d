/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Questions to everyone, and the interfaces they go out by. The loopback interface is one
 * of them, so instances of one host find each other without a network. A question that
 * goes out by several interfaces reaches some instances more than once; the nonce says that
 * it is the same one.
 *
 * Linux lets a socket join IPv4 groups on 20 interfaces (net.ipv4.igmp_max_memberships);
 * on those beyond nothing is heard.
 */
#include "ripc/find/net_group.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <string.h>
#include <sys/uio.h>

#define GROUP4 "239.255.114.112"
#define GROUP6 "ff02::7269:7063"
#define STALE_NS UINT64_C(1000000000)

union address net_group4(uint16_t port)
{
	union address a;

	address_parse(GROUP4, port, &a);
	return a;
}

union address net_group6(uint16_t port, unsigned interface)
{
	union address a;

	address_parse(GROUP6, port, &a);
	a.in6.sin6_scope_id = interface;
	return a;
}

void net_group_strict(int fd4, int fd6)
{
	const int no = 0;

	if (fd4 >= 0)
		setsockopt(fd4, IPPROTO_IP, IP_MULTICAST_ALL, &no, sizeof(no));
	if (fd6 >= 0)
		setsockopt(fd6, IPPROTO_IPV6, IPV6_MULTICAST_ALL, &no, sizeof(no));
}

static struct net_interface *entry(struct net_interface *all, unsigned *count,
				   unsigned index)
{
	for (unsigned i = 0; i < *count; i++)
		if (all[i].index == index)
			return &all[i];
	if (!index || *count == NET_INTERFACES_MAX)
		return NULL;
	all[*count] = (struct net_interface){ .index = index };
	return &all[(*count)++];
}

/* All that are up and have an address. */
static unsigned interfaces_read(struct net_interface *all)
{
	struct ifaddrs *list;
	unsigned count = 0;

	if (getifaddrs(&list))
		return 0;
	for (struct ifaddrs *a = list; a; a = a->ifa_next) {
		struct net_interface *i;

		if (!a->ifa_addr || !(a->ifa_flags & IFF_UP) ||
		    (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
			continue;
		i = entry(all, &count, if_nametoindex(a->ifa_name));
		if (!i)
			continue;
		i->ipv6 |= a->ifa_addr->sa_family == AF_INET6;
		if (a->ifa_addr->sa_family != AF_INET)
			continue;
		i->ipv4 = true;
		if (a->ifa_flags & IFF_LOOPBACK)
			inet_pton(AF_INET, "127.255.255.255", &i->broadcast);
		else if (a->ifa_flags & IFF_BROADCAST)
			i->broadcast.s_addr = INADDR_BROADCAST;
	}
	freeifaddrs(list);
	return count;
}

/* A group that was joined already stays so. */
static void join(const struct net *n, const struct net_interface *i)
{
	if (i->ipv4 && n->multicast4 >= 0) {
		const struct ip_mreqn m = { .imr_multiaddr = net_group4(0).in.sin_addr,
					    .imr_ifindex = (int)i->index };

		setsockopt(n->multicast4, IPPROTO_IP, IP_ADD_MEMBERSHIP, &m, sizeof(m));
	}
	if (i->ipv6 && n->multicast6 >= 0) {
		const struct ipv6_mreq m = { .ipv6mr_multiaddr = net_group6(0, 0).in6.sin6_addr,
					     .ipv6mr_interface = i->index };

		setsockopt(n->multicast6, IPPROTO_IPV6, IPV6_JOIN_GROUP, &m, sizeof(m));
	}
}

void net_scan(struct net *n, bool stale, uint64_t now_ns)
{
	struct net_interface all[NET_INTERFACES_MAX];
	unsigned count;
	bool due;

	pthread_mutex_lock(&n->lock);
	due = !stale || !n->scanned_ns || now_ns - n->scanned_ns >= STALE_NS;
	if (due)
		n->scanned_ns = now_ns;
	pthread_mutex_unlock(&n->lock);
	if (!due)
		return;
	count = interfaces_read(all);
	for (unsigned i = 0; i < count; i++)
		join(n, &all[i]);
	pthread_mutex_lock(&n->lock);
	memcpy(n->interfaces, all, count * sizeof(all[0]));
	n->interface_count = count;
	pthread_mutex_unlock(&n->lock);
}

/* By one interface, whatever the table of routes says. */
static bool send4(const struct net *n, unsigned interface, const union address *to,
		  const struct iovec *what)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct in_pktinfo))];
		struct cmsghdr align;
	} control = { .bytes = { 0 } };
	struct msghdr m = { .msg_name = (void *)(uintptr_t)to, .msg_namelen = sizeof(to->in),
		.msg_iov = (struct iovec *)(uintptr_t)what, .msg_iovlen = 1,
		.msg_control = control.bytes, .msg_controllen = sizeof(control.bytes) };
	const struct in_pktinfo info = { .ipi_ifindex = (int)interface };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_PKTINFO;
	c->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(c), &info, sizeof(info));
	return sendmsg(n->own4, &m, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0;
}

static unsigned send_by(const struct net *n, enum net_group group,
			const struct net_interface *i, const struct iovec *what)
{
	union address to = net_group4(n->port);
	unsigned sent = 0;

	if (group == NET_BROADCAST)
		to.in.sin_addr = i->broadcast;
	if (i->ipv4 && n->own4 >= 0 && to.in.sin_addr.s_addr)
		sent += send4(n, i->index, &to, what);
	if (group == NET_MULTICAST && i->ipv6 && n->own6 >= 0) {
		to = net_group6(n->port, i->index);
		sent += sendto(n->own6, what->iov_base, what->iov_len,
			       MSG_DONTWAIT | MSG_NOSIGNAL, &to.any, sizeof(to.in6)) >= 0;
	}
	return sent;
}

unsigned net_send_group(struct net *n, enum net_group group, const void *bytes,
			size_t length)
{
	const struct iovec what = { (void *)(uintptr_t)bytes, length };
	struct net_interface all[NET_INTERFACES_MAX];
	unsigned count, sent = 0;

	pthread_mutex_lock(&n->lock);
	count = n->interface_count;
	memcpy(all, n->interfaces, count * sizeof(all[0]));
	pthread_mutex_unlock(&n->lock);
	for (unsigned i = 0; i < count; i++)
		sent += send_by(n, group, &all[i], &what);
	return sent;
}
