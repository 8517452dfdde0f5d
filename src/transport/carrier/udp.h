/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A carrier over a UDP socket: bound, not connected, IPv4 or IPv6, or both at once (an
 * AF_INET6 socket without IPV6_V6ONLY). Trains leave by UDP_SEGMENT and come by UDP_GRO.
 *
 * Addresses are a sockaddr_in, or a sockaddr_in6, followed by zeros. An IPv4 address is
 * always a sockaddr_in, also where the socket is of IPv6, and a sockaddr_in6 has no flow
 * information and a scope only if it is link-local; carrier_udp_addr() makes this form.
 *
 * Emission
 *   The source port is the socket's. Of the fields of a unit TOS, TTL, INTERFACE and FROM
 *   (the address, not its port) are obeyed when known.
 *   The Don't Fragment bit is set, so the IPv4 identification is 0, and k for packet k of a
 *   train that left as one. Packets are never longer than the interface takes (-EMSGSIZE);
 *   the kernel's notion of a path MTU, which any ICMP packet can change, is not used.
 *   A train longer than carrier_udp_train_packets() or CARRIER_UDP_TRAIN_BYTES leaves as
 *   several; each of these counts its identifications from 0.
 *   Where the kernel or the route refuses a train it leaves as single packets of
 *   identification 0, and so do all trains from then on; carrier_udp_train_packets() is 1
 *   then. Ask it before a train is made, if what is in it depends on the identification.
 *   Where a train leaves in parts and a later part has no room, the rest is lost; the
 *   train counts as taken.
 *   Units with CARRIER_FRAGMENTS leave from a socket of their own, which does not set Don't
 *   Fragment: the kernel cuts what is longer than the interface takes, and chooses the
 *   identification. Its port (carrier_udp_facts.fragment_port) is the socket's, if that has
 *   SO_REUSEPORT with a program that chooses by the packet, else another one. Their trains
 *   leave packet by packet. That socket receives nothing. Without one they leave as all others.
 *   Errors: those of carrier.h, and -EFAULT: bytes of the unit are not mapped.
 *
 * Delivery
 *   from, to (the destination address, with the socket's port), interface, tos and ttl are
 *   known; the latter two as carrier_udp_bring() says. A unit's bytes lie in a buffer of the carrier. A poll that returns less than its
 *   budget may have left packets: then the socket is readable (epoll, level triggered).
 *   Where trains come from a network card that merges packets (GRO), packets of a train
 *   have the same addresses and ports, but not always the same receiving queue pair.
 *
 * Waiting: for EPOLLIN of carrier_udp_fd(), and until next_ns, which is the time to look
 * for room behind -EAGAIN. EPOLLOUT is not needed.
 */
#ifndef TRANSPORT_CARRIER_UDP_H
#define TRANSPORT_CARRIER_UDP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "transport/carrier/carrier.h"
#include "util/clock_source.h"

/* Of a train that leaves as one: what every kernel with UDP_SEGMENT takes (the smallest
 * UDP payload of both IP versions, rounded down). */
#define CARRIER_UDP_TRAIN_PACKETS 64
#define CARRIER_UDP_TRAIN_BYTES 65400

struct carrier_udp_params {
	/* Stays the caller's, who closes it behind the carrier. Other processes may hold it
	 * too, but only one at a time has a carrier over it. Options of it are changed. */
	int fd;
	struct clock_source clock;
	size_t buffer_bytes; /* to ask for, each of receiving and sending; 0: 4 MiB */
	size_t packet_bytes; /* of the longest datagram or train that is received, so that
			      * less memory is needed; 0: whatever comes */
	bool no_trains;      /* emit none as one, and ask for none */
	bool fragments;      /* have a socket for units with CARRIER_FRAGMENTS */
};

struct carrier_udp_counters {
	uint64_t sent, sent_trains, sent_bytes;  /* packets; of them those in trains are
						  * counted one by one */
	uint64_t received, received_trains, received_bytes;
	uint64_t would_block;   /* emit calls that ended with -EAGAIN */
	uint64_t too_long;      /* with -EMSGSIZE */
	uint64_t unreachable;   /* with -EHOSTUNREACH */
	uint64_t faulty;        /* with -EINVAL and -EFAULT */
	uint64_t lost_parts;    /* packets of trains that left in parts, without room */
	uint64_t icmp;          /* errors of earlier packets, passed over */
	uint64_t truncated;     /* datagrams longer than a buffer, or without their control
				 * messages: dropped */
	uint64_t receive_errors;
	uint64_t overrun;       /* packets, or trains that were one, that the kernel dropped,
				 * mostly as the receive buffer was full; since open */
};

struct carrier_udp_facts {
	int family;              /* AF_INET, AF_INET6 */
	bool both;               /* AF_INET6 that takes IPv4 too */
	uint16_t port;
	uint16_t fragment_port;  /* 0: no socket for fragments */
	bool trains_out, trains_in;
	uint32_t receive_bytes, send_bytes; /* buffers, as the kernel counts (its overhead
					     * included: about twice what is usable) */
};

/*
 * A new socket for carrier_udp_open(), bound to `port` (0: any) of all addresses: of both
 * IP versions, or of IPv4 alone where the host has no IPv6. Close-on-exec. Its descriptor
 * or a negative errno.
 */
int carrier_udp_socket(uint16_t port);

/* 0; -ENOTSOCK, -EPROTONOSUPPORT (no UDP socket), -EDESTADDRREQ (not bound), -EISCONN,
 * -ENOMEM, or another negative errno. */
int carrier_udp_open(const struct carrier_udp_params *params, struct carrier **out);

int carrier_udp_fd(const struct carrier *c);

/* The processor that brought the last packet: between sockets of a host that of the sender. -1: none
 * came. */
int carrier_udp_came_on(const struct carrier *c);

/*
 * Which of CARRIER_TOS and CARRIER_TTL deliveries bring from now on; at first both. They
 * cost about 0.1 us a system call that receives, so an owner without use for them (they are
 * for the headers that datagrams show) does without. Any thread; 0 or a negative errno.
 */
int carrier_udp_bring(struct carrier *c, uint16_t known);

/* How many packets a train can have that leaves as one; 1: none does. Any thread; costs a
 * load. */
unsigned carrier_udp_train_packets(const struct carrier *c);

/* Any thread. Each number of the counters is right by itself; makes a system call. */
void carrier_udp_count(struct carrier *c, struct carrier_udp_counters *out);
void carrier_udp_facts(const struct carrier *c, struct carrier_udp_facts *out);

/*
 * Joins or leaves the multicast group (its address; the port is not used) on the interface,
 * or on the one that the host chooses (0). A socket under a carrier gets only packets of
 * groups that it joined, and each socket that joined gets its own copy. 0 (also: had joined
 * before) or a negative errno (-EADDRNOTAVAIL: had not joined; -EINVAL: no multicast
 * address; -ENODEV). Any thread.
 */
int carrier_udp_member(struct carrier *c, const struct carrier_addr *group,
		       uint32_t interface, bool joined);

/* Do packets to groups come back to the members on this host, this socket among them? At first
 * they do; by the loopback interface they always do. 0 or a negative errno. Any thread. */
int carrier_udp_loop(struct carrier *c, bool on);

/* ---- addresses ---- */

/* The normal form. 0, or -EAFNOSUPPORT: neither IPv4 nor IPv6, or too short. */
int carrier_udp_addr(const struct sockaddr *address, socklen_t len,
		     struct carrier_addr *out);
/* From an IPv6 address or an IPv4-mapped one, as GIDs are. `scope`: interface index of a
 * link-local address. */
struct carrier_addr carrier_udp_addr_of(const uint8_t ip[16], uint32_t scope, uint16_t port);
/* Back: AF_INET or AF_INET6 (0: no address, `ip` and `port` are 0). */
int carrier_udp_addr_ip(const struct carrier_addr *a, uint8_t ip[16], uint16_t *port);

#endif
