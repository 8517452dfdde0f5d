/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The frames that set up an MPA connection: RFC 5044, 7.1 (revision 1), and RFC 6581
 * (revision 2 with IRD, ORD and the choice of the first message). One request from the initiator
 * and one reply from the responder stand at the beginning of the two directions of a TCP stream;
 * FPDUs follow (fpdu.h, receiver.h). Who may answer what is the engine's.
 *
 * Pure functions, of any thread. Integers are in host order.
 */
#ifndef WIRE_IWARP_MPA_H
#define WIRE_IWARP_MPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/iwarp/error.h"

enum {
	IWARP_MPA_HEADER_BYTES = 20,
	IWARP_MPA_ENHANCED_BYTES = 4, /* counted as private data by the frame */
	IWARP_MPA_PRIVATE_MAX = 512,
	IWARP_MPA_FRAME_MAX = IWARP_MPA_HEADER_BYTES + IWARP_MPA_PRIVATE_MAX,
	IWARP_MPA_REVISION_MAX = 2,
	IWARP_MPA_DEPTH_MAX = 0x3fff, /* of IRD and ORD */
};

struct iwarp_mpa {
	bool reply;            /* false: a request */
	bool markers;          /* M: the sender of this frame wants to receive markers */
	bool crc;              /* C: both directions carry valid CRCs */
	bool reject;           /* R: of a reply; always false in a request */
	uint8_t revision;

	/* With `enhanced` (S, revision 2); without it encode does not look, decode yields 0. */
	bool enhanced;
	bool peer_to_peer;     /* A: the initiator sends a message for the responder to begin */
	bool rtr_send;         /* B: by a zero-length SEND */
	bool rtr_write;        /* C of RFC 6581: by a zero-length WRITE */
	bool rtr_read;         /* D: by a zero-length READ */
	uint16_t ird, ord;     /* READs that this end serves, and that it may have under way */

	/* Without IRD and ORD; at most 512 bytes, 508 with `enhanced`. decode: within the frame. */
	const uint8_t *private_data;
	uint16_t private_bytes;
};

/* Writes the frame at `to`, which has room for IWARP_MPA_FRAME_MAX bytes. Returns its length; 0:
 * a value does not fit its field, or flags that this kind or revision does not have. */
size_t iwarp_mpa_encode(const struct iwarp_mpa *mpa, uint8_t *to);

/*
 * `from` holds the first `bytes` bytes of the stream, any number. IWARP_OK: *frame_bytes is the
 * length of the frame as far as it can be known, 20 at least; if it is more than `bytes`, more
 * has to come and *mpa is untouched, otherwise *mpa is set, and FPDUs begin behind the frame.
 * Any other value: no frame, as soon as that is certain; *mpa and *frame_bytes are untouched.
 *
 * Ignored, as the RFCs say: reserved bits, R in a request, S below revision 2.
 */
enum iwarp_error iwarp_mpa_decode(const uint8_t *from, size_t bytes, bool reply,
				  struct iwarp_mpa *mpa, size_t *frame_bytes);

#endif
