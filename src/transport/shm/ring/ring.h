/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory of a link, which both processes write: a ring of slots and a data
 * area in each direction, and the layout of their contents. All of it is checked
 * when it is read (state.h).
 */
#ifndef TRANSPORT_SHM_RING_RING_H
#define TRANSPORT_SHM_RING_RING_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "hca/limits.h"
#include "util/container_of.h"

#define SHM_SLOTS 512u
#define SHM_SLOT_BYTES 128
#define SHM_SLOT_PAYLOAD 96
#define SHM_FIRST_LINE 32 /* payload bytes in the same cache line as the header */
#define SHM_DATA_BYTES (1u << 20)
#define SHM_FRAGMENT (32u << 10)   /* largest part of a message in the data area */

enum shm_op {
	SHM_SEND = 1,
	SHM_SEND_IMM,
	SHM_WRITE_IMM,  /* the initiator has written the data already */
	SHM_DATAGRAM,
	SHM_DATAGRAM_IMM,
	SHM_COMPARE_SWAP,
	SHM_FETCH_ADD,
	SHM_SEND_INV,   /* imm: the key to be invalidated */
	SHM_ACCESS_FAULT, /* the sender's one-sided access was an error; imm: its status */
	SHM_WRITE,      /* carried out by the receiver: struct shm_request */
	SHM_WRITE_DATA_IMM, /* likewise, and consumes a receive */
	SHM_READ,
	SHM_ATOMIC_WRITE,
};

enum shm_flags {
	SHM_IN_DATA = 1 << 0,     /* struct shm_extent in the payload */
	SHM_KICK_ON_ACK = 1 << 1, /* the sender may sleep until this is acknowledged */
	SHM_SOLICITED = 1 << 2,
	SHM_PULL = 1 << 3,        /* struct shm_pull in the payload */
	SHM_MORE = 1 << 4,        /* more fragments of this message follow */
	SHM_XRC = 1 << 5,         /* to an XRC SRQ, see shm_xrc_header() */
	SHM_XRC_FIRST = 1 << 6,   /* all earlier messages of its QP are acknowledged */
	SHM_UNRELIABLE = 1 << 7,  /* of an unreliable connection */
	SHM_IPV4 = SHM_XRC,       /* datagrams (never XRC): with an IPv4 header */
};

/* Marks of the receiver in a slot. */
enum shm_status {
	SHM_OK,
	SHM_RNR,          /* no receive posted; `timer` says how long to wait */
	SHM_DROPPED,      /* no such QP, not ready, or out of sequence */
	SHM_INVALID,      /* NAK invalid request */
	SHM_REMOTE_ERROR, /* NAK remote operational error */
	SHM_REMOTE_ACCESS, /* NAK remote access error */
	SHM_NO_PULL,      /* the receiver cannot read the sender's memory */
	SHM_LOCAL_FAULT,  /* never in a slot: a key of the initiator's buffer fails */
};

struct shm_slot {
	_Atomic uint32_t tag; /* lap of the ring; written last */
	uint8_t op;
	uint8_t flags;
	_Atomic uint8_t status; /* enum shm_status, by the receiver */
	_Atomic uint8_t timer;  /* RNR timer code, by the receiver */
	uint32_t dst_qpn;
	uint32_t src_qpn;
	uint32_t length;        /* of the message */
	uint32_t imm;
	uint32_t psn;           /* datagram: Q_Key */
	uint32_t ack;           /* of the other direction, see struct shm_ack */
	uint8_t payload[SHM_SLOT_PAYLOAD];
};

/* The fields of the slot header that the sender fills and the receiver copies. `timer`
 * is for XRC only. */
struct shm_header {
	uint8_t op, flags, timer;
	uint32_t dst_qpn, src_qpn, length, imm, psn;
};

/* Writes the header, and the tag last: the receiver may read the slot then. The payload is
 * written before. */
static inline void shm_slot_write(struct shm_slot *s, const struct shm_header *h,
				  uint32_t ack, uint32_t tag)
{
	s->op = h->op;
	s->flags = h->flags;
	atomic_store_explicit(&s->status, SHM_OK, memory_order_relaxed);
	atomic_store_explicit(&s->timer, h->timer, memory_order_relaxed);
	s->dst_qpn = h->dst_qpn;
	s->src_qpn = h->src_qpn;
	s->length = h->length;
	s->imm = h->imm;
	s->psn = h->psn;
	s->ack = ack;
	atomic_store_explicit(&s->tag, tag, memory_order_release);
}

/* Copies the header; `volatile` so that each field is read only once, as the sender can
 * change the slot. */
static inline void shm_slot_read(const struct shm_slot *s, struct shm_header *h, uint32_t *ack)
{
	const volatile struct shm_slot *v = s;

	*h = (struct shm_header){
		.op = v->op, .flags = v->flags, .timer = v->timer,
		.dst_qpn = v->dst_qpn, .src_qpn = v->src_qpn,
		.length = v->length, .imm = v->imm, .psn = v->psn,
	};
	*ack = v->ack;
}

/* Copies out of memory that the peer can write. The barrier keeps the compiler from
 * reading that memory again after the copy has been checked. */
static inline void shm_copy_once(void *to, const void *from, size_t size)
{
	memcpy(to, from, size);
	__asm__ volatile("" : : "r"(to) : "memory");
}

/*
 * The addresses of an XRC message: its destination is the SRQ, and the target QP's number
 * is in the upper bytes of three words that use 24 bits. shm_header.timer is the RNR
 * timer code of the target QP.
 */
struct shm_xrc_header {
	uint32_t srqn, src_qpn, psn, target_qpn;
};

static inline struct shm_xrc_header shm_xrc_header(uint32_t dst, uint32_t src, uint32_t psn)
{
	return (struct shm_xrc_header){
		.srqn = dst & HCA_PSN_MASK,
		.src_qpn = src & HCA_PSN_MASK,
		.psn = psn & HCA_PSN_MASK,
		.target_qpn = dst >> 24 | src >> 24 << 8 | psn >> 24 << 16,
	};
}

struct shm_extent {
	uint32_t offset; /* in the data area */
	uint32_t length;
	uint32_t at;     /* of this fragment in the message */
};

struct shm_pull {
	uint64_t addr;
	uint64_t length;
};
/*
 * A WRITE or READ, or a part of one, for the target to carry out. The part's data
 * are (WRITE) or will be (READ) in the data area of the initiator's direction
 * (SHM_IN_DATA) or after this structure in the slot.
 */
struct shm_request {
	struct shm_extent part; /* as for a message in fragments */
	uint32_t rkey;
	uint64_t remote_addr;   /* of the whole operation */
};
#define SHM_REQUEST_PAYLOAD (SHM_SLOT_PAYLOAD - sizeof(struct shm_request))

/* An ATOMIC request; the responder fills in the result. ATOMIC WRITE has no result, and
 * its data in `swap`. */
struct shm_atomic {
	uint64_t remote_addr, compare_add, swap, result;
	uint32_t rkey;
};
#define SHM_PULL_MAX (SHM_SLOT_PAYLOAD / sizeof(struct shm_pull))

/*
 * Written by the receiver of a direction, read by its sender. Traffic in the
 * other direction carries the same word (shm_slot.ack), so that in a ping-pong
 * it need not be read here.
 *
 * The word: the count of slots received, free running, in the lower bits, and the count
 * of slots marked above it. If the latter has not changed, the sender does not read the
 * slots again, whose cache lines are with the receiver.
 */
struct shm_ack {
	cache_aligned _Atomic uint32_t word;
	_Atomic uint32_t pulls; /* the receiver can read the sender's memory */
};
#define SHM_ACK_POS_BITS 22
#define SHM_ACK_POS_MASK ((1u << SHM_ACK_POS_BITS) - 1)
_Static_assert((1u << (32 - SHM_ACK_POS_BITS)) > SHM_SLOTS,
	       "if all slots of the ring are marked the count differs");

static inline uint32_t shm_ack_word(uint32_t pos, uint32_t marks)
{
	return (pos & SHM_ACK_POS_MASK) | marks << SHM_ACK_POS_BITS;
}

struct shm_direction {
	struct shm_ack ack;
	cache_aligned struct shm_slot slots[SHM_SLOTS];
	uint8_t data[SHM_DATA_BYTES] __attribute__((aligned(4096)));
};

struct shm_area {
	struct shm_direction dir[2]; /* connector to acceptor, and back */
};

_Static_assert(sizeof(struct shm_slot) == SHM_SLOT_BYTES, "slot size");
_Static_assert(offsetof(struct shm_slot, payload) == 32, "slot header");
_Static_assert(sizeof(struct shm_ack) == CACHE_LINE, "one line");

#endif
