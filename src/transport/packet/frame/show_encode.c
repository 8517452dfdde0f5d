/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames as bytes from the Ethernet header to the ICRC; see show.h. */
#include <arpa/inet.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>

#include "hca/host/gid.h"
#include "transport/packet/frame/ib.h"
#include "transport/packet/frame/show.h"
#include "util/container_of.h"
#include "wire/ib/header.h"
#include "wire/ib/icrc.h"

#define MAC_BYTES 6
#define TYPE_IPV4 0x0800
#define TYPE_IPV6 0x86dd
#define DONT_FRAGMENT 0x4000
#define TTL 64
#define PORT_BASE 0xc000 /* A17.3.1: source ports of RoCE v2 */
#define PORT_MASK 0x3fff

static size_t put_mac(uint8_t *to, const uint8_t gid[16], bool ipv4)
{
	const uint8_t *ip = gid + 12;

	if (ipv4 && (ip[0] & 0xf0) == 0xe0) {
		const uint8_t group[MAC_BYTES] = { 1, 0, 0x5e, ip[1] & 0x7f, ip[2], ip[3] };

		memcpy(to, group, sizeof(group));
	} else {
		bool group = !ipv4 && gid[0] == 0xff;

		to[0] = group ? 0x33 : 2;
		to[1] = group ? 0x33 : 0;
		memcpy(to + 2, ip, 4);
	}
	return MAC_BYTES;
}

static size_t put_ethernet(uint8_t *to, const struct packet_ends *ends, bool ipv4)
{
	size_t at = put_mac(to, ends->dst, ipv4);
	uint16_t type = htons(ipv4 ? TYPE_IPV4 : TYPE_IPV6);

	at += put_mac(to + at, ends->src, ipv4);
	memcpy(to + at, &type, sizeof(type));
	return at + sizeof(type);
}

static size_t put_ipv4(uint8_t *to, const struct packet_ends *ends, uint8_t protocol, size_t bytes)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = sizeof(ip) / 4,
		.tos = ends->tos,
		.tot_len = htons((uint16_t)(sizeof(ip) + bytes)),
		.id = htons(ends->ip_id),
		.frag_off = htons(DONT_FRAGMENT),
		.ttl = ends->ttl ? ends->ttl : TTL,
		.protocol = protocol,
	};

	memcpy(&ip.saddr, ends->src + 12, sizeof(ip.saddr));
	memcpy(&ip.daddr, ends->dst + 12, sizeof(ip.daddr));
	ip.check = ib_ip_checksum(ib_ip_sum(0, &ip, sizeof(ip)));
	memcpy(to, &ip, sizeof(ip));
	return sizeof(ip);
}

static size_t put_ipv6(uint8_t *to, const struct packet_ends *ends, uint8_t protocol, size_t bytes)
{
	struct ip6_hdr ip = {
		.ip6_flow = htonl(6u << 28 | (uint32_t)ends->tos << 20),
		.ip6_plen = htons((uint16_t)bytes),
		.ip6_nxt = protocol,
		.ip6_hlim = ends->ttl ? ends->ttl : TTL,
	};

	memcpy(&ip.ip6_src, ends->src, sizeof(ip.ip6_src));
	memcpy(&ip.ip6_dst, ends->dst, sizeof(ip.ip6_dst));
	memcpy(to, &ip, sizeof(ip));
	return sizeof(ip);
}

/* The checksum of the datagram or segment at `from`, whose checksum field is 0. */
static uint16_t checksum(const struct packet_ends *ends, bool ipv4, uint8_t protocol,
			 const uint8_t *from, size_t bytes)
{
	const uint8_t pseudo[4] = { 0, protocol, (uint8_t)(bytes >> 8), (uint8_t)bytes };
	unsigned skip = ipv4 ? 12 : 0;
	uint32_t sum = ib_ip_sum(0, pseudo, sizeof(pseudo));
	uint16_t found;

	sum = ib_ip_sum(sum, ends->src + skip, 16 - skip);
	sum = ib_ip_sum(sum, ends->dst + skip, 16 - skip);
	found = ib_ip_checksum(ib_ip_sum(sum, from, bytes));
	return found ? found : 0xffff; /* 0 means that UDP has no checksum */
}

static void put_icrc(const struct packet_ends *ends, bool ipv4, const struct udphdr *udp,
		     const uint8_t *bth, size_t bytes)
{
	struct icrc_ip ip = {
		.version = ipv4 ? 4 : 6,
		.src_port = ntohs(udp->source),
		.dst_port = ntohs(udp->dest),
		.udp_length = ntohs(udp->len),
		.dont_fragment = ipv4,
	};
	unsigned skip = ipv4 ? 12 : 0;
	uint8_t code[IB_ICRC_BYTES];
	struct icrc c;

	memcpy(ip.src, ends->src + skip, 16 - skip);
	memcpy(ip.dst, ends->dst + skip, 16 - skip);
	icrc_begin(&c, &ip, bth);
	icrc_add(&c, bth + IB_BTH_BYTES, bytes - IB_BTH_BYTES);
	icrc_end(&c, code);
	memcpy((uint8_t *)(uintptr_t)bth + bytes, code, sizeof(code));
}

/* Writes the Ethernet header; returns where that of UDP or TCP goes. */
static size_t put_headers(const struct packet_ends *ends, bool ipv4, uint8_t *to)
{
	return put_ethernet(to, ends, ipv4) +
	       (ipv4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr));
}

/* Writes the IP header, and the checksum at `check` of the header of UDP or TCP, when all else from
 * `at` to `end` is in its place. */
static void finish(const struct packet_ends *ends, bool ipv4, uint8_t protocol, uint8_t *to, size_t at,
		   size_t check, size_t end)
{
	size_t ip_at = at - (ipv4 ? sizeof(struct iphdr) : sizeof(struct ip6_hdr));
	uint16_t code;

	if (ipv4)
		put_ipv4(to + ip_at, ends, protocol, end - at);
	else
		put_ipv6(to + ip_at, ends, protocol, end - at);
	code = checksum(ends, ipv4, protocol, to + at, end - at);
	memcpy(to + at + check, &code, sizeof(code));
}

static void finish_udp(const struct packet_ends *ends, bool ipv4, const struct udphdr *udp,
		       uint8_t *to, size_t udp_at, size_t end)
{
	memcpy(to + udp_at, udp, sizeof(*udp));
	finish(ends, ipv4, IPPROTO_UDP, to, udp_at, offsetof(struct udphdr, check), end);
}

static bool both_ipv4(const struct packet_ends *ends)
{
	return hca_gid_is_ipv4(ends->src) && hca_gid_is_ipv4(ends->dst);
}

size_t packet_show_wrap(const struct packet_ends *ends, const void *ib, size_t bytes,
			uint8_t to[PACKET_SHOW_BYTES])
{
	bool ipv4 = both_ipv4(ends);
	size_t udp_at = put_headers(ends, ipv4, to), end;
	struct udphdr udp = {
		.source = htons(ends->src_port),
		.dest = htons(ends->dst_port),
	};

	bytes = MIN(bytes, PACKET_SHOW_IB);
	udp.len = htons((uint16_t)(sizeof(udp) + bytes));
	memcpy(to + udp_at + sizeof(udp), ib, bytes);
	end = udp_at + sizeof(udp) + bytes;
	finish_udp(ends, ipv4, &udp, to, udp_at, end);
	return end;
}

size_t packet_show_encode(const struct packet_ends *ends, const struct packet_frame *f,
			  const struct iovec *payload, unsigned n,
			  uint8_t to[PACKET_SHOW_BYTES])
{
	bool ipv4 = both_ipv4(ends);
	size_t udp_at = put_headers(ends, ipv4, to), ib = udp_at + sizeof(struct udphdr);
	size_t end = ib + packet_ib_encode(f, to + ib), pad;
	uint32_t left = MIN(f->rc.bytes, PACKET_MTU);
	struct udphdr udp = {
		.source = htons((uint16_t)(PORT_BASE | ((f->src_qpn ^ f->dst_qpn * 31) &
							PORT_MASK))),
		.dest = htons(IB_UDP_PORT),
	};

	for (unsigned i = 0; i < n && left; i++) {
		uint32_t bytes = (uint32_t)MIN(payload[i].iov_len, left);

		memcpy(to + end, payload[i].iov_base, bytes);
		end += bytes;
		left -= bytes;
	}
	pad = left + ib_pad(f->rc.bytes); /* bytes that are missing are shown as zeros */
	memset(to + end, 0, pad);
	end += pad;
	udp.len = htons((uint16_t)(end + IB_ICRC_BYTES - udp_at));
	put_icrc(ends, ipv4, &udp, to + ib, end - ib);
	end += IB_ICRC_BYTES;
	finish_udp(ends, ipv4, &udp, to, udp_at, end);
	return end;
}

size_t packet_show_segment(const struct packet_ends *ends, const struct packet_tcp *tcp,
			   const void *data, size_t bytes, uint8_t to[PACKET_SHOW_BYTES])
{
	bool ipv4 = both_ipv4(ends);
	size_t at = put_headers(ends, ipv4, to);
	const struct tcphdr header = {
		.source = htons(ends->src_port),
		.dest = htons(ends->dst_port),
		.seq = htonl(tcp->seq),
		.ack_seq = htonl(tcp->ack),
		.doff = sizeof(header) / 4,
		.window = 0xffff,
		.syn = tcp->syn, .fin = tcp->fin, .rst = tcp->rst,
		.ack = tcp->acks, .psh = bytes > 0,
	};

	bytes = MIN(bytes, PACKET_SHOW_STREAM);
	memcpy(to + at, &header, sizeof(header));
	if (bytes)
		memcpy(to + at + sizeof(header), data, bytes);
	finish(ends, ipv4, IPPROTO_TCP, to, at, offsetof(struct tcphdr, check),
	       at + sizeof(header) + bytes);
	return at + sizeof(header) + bytes;
}
