/* SPDX-License-Identifier: BSD-2-Clause */
/* From link types to the BTH; see link.h. LRH: IBTA volume 1, 7.7. */
#include "wire/capture/link.h"

#include <string.h>

#include "wire/bytes.h"
#include "wire/ib/header.h"
#include "wire/ib/native.h"

enum {
	TYPE_IP4 = 0x0800,
	TYPE_IP6 = 0x86dd,
	TYPE_VLAN = 0x8100,
	TYPE_VLAN_OUTER = 0x88a8,
	TYPE_ROCE_V1 = 0x8915,
	ETHERNET_BYTES = 14,
	VLAN_BYTES = 4,
	VLANS_MAX = 4,
	COOKED_BYTES = 16,
	COOKED_2_BYTES = 20,
	IP4_BYTES = 20,
	IP6_BYTES = 40,
	UDP_BYTES = 8,
	PROTOCOL_UDP = 17,
	ECN_MASK = 3,
	ECN_MARKED = 3,
	ERF_BYTES = 16,
	ERF_TYPE_MASK = 0x7f,
	ERF_EXTENDED = 0x80, /* also in the type of an extension header: another follows */
	ERF_EXTENSION_BYTES = 8,
	ERF_EXTENSIONS_MAX = 16,
	ERF_ETHERNET = 2,
	ERF_ETHERNET_PAD = 2,
	ERF_ETHERNET_COLOUR = 11, /* the loss counter is another number there */
	ERF_INFINIBAND = 21,
};

/* The rest of a packet, from one header on. */
struct rest {
	const uint8_t *at;
	uint32_t captured;
};

static bool drop(struct rest *r, uint32_t bytes)
{
	if (r->captured < bytes)
		return false;
	r->at += bytes;
	r->captured -= bytes;
	return true;
}

/* `bytes`: from the BTH to the ICRC, as the header before says. */
static enum capture_rdma bth(struct rest r, uint32_t bytes, struct capture_rdma_packet *p)
{
	if (r.captured < IB_BTH_BYTES)
		return CAPTURE_CUT;
	p->bth = r.at;
	p->captured = r.captured < bytes ? r.captured : bytes;
	p->bytes = bytes;
	return p->captured < IB_BTH_BYTES ? CAPTURE_NO_RDMA : CAPTURE_RDMA;
}

static enum capture_rdma udp(struct rest r, struct capture_rdma_packet *p)
{
	uint16_t bytes;

	if (r.captured < UDP_BYTES)
		return CAPTURE_CUT;
	bytes = get_16(r.at + 4);
	if (get_16(r.at + 2) != IB_UDP_PORT || bytes < UDP_BYTES)
		return CAPTURE_NO_RDMA;
	drop(&r, UDP_BYTES);
	return bth(r, bytes - (uint32_t)UDP_BYTES, p);
}

static enum capture_rdma ip4(struct rest r, struct capture_rdma_packet *p)
{
	uint32_t bytes;

	if (r.captured < IP4_BYTES)
		return CAPTURE_CUT;
	bytes = (r.at[0] & 15u) * 4;
	/* Only a whole datagram: 0x3fff is the offset of a fragment and "more follow". */
	if (r.at[0] >> 4 != 4 || bytes < IP4_BYTES || r.at[9] != PROTOCOL_UDP ||
	    get_16(r.at + 6) & 0x3fff)
		return CAPTURE_NO_RDMA;
	p->family = CAPTURE_IP4;
	p->marked = (r.at[1] & ECN_MASK) == ECN_MARKED;
	memcpy(p->src, r.at + 12, 4);
	memcpy(p->dst, r.at + 16, 4);
	return drop(&r, bytes) ? udp(r, p) : CAPTURE_CUT;
}

static void addresses16(const uint8_t *header, struct capture_rdma_packet *p)
{
	p->family = CAPTURE_IP6;
	p->marked = (header[1] >> 4 & ECN_MASK) == ECN_MARKED;
	memcpy(p->src, header + 8, 16);
	memcpy(p->dst, header + 24, 16);
}

static enum capture_rdma ip6(struct rest r, struct capture_rdma_packet *p)
{
	if (r.captured < IP6_BYTES)
		return CAPTURE_CUT;
	if (r.at[0] >> 4 != 6 || r.at[6] != PROTOCOL_UDP)
		return CAPTURE_NO_RDMA;
	addresses16(r.at, p);
	drop(&r, IP6_BYTES);
	return udp(r, p);
}

static enum capture_rdma raw_ip(struct rest r, struct capture_rdma_packet *p)
{
	if (!r.captured)
		return CAPTURE_CUT;
	return r.at[0] >> 4 == 4 ? ip4(r, p) : ip6(r, p);
}

/* The GRH of RoCE v1 and of InfiniBand, whose GIDs are the addresses if there is no LRH. */
static enum capture_rdma grh(struct rest r, bool addresses, struct capture_rdma_packet *p)
{
	uint32_t bytes;

	if (r.captured < IB_GRH_BYTES)
		return CAPTURE_CUT;
	if (r.at[0] >> 4 != 6 || r.at[6] != IB_GRH_NEXT_BTH)
		return CAPTURE_NO_RDMA;
	if (addresses)
		addresses16(r.at, p);
	bytes = get_16(r.at + 4);
	drop(&r, IB_GRH_BYTES);
	return bth(r, bytes, p);
}

static enum capture_rdma network(uint16_t type, struct rest r, struct capture_rdma_packet *p)
{
	for (int i = 0; i < VLANS_MAX && (type == TYPE_VLAN || type == TYPE_VLAN_OUTER); i++) {
		if (r.captured < VLAN_BYTES)
			return CAPTURE_CUT;
		type = get_16(r.at + 2);
		drop(&r, VLAN_BYTES);
	}
	switch (type) {
	case TYPE_IP4: return ip4(r, p);
	case TYPE_IP6: return ip6(r, p);
	case TYPE_ROCE_V1: return grh(r, true, p);
	default: return CAPTURE_NO_RDMA;
	}
}

/* A header of `bytes` bytes with the type of the next one at `type_at`. */
static enum capture_rdma typed(struct rest r, uint32_t bytes, uint32_t type_at,
			       struct capture_rdma_packet *p)
{
	uint16_t type;

	if (r.captured < bytes)
		return CAPTURE_CUT;
	type = get_16(r.at + type_at);
	drop(&r, bytes);
	return network(type, r, p);
}

static enum capture_rdma infiniband(struct rest r, struct capture_rdma_packet *p)
{
	struct ib_lrh lrh;
	uint32_t bytes;

	if (r.captured < IB_LRH_BYTES)
		return CAPTURE_CUT;
	ib_lrh_decode(r.at, &lrh);
	bytes = lrh.words * 4u; /* from the LRH to the ICRC */
	p->family = CAPTURE_LID;
	memcpy(p->dst, r.at + 2, 2);
	memcpy(p->src, r.at + 6, 2);
	drop(&r, IB_LRH_BYTES);
	if (lrh.lnh == IB_LNH_GLOBAL)
		return grh(r, false, p);
	if (lrh.lnh != IB_LNH_LOCAL || bytes < IB_LRH_BYTES)
		return CAPTURE_NO_RDMA;
	return bth(r, bytes - IB_LRH_BYTES, p);
}

static enum capture_rdma erf_record(struct rest r, struct capture_rdma_packet *p)
{
	uint8_t type;
	bool more;

	if (r.captured < ERF_BYTES)
		return CAPTURE_CUT;
	type = r.at[8] & ERF_TYPE_MASK;
	more = r.at[8] & ERF_EXTENDED;
	if (type != ERF_ETHERNET_COLOUR)
		p->lost = get_16(r.at + 12);
	drop(&r, ERF_BYTES);
	for (int i = 0; more; i++) {
		if (r.captured < ERF_EXTENSION_BYTES || i == ERF_EXTENSIONS_MAX)
			return CAPTURE_CUT;
		more = r.at[0] & ERF_EXTENDED;
		drop(&r, ERF_EXTENSION_BYTES);
	}
	if (type == ERF_INFINIBAND)
		return infiniband(r, p);
	if (type != ERF_ETHERNET && type != ERF_ETHERNET_COLOUR)
		return CAPTURE_NO_RDMA;
	if (!drop(&r, ERF_ETHERNET_PAD))
		return CAPTURE_CUT;
	return typed(r, ETHERNET_BYTES, 12, p);
}

enum capture_rdma capture_find_rdma(uint16_t link, const uint8_t *data, uint32_t captured,
				    struct capture_rdma_packet *p)
{
	const struct rest all = { data, captured };

	memset(p, 0, sizeof(*p));
	switch (link) {
	case CAPTURE_ETHERNET: return typed(all, ETHERNET_BYTES, 12, p);
	case CAPTURE_COOKED: return typed(all, COOKED_BYTES, 14, p);
	case CAPTURE_COOKED_2: return typed(all, COOKED_2_BYTES, 0, p);
	case CAPTURE_RAW_IP: return raw_ip(all, p);
	case CAPTURE_IPV4: return ip4(all, p);
	case CAPTURE_IPV6: return ip6(all, p);
	case CAPTURE_ERF: return erf_record(all, p);
	case CAPTURE_INFINIBAND: return infiniband(all, p);
	default: return CAPTURE_LINK_UNKNOWN;
	}
}
