/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers that an InfiniBand packet has in front of its BTH, LRH (IBTA volume 1, 7.7) and GRH
 * (8.3), and the ICRC that covers them (7.8.1). Pure functions of any thread.
 *
 * Packets of this transport are, as in all of transport/packet, the bytes from the BTH to the ICRC;
 * the addresses of their unit say what the headers hold, and the carrier (plugged.h) writes and reads
 * these. So faults and captures work on the same bytes as those of RoCE v2.
 */
#ifndef TRANSPORT_FABRIC_LINK_H
#define TRANSPORT_FABRIC_LINK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "transport/carrier/carrier.h"
#include "wire/ib/icrc.h"
#include "wire/ib/native.h"

#define FABRIC_LINK_BYTES (IB_LRH_BYTES + IB_GRH_BYTES)

/* An end of a packet, in a carrier_addr. `sl` and the members from `global` to `flow_label` belong to
 * the packet: they stand in the address of the other end, that is, `to` of a unit that is emitted,
 * and `from` of one that is delivered; they are 0 in the own address. */
struct fabric_end {
	uint16_t lid;
	uint8_t sl;
	uint8_t global;          /* 1: there is a GRH, and `gid` counts in both ends; else 0 */
	uint8_t hop_limit, traffic_class;
	uint16_t zero;
	uint32_t flow_label;
	uint8_t gid[16];
};
_Static_assert(sizeof(struct fabric_end) <= CARRIER_ADDR_BYTES, "it lies there");

static inline struct fabric_end fabric_end_of(const struct carrier_addr *a)
{
	struct fabric_end end;

	memcpy(&end, a->bytes, sizeof(end));
	return end;
}

static inline struct carrier_addr fabric_addr_of(const struct fabric_end *end)
{
	struct carrier_addr a = { { 0 } };

	memcpy(a.bytes, end, sizeof(*end));
	return a;
}

/* A packet between the two, with what is the packet's. */
struct fabric_link {
	uint8_t sl;
	bool global;
	uint16_t dlid, slid;
	struct ib_grh grh;       /* with `global`; payload_length and next_header are not looked at */
};

/* Of a unit that leaves or, with `arrived`, has come. */
void fabric_link_of(const struct carrier_addr *to, const struct carrier_addr *from, bool arrived,
		    struct fabric_link *link);

/* Writes the headers of a packet whose bytes from the BTH to the ICRC are `bytes`, on lane 0; their
 * length. */
size_t fabric_link_encode(const struct fabric_link *link, size_t bytes,
			  uint8_t to[FABRIC_LINK_BYTES]);
/* Reads them from a packet of `bytes` in all; their length. 0: it is no such packet: no BTH, another
 * length or version, a reserved bit is set, an address that cannot be one. */
size_t fabric_link_decode(const uint8_t *packet, size_t bytes, struct fabric_link *link);
/* The addresses of the unit that is delivered. */
void fabric_link_ends(const struct fabric_link *link, struct carrier_addr *to,
		      struct carrier_addr *from);

/* The ICRC of the packet, behind headers and BTH: what follows the BTH is to be added. `bytes` as
 * above. */
void fabric_icrc_begin(struct icrc *c, const struct fabric_link *link,
		       const uint8_t bth[IB_BTH_BYTES], size_t bytes);

#endif
