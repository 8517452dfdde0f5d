/* SPDX-License-Identifier: BSD-2-Clause */
/* See packets.h. */
#include "transport/roce/packets.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>

#include "hca/host/allowed.h"
#include "hca/host/gid.h"
#include "hca/qp/address.h"
#include "transport/carrier/udp.h"
#include "transport/packet/frame/ib.h"
#include "transport/roce/too_long.h"
#include "util/container_of.h"
#include "wire/ib/header.h"
#include "wire/ib/icrc.h"

#define UDP_HEADER_BYTES 8
/* Unacknowledged request packets: so few that the smallest receive buffers hold them. */
#define WINDOW 64

uint16_t roce_udp_port = IB_UDP_PORT;

/* ---- invariant CRC ---- */

/* Takes addresses and ports. False: these are no IP addresses. */
static bool begin_ip(struct icrc_ip *ip, const struct carrier_addr *from,
		     const struct carrier_addr *to)
{
	uint8_t address[16];
	int family = carrier_udp_addr_ip(from, address, &ip->src_port);
	size_t at = family == AF_INET ? 12 : 0;

	memcpy(ip->src, address + at, 16 - at);
	if (!family || carrier_udp_addr_ip(to, address, &ip->dst_port) != family)
		return false;
	memcpy(ip->dst, address + at, 16 - at);
	ip->version = family == AF_INET ? 4 : 6;
	ip->dont_fragment = true;
	return true;
}

static size_t seal(const struct packet_route *route, struct icrc_series *series, unsigned k,
		   bool fragments, const uint8_t *header, size_t header_bytes,
		   const struct iovec *iov, unsigned n, uint8_t to[PACKET_TRAILER_BYTES])
{
	/* That of the socket. */
	const uint16_t src_port = unlikely(fragments) ? roce_fragment_port : roce_udp_port;
	size_t bytes = header_bytes, pad;
	struct icrc c;

	for (unsigned i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	pad = -bytes & 3; /* headers are multiples of four bytes */
	memset(to, 0, pad);
	/* Route and port are the same as before, mostly. */
	if (unlikely(series->ip.src_port != src_port)) {
		*series = (struct icrc_series){ 0 };
		/* A route to nowhere has no addresses. */
		begin_ip(&series->ip, &route->from, &route->to);
		series->ip.src_port = src_port;
	}
	icrc_next(&c, series, header, (uint16_t)(UDP_HEADER_BYTES + bytes + pad + IB_ICRC_BYTES),
		  unlikely(fragments) ? 0 : (uint16_t)k);
	icrc_add(&c, header + ICRC_SERIES_BTH, header_bytes - ICRC_SERIES_BTH);
	for (unsigned i = 0; i < n; i++)
		icrc_add(&c, iov[i].iov_base, iov[i].iov_len);
	icrc_add(&c, to, pad);
	icrc_end(&c, to + pad);
	return pad + IB_ICRC_BYTES;
}

static bool is_sealed(const struct carrier_unit *unit, struct icrc_series *series, unsigned k,
		      const uint8_t *from, size_t bytes)
{
	const uint8_t *end = from + bytes - IB_ICRC_BYTES;
	uint16_t id, udp_length = (uint16_t)(UDP_HEADER_BYTES + bytes);
	struct icrc c;

	if (unlikely(!series->ip.version) && !begin_ip(&series->ip, &unit->from, &unit->to))
		return false;
	/* The kernel does not say which identification the packet had. Packets of busbar count
	 * from 0 in a train and come from the shared port; kernels and adapters in hardware
	 * choose any identification, and a source port for each connection. */
	icrc_next(&c, series, from, udp_length, (uint16_t)k);
	icrc_add(&c, from + ICRC_SERIES_BTH, (size_t)(end - from) - ICRC_SERIES_BTH);
	if (likely(icrc_matches(&c, end)))
		return true;
	if (series->ip.version != 4 || !icrc_matches_any_id(&c, udp_length, end, &id))
		return false;
	id ^= (uint16_t)k; /* the identification was searched for in place of 0 */
	return id < CARRIER_UDP_TRAIN_PACKETS || series->ip.src_port != roce_udp_port;
}

/* ---- headers ---- */

/* Writes the header that receivers of datagrams find before the data (annex A17.4.5.2). */
static void fill_grh(const struct carrier_unit *unit, size_t bytes, struct packet_frame *f)
{
	uint8_t src[16], dst[16];
	uint16_t port;

	f->ipv4 = carrier_udp_addr_ip(&unit->from, src, &port) == AF_INET;
	carrier_udp_addr_ip(&unit->to, dst, &port);
	bytes += UDP_HEADER_BYTES;
	f->global = true;
	f->path_bits = 0;
	f->slid = f->pkey_index = 0;
	f->sl = PACKET_ROCE_V2_IPV6;
	memset(f->grh, 0, sizeof(f->grh));
	if (f->ipv4) {
		struct iphdr ip = {
			.version = 4,
			.ihl = 5,
			.tos = unit->tos,
			.tot_len = htons((uint16_t)(sizeof(ip) + bytes)),
			.frag_off = htons(IP_DF),
			.ttl = unit->ttl,
			.protocol = IPPROTO_UDP,
		};

		memcpy(&ip.saddr, src + 12, 4);
		memcpy(&ip.daddr, dst + 12, 4);
		ip.check = ib_ip_checksum(ib_ip_sum(0, &ip, sizeof(ip)));
		f->sl = PACKET_ROCE_V2_IPV4;
		memcpy(f->grh + 20, &ip, sizeof(ip));
	} else {
		struct ib_grh grh = {
			.traffic_class = unit->tos,
			.next_header = IPPROTO_UDP,
			.hop_limit = unit->ttl,
			.payload_length = (uint16_t)bytes,
		};

		memcpy(grh.sgid, src, sizeof(src));
		memcpy(grh.dgid, dst, sizeof(dst));
		ib_grh_encode(&grh, f->grh);
	}
}

static bool is_to_group(const struct carrier_unit *unit)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	memcpy(&v4, &unit->to, sizeof(v4));
	if (likely(v4.sin_family == AF_INET))
		return IN_MULTICAST(ntohl(v4.sin_addr.s_addr));
	memcpy(&v6, &unit->to, sizeof(v6));
	return IN6_IS_ADDR_MULTICAST(&v6.sin6_addr);
}

/* Packets to groups are allowed: groups are joined on allowed interfaces alone. */
static bool is_allowed(const struct carrier_unit *unit)
{
	uint8_t to[16];
	uint16_t port;

	return is_to_group(unit) ||
	       (carrier_udp_addr_ip(&unit->to, to, &port) && hca_network_allows(to));
}

static size_t decode(const struct carrier_unit *unit, struct icrc_series *series, unsigned k,
		     const uint8_t *from, size_t bytes, struct packet_frame *f,
		     enum packet_fault *fault)
{
	size_t header;

	if (unlikely(bytes < IB_BTH_BYTES + IB_ICRC_BYTES || bytes > UINT16_MAX - 60))
		return 0;
	if (unlikely(!hca_network_allows_all) && !is_allowed(unit))
		return 0;
	if (unlikely(!is_sealed(unit, series, k, from, bytes))) {
		*fault = PACKET_BAD_ICRC;
		return 0;
	}
	header = packet_ib_decode(from, bytes, f);
	/* A packet to a group address has the QP number of groups, and no other packet has it. */
	if (unlikely(header && is_to_group(unit) != (f->dst_qpn == HCA_QPN_MULTICAST)))
		return 0;
	if (header && f->service == PACKET_UD)
		fill_grh(unit, bytes, f);
	return header;
}

/* The packet is that before it with another PSN, so decode() would say the same of it. */
static bool follows(const struct carrier_unit *unit, struct icrc_series *series, unsigned k,
		    const uint8_t *before, size_t header_bytes, const uint8_t *from,
		    size_t bytes)
{
	uint8_t expected[PACKET_HEADER_BYTES];

	memcpy(expected, before, header_bytes);
	packet_ib_renumber(expected, packet_ib_psn(before) + 1);
	return !memcmp(expected, from, header_bytes) &&
	       is_sealed(unit, series, k, from, bytes);
}

/* ---- addresses ---- */

bool roce_is_address(const struct ibv_ah_attr *to)
{
	static const uint8_t nothing[16];

	return memcmp(to->grh.dgid.raw, nothing, sizeof(nothing));
}

/* A group is reached by the interface of the source. Where that has an address of the other IP
 * version, one of the group's version of the same interface takes its place. */
static int group_address(const struct ibv_ah_attr *to, const union ibv_gid *from,
			 struct packet_route *route)
{
	const uint8_t *dst = to->grh.dgid.raw;
	struct ibv_gid_entry source, other;
	bool same = hca_gid_is_ipv4(dst) == hca_gid_is_ipv4(from->raw);

	if (hca_gid_by_index(to->grh.sgid_index, &source))
		return -EHOSTUNREACH;
	for (uint32_t i = 0; !same; i++) {
		if (hca_gid_by_index(i, &other))
			return -EHOSTUNREACH;
		if (other.ndev_ifindex != source.ndev_ifindex ||
		    hca_gid_is_ipv4(dst) != hca_gid_is_ipv4(other.gid.raw))
			continue;
		from = &other.gid;
		same = true;
	}
	if (!hca_network_allows(from->raw))
		return -EHOSTUNREACH;
	*route = (struct packet_route){
		.to = carrier_udp_addr_of(dst, source.ndev_ifindex, roce_udp_port),
		.from = carrier_udp_addr_of(from->raw, source.ndev_ifindex, 0),
		.known = CARRIER_FROM | CARRIER_INTERFACE | CARRIER_TOS | CARRIER_TTL,
		.tos = to->grh.traffic_class,
		.ttl = to->grh.hop_limit,
		.interface = source.ndev_ifindex,
	};
	return 0;
}

static int address(const struct ibv_ah_attr *to, const union ibv_gid *from,
		   struct packet_route *route)
{
	struct ibv_gid_entry entry = { 0 };
	const uint8_t *dst = to->grh.dgid.raw;
	bool link_local = dst[0] == 0xfe && (dst[1] & 0xc0) == 0x80;

	if (unlikely(hca_gid_is_multicast(&to->grh.dgid)))
		return group_address(to, from, route);
	if (unlikely(!roce_is_address(to)))
		return -EHOSTUNREACH;
	/* An address of this host reaches this host, whatever the IP version of the source. */
	if (hca_gid_is_ipv4(dst) != hca_gid_is_ipv4(from->raw)) {
		if (!hca_gid_is_local(&to->grh.dgid))
			return -EHOSTUNREACH;
		from = &to->grh.dgid;
	}
	if (!hca_network_allows(from->raw))
		return -EHOSTUNREACH;
	if (link_local && hca_gid_by_index(to->grh.sgid_index, &entry))
		return -EHOSTUNREACH;
	*route = (struct packet_route){
		.to = carrier_udp_addr_of(dst, entry.ndev_ifindex, roce_udp_port),
		.from = carrier_udp_addr_of(from->raw, entry.ndev_ifindex, 0),
		.known = CARRIER_FROM | CARRIER_TOS | CARRIER_TTL,
		.tos = to->grh.traffic_class,
		.ttl = to->grh.hop_limit,
	};
	return 0;
}

static bool is_from(const struct packet_route *route, const struct carrier_unit *unit)
{
	uint8_t peer[16], sender[16];
	union ibv_gid gid;
	uint16_t port;

	if (likely(carrier_addr_equal(&route->to, &unit->from)))
		return true;
	if (!carrier_udp_addr_ip(&route->to, peer, &port) ||
	    !carrier_udp_addr_ip(&unit->from, sender, &port))
		return false;
	if (!memcmp(peer, sender, sizeof(peer)))
		return true;
	memcpy(gid.raw, sender, sizeof(gid.raw));
	return route->any_here && hca_gid_is_local(&gid);
}

const struct packet_medium roce_medium = {
	.mtu = PACKET_MTU,
	.window = WINDOW,
	.ack_delay_ns = 60000,
	.encode = packet_ib_encode,
	.renumber = packet_ib_renumber,
	.seal = seal,
	.too_long = roce_too_long,
	.decode = decode,
	.peek = packet_ib_decode,
	.follows = follows,
	.address = address,
	.is_from = is_from,
};
