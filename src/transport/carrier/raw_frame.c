/* SPDX-License-Identifier: BSD-2-Clause */
/* See raw_frame.h. */
#include "transport/carrier/raw_frame.h"

#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/udp.h>
#include <string.h>

#include "transport/carrier/udp_parts.h"

/* The first four bytes of a header of IPv6, as a number. */
#define VERSION_6 (6u << 28)
#define TRAFFIC_CLASS_SHIFT 20
#define DEFAULT_TTL 64

_Static_assert(RAW_HEADERS_V4 == RAW_ETHERNET_BYTES + sizeof(struct iphdr) +
			       sizeof(struct udphdr), "without options");
_Static_assert(RAW_HEADERS_V6 == RAW_ETHERNET_BYTES + sizeof(struct ip6_hdr) +
			       sizeof(struct udphdr), "without extension headers");

static uint16_t checksum(const struct iphdr *ip)
{
	uint16_t words[sizeof(*ip) / 2];
	uint32_t sum = 0;

	memcpy(words, ip, sizeof(words));
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		sum += words[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~(sum + (sum >> 16));
}

static size_t write_v4(const struct carrier_unit *unit, size_t bytes, const union udp_name *from,
		       const union udp_name *to, uint8_t *at)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.tos = unit->known & CARRIER_TOS ? unit->tos : 0,
		.tot_len = htons((uint16_t)(sizeof(ip) + RAW_UDP_BYTES + bytes)),
		.frag_off = htons(IP_DF),
		.ttl = unit->known & CARRIER_TTL && unit->ttl ? unit->ttl : DEFAULT_TTL,
		.protocol = IPPROTO_UDP,
		.saddr = from->v4.sin_addr.s_addr,
		.daddr = to->v4.sin_addr.s_addr,
	};

	ip.check = checksum(&ip);
	memcpy(at, &ip, sizeof(ip));
	return sizeof(ip);
}

static size_t write_v6(const struct carrier_unit *unit, size_t bytes,
		       const union udp_name *from, const union udp_name *to, uint8_t *at)
{
	uint32_t class = unit->known & CARRIER_TOS ? unit->tos : 0;
	struct ip6_hdr ip = { .ip6_src = from->v6.sin6_addr, .ip6_dst = to->v6.sin6_addr };

	ip.ip6_flow = htonl(VERSION_6 | class << TRAFFIC_CLASS_SHIFT);
	ip.ip6_plen = htons((uint16_t)(RAW_UDP_BYTES + bytes));
	ip.ip6_nxt = IPPROTO_UDP;
	ip.ip6_hlim = unit->known & CARRIER_TTL && unit->ttl ? unit->ttl : DEFAULT_TTL;
	memcpy(at, &ip, sizeof(ip));
	return sizeof(ip);
}

/* Beside it the loopback interface has address 0, and so have both ends. */
struct ethernet {
	uint8_t zero[10];
	uint16_t segment, type;
};
_Static_assert(sizeof(struct ethernet) == RAW_ETHERNET_BYTES, "without padding");

size_t raw_frame_write(const struct carrier_unit *unit, size_t bytes, uint16_t port,
		       uint8_t frame[RAW_FRAME_BYTES])
{
	const struct ethernet ethernet = {
		.segment = htons(unit->segment < bytes ? (uint16_t)unit->segment : 0),
		.type = htons(RAW_ETHERTYPE),
	};
	union udp_name from, to;
	struct udphdr udp = {
		.source = htons(port),
		.dest = htons(port),
		.len = htons((uint16_t)(RAW_UDP_BYTES + bytes)),
		/* No checksum: that of the packet covers more (ICRC). */
	};
	size_t n = RAW_ETHERNET_BYTES;

	from.as_carrier = unit->from;
	to.as_carrier = unit->to;
	if (from.any.sa_family != to.any.sa_family)
		return 0;
	memcpy(frame, &ethernet, sizeof(ethernet));
	if (to.any.sa_family == AF_INET)
		n += write_v4(unit, bytes, &from, &to, frame + n);
	else if (to.any.sa_family == AF_INET6)
		n += write_v6(unit, bytes, &from, &to, frame + n);
	else
		return 0;
	memcpy(frame + n, &udp, sizeof(udp));
	n += sizeof(udp);
	carrier_unit_gather(unit, 0, bytes, frame + n);
	return n + bytes;
}

/* ---- reading ---- */

static bool read_udp(const uint8_t *at, size_t bytes, union udp_name *from,
		     union udp_name *to, struct iovec *packets)
{
	struct udphdr udp;

	if (bytes <= sizeof(udp)) /* an empty datagram is no unit */
		return false;
	memcpy(&udp, at, sizeof(udp));
	if (ntohs(udp.len) != bytes || udp.check)
		return false;
	if (to->any.sa_family == AF_INET) {
		from->v4.sin_port = udp.source;
		to->v4.sin_port = udp.dest;
	} else {
		from->v6.sin6_port = udp.source;
		to->v6.sin6_port = udp.dest;
	}
	*packets = (struct iovec){ (void *)(uintptr_t)(at + sizeof(udp)),
				   bytes - sizeof(udp) };
	return true;
}

static bool read_v4(const uint8_t *at, size_t bytes, struct carrier_unit *unit,
		    union udp_name *from, union udp_name *to)
{
	struct iphdr ip;

	if (bytes < sizeof(ip))
		return false;
	memcpy(&ip, at, sizeof(ip));
	if (ip.version != 4 || ip.ihl != 5 || ip.protocol != IPPROTO_UDP ||
	    ntohs(ip.tot_len) != bytes || ip.frag_off & htons((uint16_t)~IP_DF))
		return false;
	from->v4.sin_family = to->v4.sin_family = AF_INET;
	from->v4.sin_addr.s_addr = ip.saddr;
	to->v4.sin_addr.s_addr = ip.daddr;
	unit->tos = ip.tos;
	unit->ttl = ip.ttl;
	unit->ip_id = ntohs(ip.id);
	unit->known |= CARRIER_IP_ID;
	return true;
}

static bool read_v6(const uint8_t *at, size_t bytes, struct carrier_unit *unit,
		    union udp_name *from, union udp_name *to)
{
	struct ip6_hdr ip;

	if (bytes < sizeof(ip))
		return false;
	memcpy(&ip, at, sizeof(ip));
	if (ntohl(ip.ip6_flow) >> 28 != 6 || ip.ip6_nxt != IPPROTO_UDP ||
	    ntohs(ip.ip6_plen) != bytes - sizeof(ip))
		return false;
	from->v6.sin6_family = to->v6.sin6_family = AF_INET6;
	from->v6.sin6_addr = ip.ip6_src;
	to->v6.sin6_addr = ip.ip6_dst;
	unit->tos = (uint8_t)(ntohl(ip.ip6_flow) >> TRAFFIC_CLASS_SHIFT);
	unit->ttl = ip.ip6_hlim;
	return true;
}

bool raw_frame_read(const uint8_t *frame, size_t bytes, struct carrier_unit *unit,
		    struct iovec *packets)
{
	const uint8_t *at = frame + RAW_ETHERNET_BYTES;
	struct ethernet ethernet;
	union udp_name from, to;
	size_t header;

	if (bytes <= RAW_ETHERNET_BYTES)
		return false;
	memcpy(&ethernet, frame, sizeof(ethernet));
	if (ethernet.type != htons(RAW_ETHERTYPE))
		return false;
	bytes -= RAW_ETHERNET_BYTES;
	memset(&from, 0, sizeof(from));
	memset(&to, 0, sizeof(to));
	unit->known = CARRIER_FROM | CARRIER_TOS | CARRIER_TTL;
	if (at[0] >> 4 == 4) {
		header = sizeof(struct iphdr);
		if (!read_v4(at, bytes, unit, &from, &to))
			return false;
	} else {
		header = sizeof(struct ip6_hdr);
		if (!read_v6(at, bytes, unit, &from, &to))
			return false;
	}
	if (!read_udp(at + header, bytes - header, &from, &to, packets))
		return false;
	unit->segment = ntohs(ethernet.segment);
	if (unit->segment >= packets->iov_len)
		return false;
	unit->from = from.as_carrier;
	unit->to = to.as_carrier;
	return true;
}
