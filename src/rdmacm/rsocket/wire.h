/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The protocol between two rsockets. It is busbar's own: both ends must be rsockets of
 * busbar, on whatever adapter. All numbers are in network order.
 *
 * Streams (RC). Request and reply carry a struct rs_hello in their private data. A
 * listener that does not know its magic number or version rejects the request, with
 * its own hello in the reject.
 *
 * After that, messages are SENDs. Each fills one receive slot of the peer, whose number
 * and size are in the peer's hello, and begins with a struct rs_header:
 *
 *   RS_DATA    followed by bytes of the stream
 *   RS_MAP     followed by a struct rs_map: a buffer that riomap() offers
 *   RS_UNMAP   followed by a struct rs_map: a buffer that riounmap() withdraws
 *   RS_CREDIT  only a header
 *   RS_END     only a header: no bytes follow (shutdown, close)
 *
 * SENDs are used and not RDMA WRITEs into a ring, because a SEND needs no system call on
 * the software adapter, is ordered without a round trip, and its completion says where
 * the bytes are. riowrite() uses RDMA WRITE.
 *
 * Flow control. RS_DATA, RS_MAP and RS_UNMAP need a credit each. The field `granted` of
 * every header counts (modulo 2^32) the slots that its sender has made available since
 * the beginning, including the `slots` of its hello. If half of the slots have become
 * free and no other message is sent, RS_CREDIT carries the number. At most two
 * RS_CREDIT and one RS_END can be under way and unread; RS_SPARE_SLOTS slots, which are
 * not counted, receive them. So a receiver is never without a posted receive.
 *
 * Order is that of the queue pair: RS_END comes after all bytes, RS_MAP before the bytes
 * written after it, and an RDMA WRITE of riowrite() before the bytes after it.
 *
 * Datagrams (UD). Each begins with a struct rs_datagram with the source and destination
 * address. The peer's queue pair is found by a lookup of the connection manager
 * (SIDR), with a hello as private data in both directions.
 */
#ifndef RDMACM_RSOCKET_WIRE_H
#define RDMACM_RSOCKET_WIRE_H

#include <arpa/inet.h>
#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define RS_MAGIC "bbrs"
#define RS_VERSION 1
#define RS_SPARE_SLOTS 3

enum rs_kind {
	RS_KIND_STREAM = 1,
	RS_KIND_DATAGRAM = 2,
};

struct rs_hello {
	uint8_t magic[4];
	uint8_t version;
	uint8_t kind;       /* enum rs_kind */
	uint16_t reserved;
	uint32_t slots;     /* receive slots that need a credit */
	uint32_t slot_size; /* bytes, header included */
	uint32_t maps;      /* number of mappings that the receiver of the hello may offer */
};
_Static_assert(sizeof(struct rs_hello) == 20, "struct rs_hello");

enum rs_type {
	RS_DATA = 1,
	RS_MAP,
	RS_UNMAP,
	RS_CREDIT,
	RS_END,
};

struct rs_header {
	uint8_t type; /* enum rs_type */
	uint8_t reserved[3];
	uint32_t granted;
};
_Static_assert(sizeof(struct rs_header) == 8, "struct rs_header");

struct rs_map {
	uint64_t offset; /* argument of riowrite() for its first byte */
	uint64_t addr;
	uint64_t length;
	uint32_t rkey;
	uint32_t index;  /* of the mapping, below the receiver's `maps` */
};
_Static_assert(sizeof(struct rs_map) == 32, "struct rs_map");

struct rs_datagram {
	uint8_t version;
	uint8_t ip;         /* 4 or 6 */
	uint16_t src_port, dst_port;
	uint16_t reserved;
	uint8_t src[16], dst[16]; /* an IPv4 address is in the first four bytes */
};
_Static_assert(sizeof(struct rs_datagram) == 40, "struct rs_datagram");

/* Limits of the values in a hello. */
#define RS_SLOTS_MAX 65535
#define RS_SLOT_SIZE_MIN 256
#define RS_SLOT_SIZE_MAX (1u << 20)
#define RS_MAPS_MAX 4096

static inline void rs_hello_encode(struct rs_hello *h, enum rs_kind kind,
				   uint32_t slots, uint32_t slot_size,
				   uint32_t maps)
{
	memset(h, 0, sizeof(*h));
	memcpy(h->magic, RS_MAGIC, sizeof(h->magic));
	h->version = RS_VERSION;
	h->kind = (uint8_t)kind;
	h->slots = htonl(slots);
	h->slot_size = htonl(slot_size);
	h->maps = htonl(maps);
}

/* Converts a hello to host order; false: unknown, wrong kind, or beyond the limits. */
static inline bool rs_hello_decode(const void *data, size_t len,
				   enum rs_kind kind, struct rs_hello *h)
{
	if (!data || len < sizeof(*h))
		return false;
	memcpy(h, data, sizeof(*h));
	h->slots = ntohl(h->slots);
	h->slot_size = ntohl(h->slot_size);
	h->maps = ntohl(h->maps);
	if (memcmp(h->magic, RS_MAGIC, sizeof(h->magic)) ||
	    h->version != RS_VERSION || h->kind != kind)
		return false;
	return kind == RS_KIND_DATAGRAM ||
	       (h->slots >= 1 && h->slots <= RS_SLOTS_MAX &&
		h->slot_size >= RS_SLOT_SIZE_MIN &&
		h->slot_size <= RS_SLOT_SIZE_MAX && h->maps <= RS_MAPS_MAX);
}

#endif
