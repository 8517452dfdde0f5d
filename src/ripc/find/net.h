/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of a resolver: two of its own, from which it asks and to which answers come;
 * those of the groups, which all instances of the host share; and those at ports that a
 * file of hosts gives to a service here. Follows the interfaces as they come and go.
 * Nothing here waits. net_poll_fds() and receiving are the thread's; all else anyone's.
 */
#ifndef RIPC_NET_H
#define RIPC_NET_H

#include <poll.h>
#include <pthread.h>
#include <stddef.h>

#include "ripc/find/address.h"

#define NET_INTERFACES_MAX 64
#define NET_PORTS_MAX 16
#define NET_FDS_MAX (6 + NET_PORTS_MAX)

enum net_group { NET_MULTICAST, NET_BROADCAST };

struct net_interface {
	unsigned index;
	bool ipv4, ipv6;
	struct in_addr broadcast; /* 0: none */
};

struct net {
	uint16_t port;
	int own4, own6;             /* -1: no such addresses here */
	int multicast4, multicast6, broadcast4; /* -1: not listened to */
	int changes;                /* netlink: an interface has changed; -1: not to be had */
	pthread_mutex_t lock;
	/* Under the lock. */
	struct net_interface interfaces[NET_INTERFACES_MAX];
	unsigned interface_count;
	uint64_t scanned_ns;
	struct net_port {
		int fd;
		union address address;
	} ports[NET_PORTS_MAX];
	unsigned port_count;
};

/* -EADDRINUSE: the port is somebody's who does not share it; and those of socket(). The
 * call that failed in *what. */
int net_open(struct net *n, uint16_t port, bool multicast, bool broadcast,
	     const char **what);
void net_close(struct net *n);
/* Looks which interfaces there are and joins the group on each. With `stale` only when that
 * is a second ago. */
void net_scan(struct net *n, bool stale, uint64_t now_ns);
/* To everyone in reach, from the own sockets. How many packets have left. */
unsigned net_send_group(struct net *n, enum net_group group, const void *bytes,
			size_t length);
/* From `fd`, -1: from the own socket of the family. */
void net_send(struct net *n, int fd, const union address *to, const void *bytes,
	      size_t length);
/* Where to answer what came by `fd`: not by a group's socket. */
int net_answer_fd(const struct net *n, int fd);
/* Listens at an address of this host. 0 also when it does already. -EADDRNOTAVAIL: an
 * address of another host. -EADDRINUSE; -ENOBUFS: NET_PORTS_MAX. */
int net_listen(struct net *n, const union address *at);
/* All sockets, the one of changes first. How many. */
unsigned net_poll_fds(struct net *n, struct pollfd *out);

#endif
