/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * DDP segments, which are the ULPDUs of MPA: the headers of DDP (RFC 5041, 4) and of the RDMAP
 * message inside (RFC 5040, 4), with atomics and immediate data (RFC 7306). What memory,
 * queues and earlier messages say about a segment is the engine's.
 *
 * Pure functions, of any thread. Integers are in host order.
 */
#ifndef WIRE_IWARP_SEGMENT_H
#define WIRE_IWARP_SEGMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/iwarp/error.h"

enum iwarp_opcode {
	IWARP_WRITE = 0x0,
	IWARP_READ_REQUEST = 0x1,
	IWARP_READ_RESPONSE = 0x2,
	IWARP_SEND = 0x3,
	IWARP_SEND_INVALIDATE = 0x4,
	IWARP_SEND_SE = 0x5,            /* with solicited event */
	IWARP_SEND_SE_INVALIDATE = 0x6,
	IWARP_TERMINATE = 0x7,
	IWARP_IMMEDIATE = 0x8,
	IWARP_IMMEDIATE_SE = 0x9,
	IWARP_ATOMIC_REQUEST = 0xa,
	IWARP_ATOMIC_RESPONSE = 0xb,
	IWARP_OPCODES = 0x10,
};

enum iwarp_queue { /* queue numbers of untagged segments */
	IWARP_QN_SEND = 0,
	IWARP_QN_READ_REQUEST = 1, /* and atomic requests */
	IWARP_QN_TERMINATE = 2,
	IWARP_QN_ATOMIC_RESPONSE = 3,
};

enum iwarp_atomic_operation {
	IWARP_FETCH_ADD = 0,
	IWARP_COMPARE_SWAP = 2,
};

enum {
	IWARP_TAGGED_BYTES = 14,
	IWARP_UNTAGGED_BYTES = 18,
	IWARP_READ_REQUEST_BYTES = 28,   /* behind the DDP header, as those that follow */
	IWARP_ATOMIC_REQUEST_BYTES = 52,
	IWARP_ATOMIC_RESPONSE_BYTES = 12,
	IWARP_IMMEDIATE_BYTES = 8,
	IWARP_TERMINATE_MIN = 4,
	IWARP_TERMINATE_MAX = 4 + 2 + IWARP_UNTAGGED_BYTES + IWARP_READ_REQUEST_BYTES,
	IWARP_HEADERS_MAX = IWARP_UNTAGGED_BYTES + IWARP_TERMINATE_MAX,
	IWARP_ULPDU_MAX = 0xffff,        /* headers and payload of a segment */
};

struct iwarp_opcode_info {
	bool known;
	bool tagged;      /* buffer model */
	bool payload;     /* it may have some, and several segments */
	bool invalidates; /* has an Invalidate STag */
	bool solicited;
	uint8_t qn;       /* enum iwarp_queue, of untagged ones */
	uint8_t bytes;    /* of DDP and RDMAP header; TERMINATE: the least */
	const char *name;
};
/* One entry for each opcode. */
extern const struct iwarp_opcode_info iwarp_opcodes[IWARP_OPCODES];

struct iwarp_terminate {
	uint8_t layer, type, code;  /* enum iwarp_layer ...; iwarp_code_text() names them */
	bool has_length;            /* M: segment_bytes is valid */
	bool has_ddp, has_rdmap;    /* D, R: headers of the terminated segment follow */
	bool siw_order;             /* decode: the first word has Linux's order of bits */
	uint8_t ddp_bytes;          /* 0, 14 (tagged) or 18 */
	uint8_t rdmap_bytes;        /* 0 or 28; 0 with has_rdmap: the peer left it out */
	uint16_t segment_bytes;     /* of the terminated segment, headers included */
	uint8_t ddp[IWARP_UNTAGGED_BYTES];
	uint8_t rdmap[IWARP_READ_REQUEST_BYTES];
};

/* Of the members only those count that the opcode has. */
struct iwarp_segment {
	uint8_t opcode;           /* enum iwarp_opcode */
	bool last;                /* L: the last segment of its message */

	/* tagged */
	uint32_t stag;            /* of the data sink */
	uint64_t to;              /* tagged offset of the payload */

	/* untagged; the queue number follows from the opcode */
	uint32_t invalidate_stag; /* with `invalidates` */
	uint32_t msn;             /* message sequence number, from 1 */
	uint32_t mo;              /* offset of the payload in the message */

	union {
		struct {
			uint32_t sink_stag, source_stag;
			uint64_t sink_to, source_to;
			uint32_t bytes;
		} read;
		struct iwarp_terminate terminate;
		struct {
			uint8_t operation; /* enum iwarp_atomic_operation */
			uint32_t request, stag;
			uint64_t to;
			uint64_t add_swap, add_swap_mask, compare, compare_mask;
		} atomic;
		struct {
			uint32_t request; /* of the atomic request that it answers */
			uint64_t original;
		} atomic_response;
		uint64_t immediate; /* bytes 0 to 7 of the data, the first one uppermost */
	};

	const uint8_t *payload;   /* decode: behind the headers; encode does not look */
	uint32_t bytes;           /* of payload */
};

/* Writes the headers at `to`, which has room for IWARP_HEADERS_MAX bytes. Returns their length;
 * 0: unknown opcode or atomic operation, or a TERMINATE whose lengths do not agree. Messages of
 * one segment get the L flag and offset 0 whatever the structure says. The first word of a
 * TERMINATE is in the RFC's order. The caller puts the payload behind. */
size_t iwarp_segment_encode(const struct iwarp_segment *segment, uint8_t *to);

/* Of a ULPDU of `bytes` bytes the first `there` have come. Returns how many of them
 * iwarp_segment_decode() needs at least, as far as can be known: more than `there`, or final. */
size_t iwarp_segment_need(const uint8_t *from, size_t there, size_t bytes);

/*
 * `from` are the first `there` bytes of a ULPDU of `bytes` bytes; `there` is `bytes`, or at least
 * what iwarp_segment_need() says. IWARP_OK: *segment is set, the headers have *header_bytes, and
 * segment->payload points behind them, where `there` - *header_bytes bytes can be read. Otherwise
 * the first rule that is broken, those of DDP before those of RDMAP; *segment has no meaning.
 *
 * Ignored, as the RFCs say: reserved bits and fields, the Invalidate STag of opcodes that have
 * none. A TERMINATE is never answered by another one, also where this refuses it.
 */
enum iwarp_error iwarp_segment_decode(const uint8_t *from, size_t there, size_t bytes,
				      struct iwarp_segment *segment, size_t *header_bytes);

/* Fills in a TERMINATE that reports `error` in a segment of `bytes` bytes, of which `there` are
 * at `from`; NULL: no segment caused it. Headers are included where RFC 5040, 4.8, wants them
 * and they are there as a whole. */
void iwarp_terminate_fill(struct iwarp_terminate *t, enum iwarp_error error,
			  const uint8_t *from, size_t there, size_t bytes);

#endif
