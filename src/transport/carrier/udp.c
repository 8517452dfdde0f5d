/* SPDX-License-Identifier: BSD-2-Clause */
/* The carrier over UDP: its socket, its life and its counters; see udp.h. */
#define LOG_ROOM "udp"
#include "transport/carrier/udp.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/sock_diag.h>
#include <stdlib.h>
#include <string.h>

#include "transport/carrier/udp_parts.h"
#include "util/log.h"

#ifndef IPV6_MULTICAST_ALL
#define IPV6_MULTICAST_ALL 29
#endif
#ifndef SO_MEMINFO
#define SO_MEMINFO 55
#endif

#define BUFFER_BYTES (4u << 20)

static int get_int(int fd, int level, int option, int fallback)
{
	int value = fallback;
	socklen_t len = sizeof(value);

	return getsockopt(fd, level, option, &value, &len) ? fallback : value;
}

static int set_int(int fd, int level, int option, int value)
{
	return setsockopt(fd, level, option, &value, sizeof(value)) ? -errno : 0;
}

/* ---- the socket ---- */

/* Makes the socket a member of the group of its port (SO_REUSEPORT) that receives nothing. */
static int set_send_only(int fd)
{
	struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
	struct sock_fprog program = { 1, &nothing };

	if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)))
		return -errno;
	return set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
}

/* `shared`: the port may be that of other sockets of this user that have SO_REUSEPORT. */
static int socket_of(int family, uint16_t port, bool shared)
{
	int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP), ret;
	union udp_name n;

	if (fd < 0)
		return -errno;
	memset(&n, 0, sizeof(n));
	n.any.sa_family = (sa_family_t)family;
	ret = shared ? set_send_only(fd) : 0;
	if (family == AF_INET6) {
		n.v6.sin6_port = htons(port);
		if (!ret)
			ret = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	} else {
		n.v4.sin_port = htons(port);
	}
	if (!ret && bind(fd, &n.any, family == AF_INET6 ? sizeof(n.v6) : sizeof(n.v4)))
		ret = -errno;
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

int carrier_udp_socket(uint16_t port)
{
	int fd = socket_of(AF_INET6, port, false);

	if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
		fd = socket_of(AF_INET, port, false);
	return fd;
}

/* What IPv4 packets of the socket get and bring. `over_v6`: of an AF_INET6 socket, which
 * brings the packet information of both in one form. */
static int set_v4(int fd, bool over_v6)
{
	int ret = set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_PROBE);

	if (!ret && !over_v6)
		ret = set_int(fd, IPPROTO_IP, IP_PKTINFO, 1);
	if (!ret)
		ret = set_int(fd, IPPROTO_IP, IP_MULTICAST_ALL, 0);
	return ret;
}

static int set_v6(int fd)
{
	int ret = set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_PROBE);

	if (!ret)
		ret = set_int(fd, IPPROTO_IPV6, IPV6_DONTFRAG, 1);
	if (!ret)
		ret = set_int(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, 1);
	/* The ICRC protects RoCE v2 packets, so adapters send them with UDP checksum 0 over
	 * IPv6, too, as Linux' rxe does; a socket drops these unless it is asked not to. */
	if (!ret)
		ret = set_int(fd, SOL_UDP, UDP_NO_CHECK6_RX, 1);
	/* Linux before 4.20 has no such option; then other programs' groups come too. */
	if (!ret && set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_ALL, 0))
		log_debug("multicast packets of groups that others joined may come");
	return ret;
}

static int set_brought(const struct udp *u, bool tos, bool ttl)
{
	int ret = 0;

	if (u->family == AF_INET6)
		ret = set_int(u->fd, IPPROTO_IPV6, IPV6_RECVTCLASS, tos);
	if (!ret && u->family == AF_INET6)
		ret = set_int(u->fd, IPPROTO_IPV6, IPV6_RECVHOPLIMIT, ttl);
	if (!ret && (u->both || u->family == AF_INET))
		ret = set_int(u->fd, IPPROTO_IP, IP_RECVTOS, tos);
	if (!ret && (u->both || u->family == AF_INET))
		ret = set_int(u->fd, IPPROTO_IP, IP_RECVTTL, ttl);
	return ret;
}

/* ECN-capable, as queue pairs are, and what the system gives: messages to the kernel, which cost
 * time, name what differs. A socket that does not take them goes without: all messages name it. */
#define USUAL_TOS 2

static void set_usual(struct udp *u, bool v4)
{
	const int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	const int limit = v4 ? IP_TTL : IPV6_UNICAST_HOPS;
	int ttl = get_int(u->fd, level, limit, 0);

	u->usual_tos[v4] = set_int(u->fd, level, v4 ? IP_TOS : IPV6_TCLASS, USUAL_TOS) ? -1 : USUAL_TOS;
	u->usual_ttl[v4] = ttl > 0 && !set_int(u->fd, level, limit, ttl) ? ttl : -1;
}

static int set_options(struct udp *u, const struct carrier_udp_params *params)
{
	size_t bytes = params->buffer_bytes ? params->buffer_bytes : BUFFER_BYTES;
	int ret = 0, want = (int)MIN(bytes, (size_t)INT32_MAX / 2);

	if (u->family == AF_INET6)
		ret = set_v6(u->fd);
	if (!ret && (u->both || u->family == AF_INET))
		ret = set_v4(u->fd, u->both);
	if (!ret)
		ret = set_brought(u, true, true);
	if (!ret)
		ret = set_int(u->fd, SOL_SOCKET, SO_RCVBUF, want);
	if (!ret)
		ret = set_int(u->fd, SOL_SOCKET, SO_SNDBUF, want);
	if (ret)
		return ret;
	set_usual(u, false);
	set_usual(u, true);
	/* Both since Linux 4.18 and 5.0. Who may not ask for trains gets single packets. */
	u->trains_in = !set_int(u->fd, SOL_UDP, UDP_GRO, !params->no_trains) &&
		       !params->no_trains;
	atomic_store(&u->trains_out, !params->no_trains &&
		     get_int(u->fd, SOL_UDP, UDP_SEGMENT, -1) >= 0);
	return 0;
}

/* In the order of the network. 0 or a negative errno. */
static int bound_port(int fd, int family, in_port_t *port)
{
	union udp_name n;
	socklen_t len = sizeof(n);

	if (getsockname(fd, &n.any, &len))
		return -errno;
	*port = family == AF_INET ? n.v4.sin_port : n.v6.sin6_port;
	return 0;
}

/* 0 or a negative errno: it is no socket for us. */
static int look_at_socket(struct udp *u)
{
	union udp_name n;
	socklen_t len = sizeof(n);
	int ret;

	if (get_int(u->fd, SOL_SOCKET, SO_TYPE, -1) < 0)
		return -ENOTSOCK;
	u->family = get_int(u->fd, SOL_SOCKET, SO_DOMAIN, AF_UNSPEC);
	if ((u->family != AF_INET && u->family != AF_INET6) ||
	    get_int(u->fd, SOL_SOCKET, SO_PROTOCOL, -1) != IPPROTO_UDP)
		return -EPROTONOSUPPORT;
	if (!getpeername(u->fd, &n.any, &len))
		return -EISCONN;
	u->both = u->family == AF_INET6 &&
		  !get_int(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
	ret = bound_port(u->fd, u->family, &u->port);
	return !ret && !u->port ? -EDESTADDRREQ : ret;
}

/* Cuts packets, also those of sockets that the kernel told about a path's MTU. */
static int set_fragments(const struct udp *u, int fd, int send_bytes)
{
	int ret = 0;

	if (u->family == AF_INET6)
		ret = set_int(fd, IPPROTO_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DONT);
	if (!ret && (u->both || u->family == AF_INET))
		ret = set_int(fd, IPPROTO_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DONT);
	if (!ret)
		ret = set_int(fd, SOL_SOCKET, SO_SNDBUF, send_bytes);
	/* Nobody reads from it. */
	if (!ret)
		ret = set_int(fd, SOL_SOCKET, SO_RCVBUF, 0);
	return ret;
}

static int open_fragments(struct udp *u, const struct carrier_udp_params *params)
{
	size_t bytes = params->buffer_bytes ? params->buffer_bytes : BUFFER_BYTES;
	int fd, ret;

	if (!params->fragments)
		return 0;
	/* Receivers on this host drop packets that have another source port (roce/slots.c). */
	fd = get_int(u->fd, SOL_SOCKET, SO_REUSEPORT, 0) == 1 ?
		     socket_of(u->family, ntohs(u->port), true) : -EADDRINUSE;
	if (fd == -EADDRINUSE)
		fd = socket_of(u->family, 0, false);
	if (fd < 0)
		return fd;
	ret = set_fragments(u, fd, (int)MIN(bytes, (size_t)INT32_MAX / 2));
	if (!ret)
		ret = bound_port(fd, u->family, &u->fragment_port);
	if (ret)
		close(fd);
	else
		u->fragment_fd = fd;
	return ret;
}

static uint32_t dropped_by_kernel(int fd)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) ?
		       0 : info[SK_MEMINFO_DROPS];
}

/* ---- life ---- */

static uint64_t udp_next_ns(struct carrier *c)
{
	struct udp *u = udp_of(c);

	if (likely(!atomic_load_explicit(&u->blocked, memory_order_acquire)))
		return UINT64_MAX;
	return atomic_load_explicit(&u->look_ns, memory_order_relaxed);
}

static void udp_close(struct carrier *c)
{
	struct udp *u = udp_of(c);

	if (u->fragment_fd >= 0)
		close(u->fragment_fd);
	free(u->in.bytes);
	free(u);
}

static const struct carrier_ops udp_ops = {
	.emit = udp_emit,
	.poll = udp_poll,
	.next_ns = udp_next_ns,
	.close = udp_close,
};

int carrier_udp_open(const struct carrier_udp_params *params, struct carrier **out)
{
	struct udp *u = aligned_alloc(CACHE_LINE, sizeof(*u));
	int ret;

	if (!u)
		return -ENOMEM;
	memset(u, 0, sizeof(*u));
	u->carrier.ops = &udp_ops;
	u->fd = params->fd;
	u->fragment_fd = -1;
	u->clock = params->clock;
	ret = look_at_socket(u);
	if (!ret)
		ret = set_options(u, params);
	if (!ret)
		ret = open_fragments(u, params);
	if (!ret)
		ret = udp_receive_init(&u->in, params->packet_bytes ? params->packet_bytes :
								      UDP_RECEIVE_BYTES);
	if (ret) {
		udp_close(&u->carrier);
		return ret;
	}
	u->dropped_before = dropped_by_kernel(u->fd);
	*out = &u->carrier;
	return 0;
}

/* ---- what it can, and what it did ---- */

int carrier_udp_fd(const struct carrier *c)
{
	return udp_of(c)->fd;
}

int carrier_udp_came_on(const struct carrier *c)
{
	return get_int(udp_of(c)->fd, SOL_SOCKET, SO_INCOMING_CPU, -1);
}

int carrier_udp_bring(struct carrier *c, uint16_t known)
{
	return set_brought(udp_of(c), known & CARRIER_TOS, known & CARRIER_TTL);
}

unsigned carrier_udp_train_packets(const struct carrier *c)
{
	return atomic_load_explicit(&udp_of(c)->trains_out, memory_order_relaxed) ?
		       CARRIER_UDP_TRAIN_PACKETS : 1;
}

static uint64_t read_counter(atomic_uint_fast64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void carrier_udp_count(struct carrier *c, struct carrier_udp_counters *out)
{
	struct udp *u = udp_of(c);
	struct udp_counted *n = &u->count;

	*out = (struct carrier_udp_counters){
		.sent = read_counter(&n->sent),
		.sent_trains = read_counter(&n->sent_trains),
		.sent_bytes = read_counter(&n->sent_bytes),
		.received = read_counter(&n->received),
		.received_trains = read_counter(&n->received_trains),
		.received_bytes = read_counter(&n->received_bytes),
		.would_block = read_counter(&n->would_block),
		.too_long = read_counter(&n->too_long),
		.unreachable = read_counter(&n->unreachable),
		.faulty = read_counter(&n->faulty),
		.lost_parts = read_counter(&n->lost_parts),
		.icmp = read_counter(&n->icmp) + read_counter(&n->icmp_received),
		.truncated = read_counter(&n->truncated),
		.receive_errors = read_counter(&n->receive_errors),
		.overrun = (uint32_t)(dropped_by_kernel(u->fd) - u->dropped_before),
	};
}

void carrier_udp_facts(const struct carrier *c, struct carrier_udp_facts *out)
{
	const struct udp *u = udp_of(c);

	*out = (struct carrier_udp_facts){
		.family = u->family,
		.both = u->both,
		.port = ntohs(u->port),
		.fragment_port = ntohs(u->fragment_port),
		.trains_out = carrier_udp_train_packets(c) > 1,
		.trains_in = u->trains_in,
		.receive_bytes = (uint32_t)get_int(u->fd, SOL_SOCKET, SO_RCVBUF, 0),
		.send_bytes = (uint32_t)get_int(u->fd, SOL_SOCKET, SO_SNDBUF, 0),
	};
}

/* ---- multicast ---- */

int carrier_udp_member(struct carrier *c, const struct carrier_addr *group,
		       uint32_t interface, bool joined)
{
	struct group_req req = { .gr_interface = interface };
	const struct udp *u = udp_of(c);
	union udp_name n;
	int level;

	n.as_carrier = *group;
	if (n.any.sa_family != u->family && !(n.any.sa_family == AF_INET && u->both))
		return -EINVAL;
	level = n.any.sa_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6;
	memcpy(&req.gr_group, &n, sizeof(n));
	if (!setsockopt(u->fd, level, joined ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP, &req,
			sizeof(req)))
		return 0;
	return joined && errno == EADDRINUSE ? 0 : -errno;
}

static int loop_of(const struct udp *u, int fd, bool on)
{
	int ret = 0;

	if (u->family == AF_INET6)
		ret = set_int(fd, IPPROTO_IPV6, IPV6_MULTICAST_LOOP, on);
	if (!ret && (u->both || u->family == AF_INET))
		ret = set_int(fd, IPPROTO_IP, IP_MULTICAST_LOOP, on);
	return ret;
}

int carrier_udp_loop(struct carrier *c, bool on)
{
	const struct udp *u = udp_of(c);
	int ret = loop_of(u, u->fd, on);

	return ret || u->fragment_fd < 0 ? ret : loop_of(u, u->fragment_fd, on);
}
