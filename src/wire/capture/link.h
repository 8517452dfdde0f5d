/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the link type of a captured packet to its BTH: Ethernet with VLAN tags (RoCE v2 over
 * IPv4 and IPv6, RoCE v1), Linux cooked captures, raw IP, ERF records (InfiniBand and
 * Ethernet), and InfiniBand from the LRH on. Pure; packets that were cut are followed as
 * far as they go.
 */
#ifndef WIRE_CAPTURE_LINK_H
#define WIRE_CAPTURE_LINK_H

#include <stdbool.h>
#include <stdint.h>

enum capture_link {
	CAPTURE_ETHERNET = 1,
	CAPTURE_RAW_IP = 101,
	CAPTURE_COOKED = 113,
	CAPTURE_ERF = 197,
	CAPTURE_IPV4 = 228,
	CAPTURE_IPV6 = 229,
	CAPTURE_INFINIBAND = 247,
	CAPTURE_COOKED_2 = 276,
};

enum capture_family {
	CAPTURE_LID = 1, /* the first two bytes of an address */
	CAPTURE_IP4 = 4, /* the first four bytes */
	CAPTURE_IP6 = 6, /* also the GIDs of RoCE v1 */
};

enum capture_rdma {
	CAPTURE_RDMA,     /* the BTH was found */
	CAPTURE_NO_RDMA,  /* another protocol */
	CAPTURE_CUT,      /* the packet ends before its BTH */
	CAPTURE_LINK_UNKNOWN,
};

struct capture_rdma_packet {
	uint8_t family;          /* enum capture_family */
	uint8_t src[16], dst[16]; /* zero behind the address */
	bool marked;             /* congestion experienced, by ECN */
	uint16_t lost;           /* packets lost before, by an ERF record */
	const uint8_t *bth;
	uint32_t captured;       /* bytes from the BTH on */
	uint32_t bytes;          /* from the BTH to the ICRC, when it was sent */
};

enum capture_rdma capture_find_rdma(uint16_t link, const uint8_t *data, uint32_t captured,
				    struct capture_rdma_packet *packet);

#endif
