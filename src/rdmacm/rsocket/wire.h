/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What two rsockets say to each other. A protocol of our own: both ends are
 * rsockets of busbar, whatever adapter carries them. All numbers are in network
 * order.
 *
 * Streams (RC). Request and reply carry a struct rs_hello in their private data.
 * A listener that does not know magic or version rejects, with its own hello as
 * the private data of the reject; nothing is guessed.
 *
 * After that there are only SENDs. Each fills one receive slot of the other side,
 * whose number and size its hello told, and begins with a struct rs_header:
 *
 *   RS_DATA    bytes of the stream
 *   RS_MAP     a struct rs_map: what riomap() of the sender offers
 *   RS_UNMAP   likewise: what it withdraws
 *   RS_CREDIT  nothing
 *   RS_END     nothing: no bytes follow any more (shutdown, close)
 *
 * Why SEND and not RDMA WRITE into a ring: a SEND is the one operation that needs
 * no system call on the software adapter and no round trip to order it behind the
 * one before, and its completion says where the bytes are. riowrite() is what
 * RDMA WRITE is used for.
 *
 * Flow control. The first three kinds need a credit each: the header's `granted`
 * counts, without end (modulo 2^32), the slots that the sender of the header has
 * made available, of which the hello's `slots` are the first. It travels in every
 * header. When nothing else is to be said and half of the slots are free again,
 * RS_CREDIT says it. So at most two RS_CREDIT can be under way unread, and one
 * RS_END: RS_SPARE_SLOTS beyond the counted ones take them, and no receiver is
 * ever found not ready.
 *
 * Order is that of the queue pair: RS_END comes after all bytes, RS_MAP before the
 * bytes written after it, and an RDMA WRITE of riowrite() before the bytes after it.
 *
 * Datagrams (UD). Each begins with a struct rs_datagram, which gives the addresses
 * that the queue pairs stand for. A peer's queue pair is found by the lookup of the
 * connection manager (SIDR), with a hello as private data in both directions.
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
	uint32_t maps;      /* mappings that the other side may offer */
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
	uint64_t offset; /* where riowrite() finds it */
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
	uint8_t src[16], dst[16]; /* an IPv4 address in the first four */
};
_Static_assert(sizeof(struct rs_datagram) == 40, "struct rs_datagram");

/* Limits of what a hello may say. */
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

/* Fills `h` in host order; false when it is not one that we understand. */
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
