/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The rules of iWARP that a peer can break, and what a TERMINATE says about each: RFC 5040, 4.8
 * (RDMAP), RFC 5041, 8.2 (DDP), RFC 5044, 8 (MPA), RFC 6581 (enhanced set-up), RFC 7306
 * (atomics). The decoders of this folder find some of them; the others depend on memory, queues
 * and earlier messages, and are found by the protocol engine.
 *
 * Pure functions, of any thread. Texts are constants.
 */
#ifndef WIRE_IWARP_ERROR_H
#define WIRE_IWARP_ERROR_H

#include <stdbool.h>
#include <stdint.h>

enum iwarp_layer {
	IWARP_LAYER_RDMAP = 0,
	IWARP_LAYER_DDP = 1,
	IWARP_LAYER_LLP = 2, /* MPA */
};

/* Error types of each layer. */
enum iwarp_error_type {
	IWARP_TYPE_CATASTROPHIC = 0,      /* RDMAP and DDP: local catastrophic error */
	IWARP_TYPE_RDMAP_PROTECTION = 1,
	IWARP_TYPE_RDMAP_OPERATION = 2,
	IWARP_TYPE_DDP_TAGGED = 1,
	IWARP_TYPE_DDP_UNTAGGED = 2,
	IWARP_TYPE_MPA = 0,
};

enum iwarp_error {
	IWARP_OK,

	IWARP_MPA_KEY,           /* neither "MPA ID Req Frame" nor "MPA ID Rep Frame", or the other */
	IWARP_MPA_REVISION,      /* above 2 */
	IWARP_MPA_PRIVATE_DATA,  /* longer than 512 bytes */
	IWARP_MPA_ENHANCED,      /* S is set, and there are no IRD and ORD */
	IWARP_MPA_IRD,           /* insufficient IRD resources */
	IWARP_MPA_RTR,           /* no matching RTR option */
	IWARP_MPA_CATASTROPHIC,  /* local */
	IWARP_MPA_LOST,          /* TCP connection closed, terminated or lost */
	IWARP_FPDU_CRC,
	IWARP_FPDU_MARKER,       /* marker and ULPDU_Length disagree on the start of the FPDU */

	IWARP_DDP_CATASTROPHIC,  /* local */
	IWARP_DDP_SHORT,         /* no whole DDP header */
	IWARP_DDP_STAG,          /* tagged: invalid STag */
	IWARP_DDP_BOUNDS,        /* base or bounds violation */
	IWARP_DDP_STAG_STREAM,   /* STag not associated with the stream */
	IWARP_DDP_TO_WRAP,
	IWARP_DDP_TAGGED_VERSION,
	IWARP_DDP_QN,            /* untagged: invalid queue number */
	IWARP_DDP_NO_BUFFER,     /* invalid MSN: no buffer available */
	IWARP_DDP_MSN,           /* MSN out of range */
	IWARP_DDP_MO,            /* invalid message offset */
	IWARP_DDP_TOO_LONG,      /* message too long for the buffer */
	IWARP_DDP_UNTAGGED_VERSION,

	IWARP_RDMAP_CATASTROPHIC, /* local */
	IWARP_RDMAP_STAG,
	IWARP_RDMAP_BOUNDS,
	IWARP_RDMAP_ACCESS,      /* access rights violation */
	IWARP_RDMAP_STAG_STREAM,
	IWARP_RDMAP_TO_WRAP,
	IWARP_RDMAP_INVALIDATE,  /* STag cannot be invalidated */
	IWARP_RDMAP_PROTECTION,  /* unspecified */
	IWARP_RDMAP_VERSION,
	IWARP_RDMAP_OPCODE,      /* unknown, or not of this buffer model or queue */
	IWARP_RDMAP_ATOMIC,      /* unknown atomic operation */
	IWARP_RDMAP_LENGTH,      /* a header of fixed length is shorter than that */
	IWARP_RDMAP_NOT_LAST,    /* a message of one segment without the L flag */
	IWARP_RDMAP_STREAM,      /* catastrophic error, localized to the stream */
	IWARP_RDMAP_GLOBAL,      /* catastrophic error, global */
	IWARP_RDMAP_OPERATION,   /* unspecified */

	IWARP_ERRORS,
};

/* Header control bits of a TERMINATE's first word. */
#define IWARP_TERMINATE_M 0x8000u /* the DDP segment length is valid */
#define IWARP_TERMINATE_D 0x4000u /* the DDP header is there */
#define IWARP_TERMINATE_R 0x2000u /* the header of a READ request is there */

/* What is wrong, in a few words without a full stop. */
const char *iwarp_error_text(enum iwarp_error error);

/*
 * The first word of the TERMINATE that reports `error`, in host order: layer (bits 31 to 28),
 * type (27 to 24), code (23 to 16), M and D. R is the caller's: iwarp_terminate_fill() sets it
 * where a READ request caused the error. M and D are clear where the segment cannot be shown:
 * errors of MPA, local ones, and versions and opcodes whose headers nobody knows.
 */
uint32_t iwarp_error_control(enum iwarp_error error);

/* Names as the RFCs have them; "reserved" for numbers without a name. */
const char *iwarp_layer_text(uint8_t layer);
const char *iwarp_type_text(uint8_t layer, uint8_t type);
const char *iwarp_code_text(uint8_t layer, uint8_t type, uint8_t code);
/* Does an RFC define this code? */
bool iwarp_code_known(uint8_t layer, uint8_t type, uint8_t code);

#endif
