/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiver of FPDUs: it takes the bytes of a TCP stream behind the MPA frame in pieces of any
 * length, removes markers, checks them and the CRC, and decodes the DDP segments (RFC 5044, 4;
 * fpdu.h describes the stream). It hands out
 *
 * - whole segments, with a buffer: each one after its CRC was found right; or
 * - without a buffer, the headers as soon as they are there and the payload while it arrives, in
 *   pieces that point into the caller's data, so that it can be placed without a further copy.
 *   What an FPDU brought is sure only at its end: the CRC comes last.
 *
 * Which rule a stream breaks does not depend on how it is cut. With CRCs, an FPDU with a wrong one
 * is reported as that and as nothing else: whatever seemed to be wrong in it (a marker, a header)
 * may be a consequence. So headers and payload of an FPDU in which something is wrong are kept
 * back, and the error comes with the FPDU's last byte. Without CRCs it comes at once.
 *
 * No allocation, no system call. A receiver is one direction of one connection and belongs to one
 * thread at a time.
 */
#ifndef WIRE_IWARP_RECEIVER_H
#define WIRE_IWARP_RECEIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/iwarp/fpdu.h"
#include "wire/iwarp/segment.h"

enum iwarp_event {
	IWARP_NOTHING, /* all bytes are taken */
	IWARP_HEADER,  /* without a buffer: `segment` is set but for its payload */
	IWARP_PAYLOAD, /* without a buffer: `piece` */
	IWARP_FPDU,    /* the end of an FPDU: `segment` is sure; with a buffer it is all there */
	IWARP_BROKEN,  /* `error`; nothing more is taken */
};

struct iwarp_receiver {
	/* What the last event is about. */
	struct iwarp_segment segment;
	size_t header_bytes;   /* of the segment */
	const uint8_t *piece;  /* of payload, in the caller's data */
	size_t piece_bytes;
	size_t piece_offset;   /* from the beginning of this segment's payload */
	enum iwarp_error error;
	/* With IWARP_BROKEN: the first bytes of the segment at fault, for iwarp_terminate_fill(). */
	const uint8_t *broken;
	size_t broken_there, broken_bytes;

	/* The receiver's own. */
	bool markers, crc;
	uint8_t *buffer;
	uint64_t position;     /* bytes since the MPA frame */
	uint64_t length_at;    /* position of this FPDU's length */
	enum {
		IWARP_IN_LENGTH,
		IWARP_IN_ULPDU,
		IWARP_IN_PAD,
		IWARP_IN_CRC,
	} phase;
	size_t done;           /* bytes of the phase */
	size_t ulpdu_bytes;
	uint32_t sum;          /* CRC register */
	enum iwarp_error found; /* in this FPDU */
	bool decoded;          /* without a buffer: the headers, and IWARP_HEADER was reported */
	uint8_t marker[IWARP_MARKER_BYTES];
	uint8_t field[4];      /* length or CRC */
	uint8_t headers[IWARP_HEADERS_MAX];
};

/* `buffer` has room for IWARP_ULPDU_MAX bytes, or is NULL. */
void iwarp_receiver_init(struct iwarp_receiver *r, bool markers, bool crc, uint8_t *buffer);

/*
 * Takes bytes from *data up to the next event, and moves *data and *bytes behind them. Call it
 * until it says IWARP_NOTHING. `piece`, and with a buffer the payload of `segment`, point into
 * the caller's data or the buffer and are valid until the next call.
 */
enum iwarp_event iwarp_receiver_take(struct iwarp_receiver *r, const uint8_t **data,
				     size_t *bytes);

/* Is it between two FPDUs? The end of the stream anywhere else is an error (IWARP_MPA_LOST). */
bool iwarp_receiver_idle(const struct iwarp_receiver *r);

#endif
