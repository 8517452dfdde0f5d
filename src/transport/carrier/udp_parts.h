/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the carrier over UDP share; see udp.h for what it is. */
#ifndef TRANSPORT_CARRIER_UDP_PARTS_H
#define TRANSPORT_CARRIER_UDP_PARTS_H

#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "transport/carrier/drainer.h"
#include "transport/carrier/udp.h"
#include "util/cancel_net.h"
#include "util/container_of.h"
#include "util/udp_offload.h"

/* Datagrams that one call receives; each has room for the longest train. */
#define UDP_RECEIVE_BATCH 16
#define UDP_RECEIVE_BYTES 65536
/* Control messages of a datagram that comes: UDP_GRO, packet information, TOS, TTL. */
#define UDP_RECEIVE_CONTROL 192
/* How long after -EAGAIN to look for room. */
#define UDP_ROOM_LOOK_NS 50000

union udp_name {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct carrier_addr as_carrier;
};

struct udp_receive {
	struct mmsghdr messages[UDP_RECEIVE_BATCH];
	struct iovec iov[UDP_RECEIVE_BATCH];
	union udp_name names[UDP_RECEIVE_BATCH];
	_Alignas(struct cmsghdr) uint8_t control[UDP_RECEIVE_BATCH][UDP_RECEIVE_CONTROL];
	uint8_t *bytes;    /* UDP_RECEIVE_BATCH times the longest one */
	unsigned batch;    /* how many to ask for */
	unsigned unbroken; /* calls that got all they asked for, since one that did not */
};

struct udp_counted {
	atomic_uint_fast64_t sent, sent_trains, sent_bytes, would_block, too_long,
		unreachable, faulty, lost_parts, icmp;
	/* By the draining thread alone. */
	cache_aligned atomic_uint_fast64_t received;
	atomic_uint_fast64_t received_trains, received_bytes, truncated, icmp_received,
		receive_errors;
};

struct udp {
	struct carrier carrier;
	int fd;
	int fragment_fd; /* -1: none */
	int family;
	bool both;       /* AF_INET6 that takes IPv4 too */
	bool trains_in;
	/* What packets of `fd` get without a control message, over IPv6 and over IPv4; -1: not known. */
	int usual_tos[2], usual_ttl[2];
	in_port_t port;  /* in the order of the network */
	in_port_t fragment_port; /* likewise */
	uint32_t dropped_before; /* by the kernel, before open */
	struct clock_source clock;
	atomic_bool trains_out;
	/* An emit had no room; when to look for some. */
	atomic_bool blocked;
	_Atomic uint64_t look_ns;
	cache_aligned struct udp_counted count;
	cache_aligned struct drainer drainer;
	struct udp_receive in;
};

static inline struct udp *udp_of(const struct carrier *c)
{
	return container_of(c, struct udp, carrier);
}

int udp_emit(struct carrier *c, const struct carrier_unit *units, unsigned n);
unsigned udp_poll(struct carrier *c, unsigned budget);
/* For datagrams of up to `packet_bytes`. -ENOMEM */
int udp_receive_init(struct udp_receive *in, size_t packet_bytes);

static inline void udp_count_add(atomic_uint_fast64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* System calls, because those of the C library are cancellation points (util/cancel.h). */
static inline long udp_sendmsg(int fd, const struct msghdr *m)
{
	return cancel_free_sendmsg(fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Of one piece and without control messages. */
static inline long udp_sendto(int fd, const struct msghdr *m)
{
	return syscall(SYS_sendto, (long)fd, m->msg_iov->iov_base, m->msg_iov->iov_len,
		       (long)(MSG_DONTWAIT | MSG_NOSIGNAL), m->msg_name,
		       (long)m->msg_namelen);
}

static inline long udp_sendmmsg(int fd, struct mmsghdr *m, unsigned n)
{
	return syscall(SYS_sendmmsg, (long)fd, m, (long)n,
		       (long)(MSG_DONTWAIT | MSG_NOSIGNAL));
}

static inline long udp_recvmsg(int fd, struct msghdr *m)
{
	return syscall(SYS_recvmsg, (long)fd, m, (long)MSG_DONTWAIT);
}

static inline long udp_recvmmsg(int fd, struct mmsghdr *m, unsigned n)
{
	return syscall(SYS_recvmmsg, (long)fd, m, (long)n, (long)MSG_DONTWAIT, NULL);
}

#endif
