/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * FPDUs, as a sender writes them into the TCP stream behind its MPA frame: RFC 5044, 4. An FPDU is
 * the length of the ULPDU (16 bits), the ULPDU, zeros up to a multiple of four, and a CRC-32C. If
 * the peer wants markers, four bytes stand in front of every 512th byte, counted from the byte
 * behind the MPA frame and over the markers, too: the first FPDU begins with one. A marker holds
 * its distance from the length of the FPDU; one in front of the length holds 0 and belongs to the
 * FPDU that follows. The CRC covers all of it, markers included.
 *
 * Pure functions; a framer is one direction of one connection and belongs to one thread at a time.
 */
#ifndef WIRE_IWARP_FPDU_H
#define WIRE_IWARP_FPDU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "wire/iwarp/segment.h"

enum {
	IWARP_LENGTH_BYTES = 2,
	IWARP_CRC_BYTES = 4,
	IWARP_MARKER_BYTES = 4,
	IWARP_MARKER_INTERVAL = 512,

	/* Of the ULPDU of a sender: what DDP needs, and what FPDUPTR can point over. */
	IWARP_MULPDU_MIN = 128,
	IWARP_MULPDU_MAX = 64768,

	/* The most that an FPDU has beyond its ULPDU, and so much of it is markers. */
	IWARP_MARKERS_MAX = 130,
	IWARP_FPDU_EXTRA = IWARP_LENGTH_BYTES + 3 + IWARP_CRC_BYTES +
			   IWARP_MARKERS_MAX * IWARP_MARKER_BYTES,
};

struct iwarp_framer {
	uint64_t position; /* bytes since the MPA frame */
	bool markers;
	bool crc;          /* false: the field is there and is 0 */
};

/* The number of pad bytes behind a ULPDU. */
static inline unsigned iwarp_pad(size_t ulpdu_bytes)
{
	return -(unsigned)(IWARP_LENGTH_BYTES + ulpdu_bytes) & 3;
}

/* The longest ULPDU whose FPDU fits into a TCP segment of `mss` bytes wherever markers fall
 * (RFC 5044, 4.5), within IWARP_MULPDU_MIN and _MAX. */
size_t iwarp_mulpdu(size_t mss, bool markers);

/* The bytes that the next FPDU takes in the stream, markers included. */
size_t iwarp_framer_bytes(const struct iwarp_framer *f, size_t ulpdu_bytes);

/* Both make an FPDU of the ULPDU in `pieces`, which has IWARP_MULPDU_MAX bytes at most, and move
 * the position behind it. */

/* Writes the whole FPDU at `to`. Returns its length; 0: the ULPDU is too long. */
size_t iwarp_framer_write(struct iwarp_framer *f, const struct iovec *pieces, unsigned count,
			  uint8_t *to);

/*
 * Without copying the ULPDU: `out` gets pieces that point into it, and into `own` for the rest,
 * which has room for IWARP_FPDU_EXTRA bytes. Both must stay until the FPDU is sent. Returns the
 * number of pieces; 0: the ULPDU is too long, or `out`, which has `room` entries, is too short.
 * Then the position is as before. `count` + 2 entries suffice without markers, each marker takes
 * two more.
 */
unsigned iwarp_framer_gather(struct iwarp_framer *f, const struct iovec *pieces,
			     unsigned count, uint8_t *own, struct iovec *out, unsigned room);

#endif
