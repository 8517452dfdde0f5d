/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a packet of a connection says, without its bytes: neither the layout on a wire
 * nor addresses of this process. wire/ib turns it into headers (BTH, RETH, AETH,
 * AtomicETH, ImmDt, IETH); a transport of another kind may carry it as it is.
 */
#ifndef ENGINE_RC_PACKET_H
#define ENGINE_RC_PACKET_H

#include <stdint.h>

enum rc_op {
	RC_SEND,
	RC_WRITE,
	RC_READ,
	RC_COMPARE_SWAP,
	RC_FETCH_ADD,
	RC_ACK,           /* and every NAK */
	RC_READ_RESPONSE,
	RC_ATOMIC_RESPONSE,
};

/* Of packets; those from RC_IMM on also of work entries. */
enum rc_flags {
	RC_FIRST = 1 << 0, /* of its message, or of the answer to a READ */
	RC_LAST = 1 << 1,
	RC_ACK_REQ = 1 << 2,
	RC_IMM = 1 << 3,
	RC_INVALIDATE = 1 << 4,
	RC_SOLICITED = 1 << 5,
	RC_FENCE = 1 << 6, /* work entries only */
	RC_WORD = 1 << 7,  /* a WRITE of 8 bytes at once (ATOMIC WRITE) */
};

/* AETH syndrome (9.7.5.1): two bits of kind, five of value. */
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

struct rc_packet {
	uint8_t op;       /* enum rc_op */
	uint8_t flags;    /* enum rc_flags */
	uint8_t syndrome; /* of ACK, ATOMIC_RESPONSE; READ_RESPONSE: first or last */
	uint32_t psn;
	uint32_t msn;     /* with a syndrome */
	uint32_t bytes;   /* of payload */
	uint32_t imm;     /* RC_IMM: as it is on the wire; RC_INVALIDATE: the key */
	/* READ and the first packet of a WRITE: the whole; atomics: the operand. */
	uint32_t rkey, length;
	uint64_t remote_addr;
	uint64_t compare_add, swap; /* ATOMIC_RESPONSE: the old value, in the first */
};

#endif
