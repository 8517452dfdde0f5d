/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What comes through the carrier over UDP; see udp.h.
 *
 * A poll that finds a single packet after an empty one ends behind it, so that a pair of
 * ends that answer each other makes one system call for each packet. Where calls find
 * packets one behind the other, a poll goes on until the socket is empty, and asks for
 * many small packets at a time; long trains it takes one by one, while they are in the
 * cache.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "transport/carrier/udp_parts.h"

/* Calls that got all they asked for, after which more is expected. */
#define UNBROKEN 3
/* A datagram of so many bytes is taken alone. */
#define LONG_BYTES 8192

int udp_receive_init(struct udp_receive *in, size_t packet_bytes)
{
	in->bytes = malloc(UDP_RECEIVE_BATCH * packet_bytes);
	if (!in->bytes)
		return -ENOMEM;
	in->batch = 1;
	for (unsigned i = 0; i < UDP_RECEIVE_BATCH; i++) {
		in->iov[i] = (struct iovec){ in->bytes + i * packet_bytes, packet_bytes };
		in->messages[i].msg_hdr = (struct msghdr){
			.msg_name = &in->names[i],
			.msg_iov = &in->iov[i],
			.msg_iovlen = 1,
			.msg_control = in->control[i],
		};
	}
	return 0;
}

static int int_of(const struct cmsghdr *c)
{
	int value;

	if (c->cmsg_len < CMSG_LEN(sizeof(value))) /* the TOS of IPv4 is a byte */
		return *CMSG_DATA(c);
	memcpy(&value, CMSG_DATA(c), sizeof(value));
	return value;
}

/* The destination address, which has the socket's port. */
static void take_destination(const struct udp *u, struct carrier_unit *unit,
			     const struct cmsghdr *c)
{
	union udp_name n;

	memset(&n, 0, sizeof(n));
	if (c->cmsg_level == IPPROTO_IP) {
		struct in_pktinfo info;

		memcpy(&info, CMSG_DATA(c), sizeof(info));
		n.v4.sin_family = AF_INET;
		n.v4.sin_port = u->port;
		n.v4.sin_addr = info.ipi_addr;
		unit->to = n.as_carrier;
		unit->interface = (uint32_t)info.ipi_ifindex;
	} else {
		struct in6_pktinfo info;

		memcpy(&info, CMSG_DATA(c), sizeof(info));
		unit->to = carrier_udp_addr_of(info.ipi6_addr.s6_addr, info.ipi6_ifindex,
					       ntohs(u->port));
		unit->interface = info.ipi6_ifindex;
	}
	unit->known |= CARRIER_INTERFACE;
}

/* False: no address. What a socket of IPv4 brings has the normal form already. */
static bool take_source(struct carrier_unit *unit, const union udp_name *n, socklen_t len)
{
	if (likely(n->any.sa_family == AF_INET6 && len == sizeof(n->v6))) {
		unit->from = carrier_udp_addr_of(n->v6.sin6_addr.s6_addr, n->v6.sin6_scope_id,
						 ntohs(n->v6.sin6_port));
		return true;
	}
	if (n->any.sa_family != AF_INET || len != sizeof(n->v4))
		return false;
	memcpy(&unit->from, &n->v4, sizeof(n->v4));
	memset((uint8_t *)&unit->from + sizeof(n->v4), 0,
	       sizeof(unit->from) - sizeof(n->v4));
	return true;
}

static void take_control(const struct udp *u, struct carrier_unit *unit, struct msghdr *m)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO)
			unit->segment = (uint32_t)int_of(c);
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO))
			take_destination(u, unit, c);
		else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
			 (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS)) {
			unit->tos = (uint8_t)int_of(c);
			unit->known |= CARRIER_TOS;
		} else if ((c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TTL) ||
			   (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_HOPLIMIT)) {
			unit->ttl = (uint8_t)int_of(c);
			unit->known |= CARRIER_TTL;
		}
	}
}

static void count_one(atomic_uint_fast64_t *counter, uint64_t n)
{
	/* By the draining thread alone. */
	atomic_store_explicit(counter,
		atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

static void deliver_one(struct udp *u, unsigned at)
{
	struct mmsghdr *m = &u->in.messages[at];
	struct iovec iov = { u->in.iov[at].iov_base, m->msg_len };
	struct carrier_unit unit = { .iov = &iov, .count = 1 };

	if (unlikely(m->msg_hdr.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		count_one(&u->count.truncated, 1);
		return;
	}
	/* An empty datagram is no unit. */
	if (unlikely(!m->msg_len || !take_source(&unit, &u->in.names[at],
						 m->msg_hdr.msg_namelen)))
		return;
	unit.known = CARRIER_FROM;
	take_control(u, &unit, &m->msg_hdr);
	if (unit.segment >= m->msg_len)
		unit.segment = 0;
	count_one(&u->count.received, carrier_unit_packets(&unit, m->msg_len));
	count_one(&u->count.received_bytes, m->msg_len);
	if (unit.segment)
		count_one(&u->count.received_trains, 1);
	carrier_deliver(&u->carrier, &unit);
}

/* How many came, or a negative errno. */
static int receive(struct udp *u, unsigned want)
{
	struct udp_receive *in = &u->in;
	long got;

	for (unsigned i = 0; i < want; i++) {
		in->messages[i].msg_hdr.msg_namelen = sizeof(in->names[i]);
		in->messages[i].msg_hdr.msg_controllen = UDP_RECEIVE_CONTROL;
	}
	if (want == 1) {
		got = udp_recvmsg(u->fd, &in->messages[0].msg_hdr);
		if (likely(got < 0))
			return -errno;
		in->messages[0].msg_len = (unsigned)got;
		return 1;
	}
	got = udp_recvmmsg(u->fd, in->messages, want);
	return got < 0 ? -errno : (int)got;
}

/* By who drains. How much of the budget was used. */
static unsigned drain(struct udp *u, unsigned budget)
{
	struct udp_receive *in = &u->in;
	unsigned done = 0;

	while (done < budget) {
		unsigned want = MIN(in->batch, budget - done);
		bool is_long = false;
		int got = receive(u, want);

		if (got < 0 && got != -EAGAIN) {
			/* An error of an earlier packet, most likely; it is told once. */
			count_one(got == -ECONNREFUSED ? &u->count.icmp_received :
							 &u->count.receive_errors, 1);
			done++;
			continue;
		}
		for (int i = 0; i < got; i++) {
			is_long |= in->messages[i].msg_len >= LONG_BYTES;
			deliver_one(u, (unsigned)i);
		}
		if (got > 0)
			done += (unsigned)got;
		if (got < (int)want) {
			in->unbroken = 0;
			in->batch = 1;
			break;
		}
		if (++in->unbroken < UNBROKEN)
			break;
		in->batch = is_long ? 1 : MIN(2 * in->batch, UDP_RECEIVE_BATCH);
	}
	return done;
}

/* Behind an emit without room: is there some? */
static void look_for_room(struct udp *u)
{
	/* A negative descriptor is passed over. */
	struct pollfd p[2] = { { .fd = u->fd, .events = POLLOUT },
			       { .fd = u->fragment_fd, .events = POLLOUT } };
	long want = u->fragment_fd < 0 ? 1 : 2;
	struct timespec none = { 0 };
	uint64_t now = clock_source_now_ns(&u->clock);

	if (now < atomic_load_explicit(&u->look_ns, memory_order_relaxed))
		return;
	if (syscall(SYS_ppoll, p, 2L, &none, NULL, 0L) == want && p[0].revents & POLLOUT &&
	    (want == 1 || p[1].revents & POLLOUT)) {
		if (atomic_exchange(&u->blocked, false))
			carrier_writable(&u->carrier);
	} else {
		atomic_store_explicit(&u->look_ns, now + UDP_ROOM_LOOK_NS,
				      memory_order_relaxed);
	}
}

unsigned udp_poll(struct carrier *c, unsigned budget)
{
	struct udp *u = udp_of(c);
	unsigned done = 0;

	/* A second pass for a thread that came meanwhile. No third one: what it would
	 * find keeps the socket readable. */
	for (unsigned pass = 0; pass < 2 && done < budget; pass++) {
		if (!drainer_enter(&u->drainer))
			break;
		done += drain(u, budget - done);
		if (unlikely(atomic_load_explicit(&u->blocked, memory_order_acquire)))
			look_for_room(u);
		if (!drainer_leave(&u->drainer))
			break;
	}
	return done;
}
