/* SPDX-License-Identifier: BSD-2-Clause */
/* See packets.h. */
#include "transport/fabric/packets.h"

#include <errno.h>
#include <string.h>

#include "hca/host/subnet.h"
#include "hca/share/process.h"
#include "transport/fabric/link.h"
#include "transport/packet/frame/ib.h"

/* Unacknowledged request packets of a queue pair. */
#define WINDOW 64

/* ---- partitions ---- */

static uint16_t pkey_of(uint32_t qpn)
{
	const struct hca_qp *qp = hca_qp_find(qpn);

	return hca_subnet_pkey(qp ? qp->attr.pkey_index : 0);
}

static size_t encode(const struct packet_frame *f, uint8_t to[PACKET_HEADER_BYTES])
{
	const size_t bytes = packet_ib_encode(f, to);

	packet_ib_set_pkey(to, pkey_of(f->src_qpn));
	return bytes;
}

/* Is there a P_Key of the port for it? Members of a group may have different ones. */
static bool is_of_any_partition(uint16_t pkey)
{
	for (unsigned i = 0; i < PLUG_PKEYS; i++)
		if (hca_pkeys_match(pkey, hca_subnet_pkey(i)))
			return true;
	return false;
}

static bool partition_fits(uint16_t pkey, uint32_t qpn)
{
	/* With the P_Key of one's own full membership it is all the same which index it has. */
	return qpn == HCA_QPN_MULTICAST ? is_of_any_partition(pkey) :
					  hca_pkeys_match(pkey, pkey_of(qpn));
}

/* ---- ICRC ---- */

static size_t seal(const struct packet_route *route, struct icrc_series *series, unsigned k,
		   bool fragments, const uint8_t *header, size_t header_bytes,
		   const struct iovec *iov, unsigned n, uint8_t to[PACKET_TRAILER_BYTES])
{
	size_t bytes = header_bytes, pad;
	struct fabric_link link;
	struct icrc c;

	for (unsigned i = 0; i < n; i++)
		bytes += iov[i].iov_len;
	pad = -bytes & 3; /* headers are multiples of four bytes */
	memset(to, 0, pad);
	fabric_link_of(&route->to, &route->from, false, &link);
	fabric_icrc_begin(&c, &link, header, bytes + pad + IB_ICRC_BYTES);
	icrc_add(&c, header + IB_BTH_BYTES, header_bytes - IB_BTH_BYTES);
	for (unsigned i = 0; i < n; i++)
		icrc_add(&c, iov[i].iov_base, iov[i].iov_len);
	icrc_add(&c, to, pad);
	icrc_end(&c, to + pad);
	return pad + IB_ICRC_BYTES;
}

static bool is_sealed(const struct fabric_link *link, const uint8_t *from, size_t bytes)
{
	const uint8_t *end = from + bytes - IB_ICRC_BYTES;
	struct icrc c;

	fabric_icrc_begin(&c, link, from, bytes);
	icrc_add(&c, from + IB_BTH_BYTES, (size_t)(end - from) - IB_BTH_BYTES);
	return icrc_matches(&c, end);
}

/* ---- from bytes ---- */

/* What the receiver of a datagram learns. */
static void fill_datagram(const struct fabric_link *link, size_t bytes, struct packet_frame *f)
{
	const struct hca_qp *qp = hca_qp_find(f->dst_qpn);
	struct ib_grh grh = link->grh;

	f->global = link->global;
	f->sl = link->sl;
	f->slid = link->slid;
	f->pkey_index = qp ? qp->attr.pkey_index : 0;
	if (link->dlid < HCA_LID_GROUPS)
		f->path_bits = (uint8_t)(link->dlid & ((1u << hca_subnet_lmc()) - 1));
	if (!link->global)
		return;
	grh.next_header = IB_GRH_NEXT_BTH;
	grh.payload_length = (uint16_t)bytes;
	ib_grh_encode(&grh, f->grh);
}

/* A packet to a group has the QP number of groups, and no other packet has it. */
static bool is_for_us(const struct fabric_link *link, uint32_t qpn)
{
	return link->dlid >= HCA_LID_GROUPS ? qpn == HCA_QPN_MULTICAST :
	       qpn != HCA_QPN_MULTICAST && hca_subnet_is_own_lid(link->dlid);
}

static size_t decode(const struct carrier_unit *unit, struct icrc_series *series, unsigned k,
		     const uint8_t *from, size_t bytes, struct packet_frame *f,
		     enum packet_fault *fault)
{
	struct fabric_link link;
	size_t header;

	if (bytes < IB_BTH_BYTES + IB_ICRC_BYTES || bytes > PLUG_PACKET_BYTES)
		return 0;
	fabric_link_of(&unit->to, &unit->from, true, &link);
	if (unlikely(!is_sealed(&link, from, bytes))) {
		*fault = PACKET_BAD_ICRC;
		return 0;
	}
	header = packet_ib_decode_any(from, bytes, f);
	if (!header || !is_for_us(&link, f->dst_qpn) ||
	    !partition_fits(packet_ib_pkey(from), f->dst_qpn))
		return 0;
	if (f->service == PACKET_UD)
		fill_datagram(&link, bytes, f);
	return header;
}

/* The packet is that before it with another PSN, so decode() would say the same of it. */
static bool follows(const struct carrier_unit *unit, struct icrc_series *series, unsigned k,
		    const uint8_t *before, size_t header_bytes, const uint8_t *from, size_t bytes)
{
	uint8_t expected[PACKET_HEADER_BYTES];
	struct fabric_link link;

	memcpy(expected, before, header_bytes);
	packet_ib_renumber(expected, packet_ib_psn(before) + 1);
	fabric_link_of(&unit->to, &unit->from, true, &link);
	return !memcmp(expected, from, header_bytes) && is_sealed(&link, from, bytes);
}

/* ---- addresses ---- */

static int address(const struct ibv_ah_attr *to, const union ibv_gid *from,
		   struct packet_route *route)
{
	struct fabric_end there = { .lid = to->dlid, .sl = to->sl & 15, .global = !!to->is_global };
	struct fabric_end here = { .lid = hca_subnet_lid() };

	if (!here.lid || hca_subnet_check_address(to))
		return -EHOSTUNREACH;
	here.lid |= to->src_path_bits;
	if (to->is_global) {
		there.hop_limit = to->grh.hop_limit;
		there.traffic_class = to->grh.traffic_class;
		there.flow_label = to->grh.flow_label & 0xfffff;
		memcpy(there.gid, to->grh.dgid.raw, sizeof(there.gid));
		memcpy(here.gid, from->raw, sizeof(here.gid));
	}
	*route = (struct packet_route){ .to = fabric_addr_of(&there), .from = fabric_addr_of(&here) };
	return 0;
}

/* The LIDs of the peer are known without the bits that choose a path, which answers need not have. */
static bool is_from(const struct packet_route *route, const struct carrier_unit *unit)
{
	const struct fabric_end peer = fabric_end_of(&route->to);
	const struct fabric_end sender = fabric_end_of(&unit->from);

	return peer.lid >> hca_subnet_lmc() == sender.lid >> hca_subnet_lmc() &&
	       (!peer.global || !sender.global || !memcmp(peer.gid, sender.gid, sizeof(peer.gid)));
}

const struct packet_medium fabric_medium = {
	.mtu = PACKET_MTU,
	.window = WINDOW,
	.ack_delay_ns = 60000,
	.encode = encode,
	.renumber = packet_ib_renumber,
	.seal = seal,
	.decode = decode,
	.peek = packet_ib_decode_any,
	.follows = follows,
	.address = address,
	.is_from = is_from,
};
