/* SPDX-License-Identifier: BSD-2-Clause */
/* What leaves through the carrier over UDP; see udp.h. */
#define LOG_ROOM "udp"
#include <errno.h>
#include <string.h>

#include "transport/carrier/udp_parts.h"
#include "util/log.h"

/* Units of one call. */
#define BATCH 16
/* Pending errors of earlier packets that one call passes over. */
#define ICMP_TRIES 8
#define PACKET_MAX 65535

/* One message to the kernel, with all that it points to. */
struct parts {
	union udp_name name;
	_Alignas(struct cmsghdr) uint8_t control[CMSG_SPACE(sizeof(struct in6_pktinfo)) +
						 3 * CMSG_SPACE(sizeof(int))];
};

static void add_control(struct msghdr *m, int level, int type, const void *data,
			size_t bytes)
{
	struct cmsghdr *c = (struct cmsghdr *)(void *)((uint8_t *)m->msg_control +
						       m->msg_controllen);

	*c = (struct cmsghdr){
		.cmsg_len = CMSG_LEN(bytes), .cmsg_level = level, .cmsg_type = type,
	};
	memcpy(CMSG_DATA(c), data, bytes);
	m->msg_controllen += CMSG_SPACE(bytes);
}

static sa_family_t family_of(const struct carrier_addr *a)
{
	union udp_name n;

	n.as_carrier = *a;
	return n.any.sa_family;
}

static void add_source(struct msghdr *m, const struct carrier_unit *unit, bool v4)
{
	uint32_t interface = unit->known & CARRIER_INTERFACE ? unit->interface : 0;
	union udp_name from;

	memset(&from, 0, sizeof(from));
	if (unit->known & CARRIER_FROM)
		from.as_carrier = unit->from;
	if (v4) {
		struct in_pktinfo info = { .ipi_ifindex = (int)interface };

		if (from.any.sa_family == AF_INET)
			info.ipi_spec_dst = from.v4.sin_addr;
		add_control(m, IPPROTO_IP, IP_PKTINFO, &info, sizeof(info));
	} else {
		struct in6_pktinfo info = { .ipi6_ifindex = interface };

		if (from.any.sa_family == AF_INET6) {
			info.ipi6_addr = from.v6.sin6_addr;
			if (!interface)
				info.ipi6_ifindex = from.v6.sin6_scope_id;
		}
		add_control(m, IPPROTO_IPV6, IPV6_PKTINFO, &info, sizeof(info));
	}
}

/* The address of the kernel: one of IPv4 is mapped where the socket is of IPv6. False: the
 * socket cannot send there. */
static bool set_name(const struct udp *u, struct msghdr *m, struct parts *p,
		     const struct carrier_addr *to)
{
	union udp_name n;

	n.as_carrier = *to;
	m->msg_name = &p->name;
	if (n.any.sa_family == u->family) {
		p->name = n;
		m->msg_namelen = u->family == AF_INET ? sizeof(n.v4) : sizeof(n.v6);
		return true;
	}
	if (n.any.sa_family != AF_INET || !u->both)
		return false;
	p->name.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6,
					    .sin6_port = n.v4.sin_port };
	p->name.v6.sin6_addr.s6_addr32[2] = htonl(0xffff);
	p->name.v6.sin6_addr.s6_addr32[3] = n.v4.sin_addr.s_addr;
	m->msg_namelen = sizeof(p->name.v6);
	return true;
}

/* It has a socket of its own (udp.h). */
static bool in_fragments(const struct udp *u, const struct carrier_unit *unit)
{
	return unlikely(unit->known & CARRIER_FRAGMENTS) && u->fragment_fd >= 0;
}

/* TOS and TTL, where the socket's are others. */
static void add_ip(const struct udp *u, struct msghdr *m, const struct carrier_unit *unit, bool v4)
{
	const bool usual = !in_fragments(u, unit);
	const int level = v4 ? IPPROTO_IP : IPPROTO_IPV6;
	int tos = unit->known & CARRIER_TOS ? unit->tos : 0;
	int ttl = unit->known & CARRIER_TTL ? unit->ttl : 0;

	if (!usual || tos != u->usual_tos[v4])
		add_control(m, level, v4 ? IP_TOS : IPV6_TCLASS, &tos, sizeof(tos));
	if (ttl && (!usual || ttl != u->usual_ttl[v4]))
		add_control(m, level, v4 ? IP_TTL : IPV6_HOPLIMIT, &ttl, sizeof(ttl));
}

/* `segment`: 0, or that of the train. False: the socket cannot send there. */
static bool make_message(const struct udp *u, struct msghdr *m, struct parts *p,
			 const struct carrier_unit *unit, uint16_t segment)
{
	bool v4 = family_of(&unit->to) == AF_INET;

	m->msg_iov = (struct iovec *)(uintptr_t)unit->iov;
	m->msg_iovlen = unit->count;
	m->msg_flags = 0;
	m->msg_control = p->control;
	m->msg_controllen = 0;
	if (!set_name(u, m, p, &unit->to))
		return false;
	if (segment)
		add_control(m, SOL_UDP, UDP_SEGMENT, &segment, sizeof(segment));
	if (unit->known & (CARRIER_FROM | CARRIER_INTERFACE))
		add_source(m, unit, v4);
	add_ip(u, m, unit, v4);
	if (!m->msg_controllen)
		m->msg_control = NULL;
	return true;
}

/* ---- errors ---- */

static int no_room(struct udp *u)
{
	atomic_store_explicit(&u->look_ns, clock_source_now_ns(&u->clock) + UDP_ROOM_LOOK_NS,
			      memory_order_relaxed);
	atomic_store_explicit(&u->blocked, true, memory_order_release);
	return -EAGAIN;
}

static int end_count(struct udp *u, int err)
{
	switch (err) {
	case -EAGAIN:
		udp_count_add(&u->count.would_block, 1);
		return no_room(u);
	case -EMSGSIZE:
		udp_count_add(&u->count.too_long, 1);
		break;
	case -EINVAL:
	case -EFAULT:
		udp_count_add(&u->count.faulty, 1);
		break;
	default:
		udp_count_add(&u->count.unreachable, 1);
	}
	return err;
}

/* What the kernel said, in the words of carrier.h. */
static int error_of(int number)
{
	switch (number) {
	case EAGAIN:
	case ENOBUFS: /* a queue of the host is full */
	case ENOMEM:
	case EINTR:
		return -EAGAIN;
	case EMSGSIZE:
	case EFAULT:
		return -number;
	default:
		/* No route (ENETUNREACH, EHOSTUNREACH, ENETDOWN), a rule forbids it
		 * (EPERM, EACCES), no such source or interface (EINVAL, EADDRNOTAVAIL,
		 * ENODEV), a socket that somebody closed (EBADF). */
		return -EHOSTUNREACH;
	}
}

/* Is it an error that a train gets and its packets may not? */
static bool may_be_the_train(int number)
{
	return number == EIO || number == EINVAL || number == EMSGSIZE ||
	       number == EOPNOTSUPP || number == ENOPROTOOPT;
}

/* A plain message is cheaper by sendto(): the kernel has less to copy and to check. */
static long send_once(int fd, const struct msghdr *m)
{
	return m->msg_iovlen == 1 && !m->msg_control ? udp_sendto(fd, m) :
						       udp_sendmsg(fd, m);
}

/* Past errors that packets sent earlier have come to: 0, or an errno. */
static int send_one(struct udp *u, int fd, const struct msghdr *m)
{
	for (unsigned i = 0; i < ICMP_TRIES; i++) {
		if (likely(send_once(fd, m) >= 0))
			return 0;
		if (errno != ECONNREFUSED)
			return errno;
		udp_count_add(&u->count.icmp, 1);
	}
	return EAGAIN;
}

static void count_sent(struct udp *u, const struct carrier_unit *unit, size_t bytes)
{
	unsigned packets = carrier_unit_packets(unit, bytes);

	udp_count_add(&u->count.sent, packets);
	udp_count_add(&u->count.sent_bytes, bytes);
	if (packets > 1)
		udp_count_add(&u->count.sent_trains, 1);
}

/* ---- trains in parts ---- */

/* `bytes` from offset `at` of the unit; it has them. */
static unsigned slice(const struct carrier_unit *unit, size_t at, size_t bytes,
		      struct iovec *out)
{
	unsigned n = 0;

	for (unsigned i = 0; bytes && i < unit->count; i++) {
		const struct iovec *v = &unit->iov[i];
		size_t part;

		if (at >= v->iov_len) {
			at -= v->iov_len;
			continue;
		}
		part = MIN(v->iov_len - at, bytes);
		out[n++] = (struct iovec){ (uint8_t *)v->iov_base + at, part };
		bytes -= part;
		at = 0;
	}
	return n;
}

static void trains_end(struct udp *u, int why)
{
	if (atomic_exchange(&u->trains_out, false))
		log_info("trains of UDP packets are refused here (%s); packets leave one by one",
			 strerror(why));
}

static int send_parts(struct udp *u, const struct carrier_unit *unit, size_t bytes,
		      unsigned per, int train_errno);

/* A packet, or a train that is not too long to leave as one. 0 or an errno. */
static int send_whole(struct udp *u, const struct carrier_unit *unit, size_t bytes)
{
	bool train = unit->segment && bytes > unit->segment;
	struct parts p;
	struct msghdr m;
	int err;

	if (!make_message(u, &m, &p, unit, train ? (uint16_t)unit->segment : 0))
		return EHOSTUNREACH;
	err = send_one(u, in_fragments(u, unit) ? u->fragment_fd : u->fd, &m);
	if (likely(!err))
		count_sent(u, unit, bytes);
	else if (train && may_be_the_train(err))
		err = send_parts(u, unit, bytes, 1, err);
	return err;
}

/*
 * As trains of at most `per` packets. 0, or an errno if not even the first part left. If
 * that did, and `train_errno` is what the whole train had come to, then it is trains that
 * are refused.
 */
static int send_parts(struct udp *u, const struct carrier_unit *unit, size_t bytes,
		      unsigned per, int train_errno)
{
	size_t step = (size_t)per * unit->segment;
	struct iovec iov[CARRIER_IOV_MAX];
	struct carrier_unit part = *unit;

	part.iov = iov;
	part.segment = per > 1 ? unit->segment : 0;
	for (size_t at = 0; at < bytes; at += step) {
		size_t now = MIN(step, bytes - at);
		int err;

		part.count = slice(unit, at, now, iov);
		err = send_whole(u, &part, now);
		if (err && !at)
			return err;
		if (err) {
			udp_count_add(&u->count.lost_parts,
				      carrier_unit_packets(unit, bytes - at));
			if (error_of(err) == -EAGAIN)
				no_room(u);
			return 0;
		}
		if (train_errno && !at)
			trains_end(u, train_errno);
	}
	return 0;
}

/* ---- emitting ---- */

enum way { WAY_BAD, WAY_LONG, WAY_ONE, WAY_TRAIN, WAY_PARTS, WAY_FRAGMENTS };

/* How a unit of `bytes` leaves. */
static enum way way_of(const struct udp *u, const struct carrier_unit *unit, size_t bytes)
{
	bool train = unit->segment && bytes > unit->segment;

	if (unlikely(!bytes))
		return WAY_BAD;
	if (unlikely((train ? unit->segment : bytes) > PACKET_MAX))
		return WAY_LONG;
	if (in_fragments(u, unit))
		return WAY_FRAGMENTS;
	if (!train)
		return WAY_ONE;
	if (atomic_load_explicit(&u->trains_out, memory_order_relaxed) &&
	    bytes <= CARRIER_UDP_TRAIN_BYTES &&
	    bytes <= (size_t)CARRIER_UDP_TRAIN_PACKETS * unit->segment)
		return WAY_TRAIN;
	return WAY_PARTS;
}

static unsigned packets_per_part(const struct udp *u, const struct carrier_unit *unit)
{
	if (!atomic_load_explicit(&u->trains_out, memory_order_relaxed))
		return 1;
	return MAX(1u, MIN((unsigned)CARRIER_UDP_TRAIN_PACKETS,
			   CARRIER_UDP_TRAIN_BYTES / unit->segment));
}

/* One unit: 0 or a negative errno. */
static int emit_one(struct udp *u, const struct carrier_unit *unit)
{
	size_t bytes = carrier_unit_bytes(unit);
	int err;

	switch (way_of(u, unit, bytes)) {
	case WAY_BAD:
		return end_count(u, -EINVAL);
	case WAY_LONG:
		return end_count(u, -EMSGSIZE);
	case WAY_FRAGMENTS:
		err = unit->segment ? send_parts(u, unit, bytes, 1, 0) :
				      send_whole(u, unit, bytes);
		break;
	case WAY_PARTS:
		err = send_parts(u, unit, bytes, packets_per_part(u, unit), 0);
		break;
	default:
		err = send_whole(u, unit, bytes);
	}
	return err ? end_count(u, error_of(err)) : 0;
}

/* As many of the first units as one call takes; 0: none, see emit_one(). */
static unsigned emit_many(struct udp *u, const struct carrier_unit *units, unsigned n)
{
	struct mmsghdr messages[BATCH];
	struct parts p[BATCH];
	size_t bytes[BATCH];
	unsigned made = 0;
	long sent;

	while (made < n && made < BATCH) {
		enum way way;

		bytes[made] = carrier_unit_bytes(&units[made]);
		way = way_of(u, &units[made], bytes[made]);
		if ((way != WAY_ONE && way != WAY_TRAIN) ||
		    !make_message(u, &messages[made].msg_hdr, &p[made], &units[made],
				  way == WAY_TRAIN ? (uint16_t)units[made].segment : 0))
			break;
		made++;
	}
	if (made < 2)
		return 0;
	sent = udp_sendmmsg(u->fd, messages, made);
	for (long i = 0; i < sent; i++)
		count_sent(u, &units[i], bytes[i]);
	return sent > 0 ? (unsigned)sent : 0;
}

int udp_emit(struct carrier *c, const struct carrier_unit *units, unsigned n)
{
	struct udp *u = udp_of(c);
	unsigned taken = 0;

	while (taken < n) {
		unsigned many = n - taken > 1 ?
					emit_many(u, units + taken, n - taken) : 0;
		int err;

		if (many) {
			taken += many;
			continue;
		}
		err = emit_one(u, units + taken);
		if (err)
			return taken ? (int)taken : err;
		taken++;
	}
	return (int)n;
}
