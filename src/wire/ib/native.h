/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of an InfiniBand link: local route header (LRH), optional GRH, BTH with extended
 * headers or raw data, invariant and variant CRC; and link packets of flow control. IBA
 * volume 1, 7.7 (LRH), 7.8 (CRCs), 7.9.4 (flow control packets), 8.3 (GRH), 9.2 (BTH).
 *
 * Pure functions: no socket, no state, any thread. RoCE v2 has none of this: header.h and
 * icrc.h have what both share. Symbols, link training and credits are not here.
 */
#ifndef WIRE_IB_NATIVE_H
#define WIRE_IB_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/ib/header.h"

enum {
	IB_LRH_BYTES = 8,
	IB_VCRC_BYTES = 2,
	IB_FLOW_BYTES = 6,
	IB_LID_MULTICAST = 0xc000, /* the first one */
	IB_LID_PERMISSIVE = 0xffff,
	IB_VL_MANAGEMENT = 15,
	IB_MTU_MAX = 4096,
	/* LRH, GRH, BTH with extended headers, payload with pad, ICRC, VCRC */
	IB_NATIVE_BYTES_MAX = IB_LRH_BYTES + IB_GRH_BYTES + IB_HEADERS_MAX + IB_MTU_MAX +
			      IB_ICRC_BYTES + IB_VCRC_BYTES,
};

/* What follows the LRH. */
enum ib_lnh {
	IB_LNH_RAW = 0,    /* raw header and Ethertype */
	IB_LNH_IP = 1,     /* raw IPv6 packet: a GRH without BTH */
	IB_LNH_LOCAL = 2,  /* BTH */
	IB_LNH_GLOBAL = 3, /* GRH, then BTH */
};

struct ib_lrh {
	uint8_t vl;      /* 4 bits */
	uint8_t version; /* 4 bits: 0 */
	uint8_t sl;      /* 4 bits */
	uint8_t lnh;     /* 2 bits, enum ib_lnh */
	uint16_t dlid, slid;
	uint16_t words;  /* 11 bits: words of 4 bytes from the LRH to the ICRC, without VCRC */
};

/* Fields are cut to their width. */
void ib_lrh_encode(const struct ib_lrh *lrh, uint8_t to[IB_LRH_BYTES]);
void ib_lrh_decode(const uint8_t from[IB_LRH_BYTES], struct ib_lrh *lrh);

/* ---- CRCs ---- */

/* CRC-16 with the polynomial 0x100b over bytes in the order of the wire; as the two bytes
 * that are sent, the first one in bits 0 to 7. Of a data packet (VCRC): from the LRH to the
 * last byte before the VCRC. Of a flow control packet (LPCRC): its first 4 bytes. */
uint16_t ib_vcrc(const void *data, size_t bytes);

/* The ICRC of a packet with a BTH, `bytes` from the LRH to the last byte before the ICRC.
 * Fields that change on the way count as ones: LRH.VL, or all of the LRH if there is a GRH;
 * traffic class, flow label and hop limit of the GRH; FECN, BECN and the reserved bits beside
 * them. False: the packet is too short for the headers that its LRH names, or has no BTH. */
bool ib_native_icrc(const uint8_t *packet, size_t bytes, uint8_t icrc[IB_ICRC_BYTES]);

/* ---- flow control packets ---- */

enum ib_flow_op {
	IB_FLOW_NORMAL = 0,
	IB_FLOW_INIT = 1,
};

struct ib_flow {
	uint8_t op;     /* 4 bits, enum ib_flow_op */
	uint8_t vl;     /* 4 bits */
	uint16_t fctbs; /* 12 bits: blocks of 64 bytes that the sender has sent in all */
	uint16_t fccl;  /* 12 bits: up to which block the other side may send */
};

void ib_flow_encode(const struct ib_flow *flow, uint8_t to[IB_FLOW_BYTES]);
/* False: the LPCRC is wrong, the operation is reserved, or VL 15, which has no credits. */
bool ib_flow_decode(const uint8_t from[IB_FLOW_BYTES], struct ib_flow *flow);

/* ---- whole packets ---- */

/* Why bytes are no packet, in the order of the checks. */
enum ib_native_fault {
	IB_NATIVE_GOOD = 0,
	IB_NATIVE_SHORT,       /* less than LRH and VCRC */
	IB_NATIVE_VCRC,
	IB_NATIVE_VERSION,     /* LRH.version is not 0 */
	IB_NATIVE_LENGTH,      /* LRH.words is not the length, below 5 or above the maximum */
	IB_NATIVE_DLID,        /* 0, or the permissive LID on another lane than 15 */
	IB_NATIVE_SLID,        /* of multicast */
	IB_NATIVE_GRH,         /* too short for it, version not 6, next header or length wrong */
	IB_NATIVE_BTH,         /* see ib_decode() */
	IB_NATIVE_ICRC,
	IB_NATIVE_MULTICAST,   /* VL 15, or the GID and the LID are not both of multicast */
	IB_NATIVE_FAULTS,
};
/* "VCRC is wrong"; "no such fault" for other values. */
const char *ib_native_fault_name(enum ib_native_fault fault);

struct ib_native {
	struct ib_lrh lrh;
	bool has_grh, has_bth;
	struct ib_grh grh;        /* with has_grh */
	struct ib_packet packet;  /* with has_bth */
	uint16_t bth_at;          /* with has_bth: where the BTH begins */
	uint16_t payload_at;      /* without has_bth: what is behind LRH and GRH */
	uint16_t payload_bytes;   /* without pad */
};

enum ib_native_checks { /* bits */
	IB_CHECK_VCRC = 1 << 0,
	IB_CHECK_ICRC = 1 << 1,
	IB_CHECK_ALL = IB_CHECK_VCRC | IB_CHECK_ICRC,
};

/* Parses `bytes` bytes from the LRH to the VCRC. The packet has to be whole. CRCs are checked
 * as `checks` says: a link that cannot damage packets need not. *native is written on
 * IB_NATIVE_GOOD only. P_Key, PSN, MTU of the port and what VLs exist are the caller's. */
enum ib_native_fault ib_native_decode(const uint8_t *packet, size_t bytes, unsigned checks,
				      struct ib_native *native);

/* Writes headers at `to`, which has IB_NATIVE_BYTES_MAX bytes; returns their length, 0: the
 * opcode is not known or the packet would be longer than the maximum. Length and next header
 * of LRH and GRH are set here from native->packet.bytes; has_bth must be set. The caller puts
 * payload behind and calls ib_native_finish(). */
size_t ib_native_encode(const struct ib_native *native, uint8_t *to);
/* Writes pad bytes, ICRC and VCRC behind the payload; returns the length of the packet.
 * `headers` is what ib_native_encode() has returned. */
size_t ib_native_finish(const struct ib_native *native, size_t headers, uint8_t *packet);

/* After a switch has changed VL, FECN or BECN: writes the VCRC anew. */
void ib_native_set_vcrc(uint8_t *packet, size_t bytes);

#endif
