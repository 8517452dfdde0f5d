/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers in front of the BTH, and the ICRC over them; see link.h. */
#include "transport/fabric/link.h"

#define ICRC_ONES 0xff
#define BTH_CONGESTION 4 /* the byte with FECN and BECN, which change on the way */
#define GRH_VERSION 0x60
#define GRH_HOP_LIMIT 7  /* the byte */

void fabric_link_of(const struct carrier_addr *to, const struct carrier_addr *from, bool arrived,
		    struct fabric_link *link)
{
	const struct fabric_end there = fabric_end_of(arrived ? from : to);
	const struct fabric_end here = fabric_end_of(arrived ? to : from);

	*link = (struct fabric_link){
		.sl = there.sl,
		.global = there.global,
		.dlid = arrived ? here.lid : there.lid,
		.slid = arrived ? there.lid : here.lid,
		.grh = { .traffic_class = there.traffic_class, .hop_limit = there.hop_limit,
			 .flow_label = there.flow_label },
	};
	memcpy(arrived ? link->grh.dgid : link->grh.sgid, here.gid, sizeof(here.gid));
	memcpy(arrived ? link->grh.sgid : link->grh.dgid, there.gid, sizeof(there.gid));
}

void fabric_link_ends(const struct fabric_link *link, struct carrier_addr *to,
		      struct carrier_addr *from)
{
	struct fabric_end there = { .lid = link->slid, .sl = link->sl, .global = link->global };
	struct fabric_end here = { .lid = link->dlid };

	if (link->global) {
		there.hop_limit = link->grh.hop_limit;
		there.traffic_class = link->grh.traffic_class;
		there.flow_label = link->grh.flow_label;
		memcpy(there.gid, link->grh.sgid, sizeof(there.gid));
		memcpy(here.gid, link->grh.dgid, sizeof(here.gid));
	}
	*to = fabric_addr_of(&here);
	*from = fabric_addr_of(&there);
}

static size_t encode(const struct fabric_link *link, uint8_t vl, size_t bytes,
		     uint8_t to[FABRIC_LINK_BYTES])
{
	const size_t headers = IB_LRH_BYTES + (link->global ? IB_GRH_BYTES : 0);
	const struct ib_lrh lrh = {
		.vl = vl,
		.sl = link->sl,
		.lnh = link->global ? IB_LNH_GLOBAL : IB_LNH_LOCAL,
		.dlid = link->dlid,
		.slid = link->slid,
		.words = (uint16_t)((headers + bytes) / 4),
	};
	struct ib_grh grh;

	ib_lrh_encode(&lrh, to);
	if (link->global) {
		grh = link->grh;
		grh.next_header = IB_GRH_NEXT_BTH;
		grh.payload_length = (uint16_t)bytes;
		ib_grh_encode(&grh, to + IB_LRH_BYTES);
	}
	return headers;
}

size_t fabric_link_encode(const struct fabric_link *link, size_t bytes,
			  uint8_t to[FABRIC_LINK_BYTES])
{
	return encode(link, 0, bytes, to);
}

static bool lrh_is_valid(const struct ib_lrh *lrh, const uint8_t *packet, size_t bytes)
{
	uint8_t again[IB_LRH_BYTES];

	/* A reserved bit that is set would be missing in the ICRC. */
	ib_lrh_encode(lrh, again);
	return !memcmp(again, packet, sizeof(again)) && !lrh->version && lrh->words * 4u == bytes &&
	       lrh->slid && lrh->slid < IB_LID_MULTICAST && lrh->dlid &&
	       lrh->dlid != IB_LID_PERMISSIVE &&
	       (lrh->lnh == IB_LNH_LOCAL || lrh->lnh == IB_LNH_GLOBAL);
}

size_t fabric_link_decode(const uint8_t *packet, size_t bytes, struct fabric_link *link)
{
	size_t headers = IB_LRH_BYTES;
	struct ib_lrh lrh;

	if (bytes < IB_LRH_BYTES + IB_BTH_BYTES + IB_ICRC_BYTES)
		return 0;
	ib_lrh_decode(packet, &lrh);
	if (!lrh_is_valid(&lrh, packet, bytes))
		return 0;
	*link = (struct fabric_link){ .sl = lrh.sl, .global = lrh.lnh == IB_LNH_GLOBAL,
				      .dlid = lrh.dlid, .slid = lrh.slid };
	if (!link->global)
		return headers;
	headers += IB_GRH_BYTES;
	if (bytes < headers + IB_BTH_BYTES + IB_ICRC_BYTES ||
	    !ib_grh_decode(packet + IB_LRH_BYTES, &link->grh) ||
	    link->grh.next_header != IB_GRH_NEXT_BTH ||
	    link->grh.payload_length != bytes - headers)
		return 0;
	return headers;
}

/* Fields that change on the way count as ones: the lane in the LRH; with a GRH, by which routers send
 * the packet on, all of the LRH, and traffic class, flow label and hop limit of the GRH; FECN and
 * BECN. */
void fabric_icrc_begin(struct icrc *c, const struct fabric_link *link,
		       const uint8_t bth[IB_BTH_BYTES], size_t bytes)
{
	uint8_t covered[FABRIC_LINK_BYTES + IB_BTH_BYTES];
	uint8_t *grh = covered + IB_LRH_BYTES;
	const size_t headers = encode(link, IB_VL_MANAGEMENT, bytes, covered);

	if (link->global) {
		memset(covered, ICRC_ONES, IB_LRH_BYTES);
		grh[0] = GRH_VERSION | 0x0f;
		memset(grh + 1, ICRC_ONES, 3);
		grh[GRH_HOP_LIMIT] = ICRC_ONES;
	}
	memcpy(covered + headers, bth, IB_BTH_BYTES);
	covered[headers + BTH_CONGESTION] = ICRC_ONES;
	c->crc = UINT32_MAX;
	icrc_add(c, covered, headers + IB_BTH_BYTES);
}
