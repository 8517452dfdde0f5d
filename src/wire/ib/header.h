/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The headers of InfiniBand packets from the BTH to the payload, as RoCE v2 has them
 * behind UDP port 4791: IBTA volume 1, chapter 9.2 and 9.3; annex A14 (XRC), A17
 * (RoCE v2, CNP), A19 (FLUSH, ATOMIC WRITE). The GRH (8.3) is converted as well: RoCE v2
 * does not send it, but receivers of datagrams find it.
 *
 * Pure functions: no socket, no state, any thread. Integers are in host order, GIDs are
 * bytes. Nothing here looks at the ICRC; see icrc.h.
 */
#ifndef WIRE_IB_HEADER_H
#define WIRE_IB_HEADER_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define IB_UDP_PORT 4791
#define IB_PKEY_DEFAULT 0xffff
#define IB_QPN_MASK 0xffffffu /* of PSN, MSN and SRQ numbers, too */

enum {
	IB_BTH_BYTES = 12,
	IB_XRCETH_BYTES = 4,
	IB_DETH_BYTES = 8,
	IB_FETH_BYTES = 4,
	IB_RETH_BYTES = 16,
	IB_ATOMICETH_BYTES = 28,
	IB_AETH_BYTES = 4,
	IB_ATOMICACKETH_BYTES = 8,
	IB_IMMDT_BYTES = 4,
	IB_IETH_BYTES = 4,
	IB_GRH_BYTES = 40,
	IB_ICRC_BYTES = 4,
	IB_CNP_RESERVED_BYTES = 16, /* behind the BTH of a CNP; no payload */
	IB_HEADERS_MAX = IB_BTH_BYTES + IB_XRCETH_BYTES + IB_ATOMICETH_BYTES,
};

/* The upper three bits of an opcode. */
enum ib_service {
	IB_SERVICE_RC = 0x00,
	IB_SERVICE_UC = 0x20,
	IB_SERVICE_UD = 0x60,
	IB_SERVICE_CNP = 0x80,
	IB_SERVICE_XRC = 0xa0,
};
#define IB_SERVICE_MASK 0xe0

/* The lower five bits. Which of them a service has: ib_opcodes. */
enum ib_operation {
	IB_SEND_FIRST = 0x00,
	IB_SEND_MIDDLE = 0x01,
	IB_SEND_LAST = 0x02,
	IB_SEND_LAST_IMM = 0x03,
	IB_SEND_ONLY = 0x04,
	IB_SEND_ONLY_IMM = 0x05,
	IB_WRITE_FIRST = 0x06,
	IB_WRITE_MIDDLE = 0x07,
	IB_WRITE_LAST = 0x08,
	IB_WRITE_LAST_IMM = 0x09,
	IB_WRITE_ONLY = 0x0a,
	IB_WRITE_ONLY_IMM = 0x0b,
	IB_READ_REQUEST = 0x0c,
	IB_READ_RESPONSE_FIRST = 0x0d,
	IB_READ_RESPONSE_MIDDLE = 0x0e,
	IB_READ_RESPONSE_LAST = 0x0f,
	IB_READ_RESPONSE_ONLY = 0x10,
	IB_ACKNOWLEDGE = 0x11,
	IB_ATOMIC_ACKNOWLEDGE = 0x12,
	IB_COMPARE_SWAP = 0x13,
	IB_FETCH_ADD = 0x14,
	IB_SEND_LAST_INVALIDATE = 0x16,
	IB_SEND_ONLY_INVALIDATE = 0x17,
	IB_FLUSH = 0x1c,
	IB_ATOMIC_WRITE = 0x1d,
};
#define IB_OPERATION_MASK 0x1f
#define IB_OPCODE_CNP 0x81

/* The extended headers, in the order in which they follow the BTH. */
enum ib_headers {
	IB_HAS_XRCETH = 1 << 0,
	IB_HAS_DETH = 1 << 1,
	IB_HAS_FETH = 1 << 2,
	IB_HAS_RETH = 1 << 3,
	IB_HAS_ATOMICETH = 1 << 4,
	IB_HAS_AETH = 1 << 5,
	IB_HAS_ATOMICACKETH = 1 << 6,
	IB_HAS_IMMDT = 1 << 7,
	IB_HAS_IETH = 1 << 8,
	IB_HAS_RESERVED = 1 << 9, /* the reserved bytes of a CNP */
};

struct ib_opcode {
	bool known;       /* false: reserved, or of a service that is not supported (RD) */
	bool payload;     /* it may have some */
	uint8_t service;  /* enum ib_service */
	uint8_t bytes;    /* of BTH and extended headers */
	uint16_t headers; /* enum ib_headers */
};
/* One entry for each opcode. */
extern const struct ib_opcode ib_opcodes[256];
/* The operation in words for people: "READ request", whatever the service. */
const char *ib_opcode_name(uint8_t opcode);

enum ib_flush_placement { /* bits */
	IB_FLUSH_GLOBAL_VISIBILITY = 1 << 0,
	IB_FLUSH_PERSISTENCE = 1 << 1,
};
enum ib_flush_selectivity {
	IB_FLUSH_RANGE = 0,
	IB_FLUSH_REGION = 1,
};

/* A packet without its payload. Of the extended headers only those count that the opcode
 * has. */
struct ib_packet {
	/* BTH */
	uint8_t opcode;
	bool solicited;     /* SE */
	bool migrated;      /* MigReq: 1 in the migrated state, that is, without alternate
			     * path; adapters expect it set */
	bool fecn, becn;
	bool ack_req;
	uint16_t pkey;
	uint32_t dest_qpn;  /* 24 bits */
	uint32_t psn;       /* 24 bits */
	uint32_t bytes;     /* of payload, without the pad bytes */

	uint16_t headers;   /* enum ib_headers; decode sets it, encode does not look */
	struct { uint32_t srqn; } xrceth;
	struct { uint32_t qkey, src_qpn; } deth;
	struct { uint8_t placement, selectivity; } feth;
	struct { uint64_t va; uint32_t rkey, length; } reth;
	struct { uint64_t va, swap_add, compare; uint32_t rkey; } atomiceth;
	struct { uint8_t syndrome; uint32_t msn; } aeth;
	struct { uint64_t original; } atomicacketh;
	uint32_t immdt;
	struct { uint32_t rkey; } ieth;
};

/* The number of pad bytes behind a payload: the next multiple of 4. Senders make them
 * zero (9.2), the ICRC covers them. */
static inline unsigned ib_pad(uint32_t payload_bytes)
{
	return -payload_bytes & 3;
}

/* Writes BTH and extended headers at `to`, which has room for IB_HEADERS_MAX bytes.
 * Returns their length; 0: the opcode is not known. The pad count is ib_pad(bytes), TVer
 * and reserved bits are 0. Fields are cut to their width. The caller puts payload, pad
 * and ICRC behind. */
size_t ib_encode(const struct ib_packet *packet, uint8_t *to);

/* `bytes` are those of a packet from the BTH to the ICRC, that is, the payload of a UDP
 * datagram. Returns the length of BTH and extended headers; 0: this is no packet. Then
 * *packet has no meaning. The payload begins behind the headers, has packet->bytes, and is
 * followed by pad and ICRC.
 *
 * No packet: a reserved opcode, TVer other than 0 (9.6.1), too short for headers and
 * ICRC or longer than a datagram, a length that is no multiple of 4, a pad count above the length, a payload or pad
 * where the opcode has none. Ignored, as the specification says: reserved bits and bytes,
 * the value of pad bytes. P_Key, numbers and lengths of messages are the caller's. */
size_t ib_decode(const uint8_t *from, size_t bytes, struct ib_packet *packet);

/* As ib_decode(), for a packet of `bytes` bytes of which a capture has the first `captured`.
 * Extended headers that are cut off are not in packet->headers; the caller may not look at
 * them. Returns 0 only if there is no BTH, or one of a reserved opcode or version. A length
 * that does not fit to the opcode gives a payload of 0 bytes. */
size_t ib_decode_captured(const uint8_t *from, size_t captured, size_t bytes,
			  struct ib_packet *packet);

struct ib_grh {
	uint8_t traffic_class;
	uint8_t next_header;     /* 0x1b: BTH; RoCE v2: 17 */
	uint8_t hop_limit;
	uint16_t payload_length; /* from behind the GRH to the end of the ICRC */
	uint32_t flow_label;     /* 20 bits */
	uint8_t sgid[16], dgid[16];
};
#define IB_GRH_NEXT_BTH 0x1b

void ib_grh_encode(const struct ib_grh *grh, uint8_t to[IB_GRH_BYTES]);
/* False: its version is not 6. */
bool ib_grh_decode(const uint8_t from[IB_GRH_BYTES], struct ib_grh *grh);

/* The checksum of IP and UDP headers (RFC 1071): adds words in network order to the sum `before`, of
 * 65,536 words in all at most. */
static inline uint32_t ib_ip_sum(uint32_t before, const void *data, size_t bytes)
{
	const uint8_t *p = data;

	for (size_t i = 0; i + 1 < bytes; i += 2)
		before += (uint32_t)(p[i] << 8 | p[i + 1]);
	return bytes & 1 ? before + ((uint32_t)p[bytes - 1] << 8) : before;
}

static inline uint16_t ib_ip_checksum(uint32_t sum)
{
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	return htobe16((uint16_t)~sum);
}

#endif
