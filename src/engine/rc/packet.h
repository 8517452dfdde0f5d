/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The content of a packet of a connection, without its payload and independent of the
 * layout on a wire and of addresses in this process. wire/ib converts it to headers
 * (BTH, RETH, AETH, AtomicETH, ImmDt, IETH); another transport may carry it as it is.
 */
#ifndef ENGINE_RC_PACKET_H
#define ENGINE_RC_PACKET_H

#include <stdint.h>

#include "engine/work.h"

enum rc_op {
	RC_SEND = WORK_SEND,
	RC_WRITE = WORK_WRITE,
	RC_READ = WORK_READ,
	RC_COMPARE_SWAP = WORK_COMPARE_SWAP,
	RC_FETCH_ADD = WORK_FETCH_ADD,
	RC_FLUSH = WORK_FLUSH, /* answered like a READ of no bytes */
	RC_ACK,           /* an acknowledgement or a NAK; behind it are answers only */
	RC_READ_RESPONSE,
	RC_ATOMIC_RESPONSE,
	RC_CNP,           /* annex A17: packets of the receiver were marked; no PSN */
};

/* Flags of packets; those from RC_IMM on are flags of work entries as well. */
enum rc_flags {
	RC_FIRST = 1 << 0, /* first packet of a message or of a READ response */
	RC_LAST = 1 << 1,
	RC_ACK_REQ = 1 << 2,
	RC_IMM = WORK_IMM,
	RC_INVALIDATE = WORK_INVALIDATE,
	RC_SOLICITED = WORK_SOLICITED,
	RC_FENCE = WORK_FENCE, /* work entries only */
	/* It is answered like a READ of no bytes, and counts as one of max_rd_atomic. */
	RC_WORD = WORK_WORD,
};

/* The lower bits of the FETH of a FLUSH. */
enum rc_flush {
	RC_FLUSH_GLOBAL = 1 << 0,     /* placement types: visible to all */
	RC_FLUSH_PERSISTENT = 1 << 1,
	RC_FLUSH_REGION = 1 << 4,     /* selectivity: the whole region, not the range */
};

/* AETH syndrome (9.7.5.1): the upper bits are the kind, the lower five a value. */
enum rc_syndrome {
	RC_SYN_ACK = 0x00,   /* | credits */
	RC_SYN_RNR = 0x20,   /* | timer code */
	RC_SYN_SEQUENCE = 0x60,
	RC_SYN_INVALID = 0x61,
	RC_SYN_ACCESS = 0x62,
	RC_SYN_OPERATION = 0x63,
};
#define RC_SYN_KIND 0x60
#define RC_SYN_VALUE 0x1f
#define RC_CREDITS_UNLIMITED 31

/* With `more` a packet stands for a run: that many packets follow it which differ from it in
 * their PSN, each one higher, and in their payload, of the same length. Only of packets
 * without flags, the middle ones of a message or of a READ response. */
struct rc_packet {
	uint8_t op;       /* enum rc_op */
	uint8_t flags;    /* enum rc_flags */
	uint8_t syndrome; /* in ACK, ATOMIC_RESPONSE, first and last READ_RESPONSE */
	uint8_t flush;    /* enum rc_flush */
	uint32_t psn;
	uint32_t msn;     /* where there is a syndrome */
	uint32_t bytes;   /* length of the payload; of a run, of each packet's */
	uint32_t more;
	uint32_t imm;     /* RC_IMM: in network order; RC_INVALIDATE: the key */
	/* READ, FLUSH and first packet of a WRITE: the whole range; atomics: the operand. */
	uint32_t rkey, length;
	uint64_t remote_addr;
	uint64_t compare_add, swap; /* ATOMIC_RESPONSE: compare_add is the old value */
};

#endif
