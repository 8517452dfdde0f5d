/* SPDX-License-Identifier: BSD-2-Clause */
/* The receiver's side of FPDUs; see receiver.h. */
#include "wire/iwarp/receiver.h"

#include <string.h>

#include "util/container_of.h"
#include "wire/bytes.h"
#include "wire/iwarp/crc32c.h"

/* Bytes that the caller has given and that are not taken. */
struct input {
	const uint8_t *data;
	size_t bytes;
};

static void begin_fpdu(struct iwarp_receiver *r)
{
	r->phase = IWARP_IN_LENGTH;
	r->done = 0;
	r->ulpdu_bytes = 0;
	r->sum = CRC32C_BEGIN;
	r->found = IWARP_OK;
	r->decoded = false;
}

void iwarp_receiver_init(struct iwarp_receiver *r, bool markers, bool crc, uint8_t *buffer)
{
	memset(r, 0, sizeof(*r));
	r->markers = markers;
	r->crc = crc;
	r->buffer = buffer;
	begin_fpdu(r);
}

bool iwarp_receiver_idle(const struct iwarp_receiver *r)
{
	uint64_t behind = r->position % IWARP_MARKER_INTERVAL;

	/* A marker in front of the length belongs to the FPDU. */
	return !r->error && r->phase == IWARP_IN_LENGTH && !r->done &&
	       (!r->markers || !behind || behind > IWARP_MARKER_BYTES);
}

static const uint8_t *take(struct iwarp_receiver *r, struct input *in, size_t n, bool covered)
{
	const uint8_t *data = in->data;

	if (r->crc && covered)
		r->sum = crc32c_add(r->sum, data, n);
	r->position += n;
	in->data += n;
	in->bytes -= n;
	return data;
}

static void next_phase(struct iwarp_receiver *r, unsigned phase)
{
	r->phase = phase;
	r->done = 0;
}

/* ---- what is wrong ---- */

static enum iwarp_event break_off(struct iwarp_receiver *r, enum iwarp_error error)
{
	size_t kept = r->phase > IWARP_IN_ULPDU ? r->ulpdu_bytes :
		      r->phase == IWARP_IN_ULPDU ? r->done : 0;

	r->error = error;
	r->broken = r->buffer ? r->buffer : r->headers;
	if (!r->buffer)
		kept = MIN(kept, iwarp_segment_need(r->headers, kept, r->ulpdu_bytes));
	r->broken_there = kept;
	r->broken_bytes = r->ulpdu_bytes;
	return IWARP_BROKEN;
}

/* The first error of an FPDU counts; with CRCs it has to wait for the end. */
static enum iwarp_event note(struct iwarp_receiver *r, enum iwarp_error error)
{
	if (!r->found)
		r->found = error;
	return r->found && !r->crc ? break_off(r, r->found) : IWARP_NOTHING;
}

/* ---- markers ---- */

static bool in_marker(const struct iwarp_receiver *r)
{
	return r->markers && r->position % IWARP_MARKER_INTERVAL < IWARP_MARKER_BYTES;
}

static enum iwarp_event take_marker(struct iwarp_receiver *r, struct input *in)
{
	size_t have = r->position % IWARP_MARKER_INTERVAL;
	size_t n = MIN(in->bytes, IWARP_MARKER_BYTES - have);
	uint64_t pointer = 0;

	memcpy(r->marker + have, take(r, in, n, true), n);
	if (have + n < IWARP_MARKER_BYTES)
		return IWARP_NOTHING;
	if (r->phase != IWARP_IN_LENGTH || r->done)
		pointer = r->position - IWARP_MARKER_BYTES - r->length_at;
	/* The two lowest bits do not count (4.3). */
	return note(r, (get_16(r->marker + 2) & ~3u) == pointer ? IWARP_OK :
								   IWARP_FPDU_MARKER);
}

/* The most that may be taken in one piece. */
static size_t limit(const struct iwarp_receiver *r, const struct input *in, size_t wanted)
{
	size_t n = MIN(in->bytes, wanted);

	if (r->markers)
		n = MIN(n, IWARP_MARKER_INTERVAL - r->position % IWARP_MARKER_INTERVAL);
	return n;
}

/* ---- the parts of an FPDU ---- */

static enum iwarp_event end_of_ulpdu(struct iwarp_receiver *r)
{
	unsigned phase = iwarp_pad(r->ulpdu_bytes) ? IWARP_IN_PAD : IWARP_IN_CRC;
	enum iwarp_event event = IWARP_NOTHING;

	if (r->buffer)
		event = note(r, iwarp_segment_decode(r->buffer, r->ulpdu_bytes,
						     r->ulpdu_bytes, &r->segment,
						     &r->header_bytes));
	if (event != IWARP_BROKEN)
		next_phase(r, phase);
	return event;
}

static enum iwarp_event take_length(struct iwarp_receiver *r, struct input *in)
{
	size_t n = limit(r, in, IWARP_LENGTH_BYTES - r->done);

	if (!r->done)
		r->length_at = r->position;
	memcpy(r->field + r->done, take(r, in, n, true), n);
	r->done += n;
	if (r->done < IWARP_LENGTH_BYTES)
		return IWARP_NOTHING;
	r->ulpdu_bytes = get_16(r->field);
	next_phase(r, IWARP_IN_ULPDU);
	if (r->ulpdu_bytes)
		return IWARP_NOTHING;
	if (note(r, IWARP_DDP_SHORT) == IWARP_BROKEN)
		return IWARP_BROKEN;
	return end_of_ulpdu(r);
}

/* Headers, without a buffer. */
static enum iwarp_event take_headers(struct iwarp_receiver *r, struct input *in)
{
	size_t need = iwarp_segment_need(r->headers, r->done, r->ulpdu_bytes);
	size_t n = limit(r, in, need - r->done);
	enum iwarp_event event;

	memcpy(r->headers + r->done, take(r, in, n, true), n);
	r->done += n;
	need = iwarp_segment_need(r->headers, r->done, r->ulpdu_bytes);
	if (r->done < need)
		return IWARP_NOTHING;
	r->decoded = true;
	event = note(r, iwarp_segment_decode(r->headers, r->done, r->ulpdu_bytes, &r->segment,
					     &r->header_bytes));
	r->segment.payload = NULL;
	if (event == IWARP_BROKEN)
		return event;
	if (r->done == r->ulpdu_bytes)
		end_of_ulpdu(r);
	return r->found ? IWARP_NOTHING : IWARP_HEADER;
}

static enum iwarp_event take_payload(struct iwarp_receiver *r, struct input *in)
{
	size_t n = limit(r, in, r->ulpdu_bytes - r->done);

	r->piece = take(r, in, n, true);
	r->piece_bytes = n;
	r->piece_offset = r->done - r->header_bytes;
	r->done += n;
	if (r->done == r->ulpdu_bytes)
		end_of_ulpdu(r);
	return r->found ? IWARP_NOTHING : IWARP_PAYLOAD;
}

static enum iwarp_event take_ulpdu(struct iwarp_receiver *r, struct input *in)
{
	size_t n;

	if (!r->buffer)
		return r->decoded ? take_payload(r, in) : take_headers(r, in);
	n = limit(r, in, r->ulpdu_bytes - r->done);
	memcpy(r->buffer + r->done, take(r, in, n, true), n);
	r->done += n;
	return r->done == r->ulpdu_bytes ? end_of_ulpdu(r) : IWARP_NOTHING;
}

static enum iwarp_event take_pad(struct iwarp_receiver *r, struct input *in)
{
	size_t pad = iwarp_pad(r->ulpdu_bytes), n = limit(r, in, pad - r->done);

	take(r, in, n, true);
	r->done += n;
	if (r->done == pad)
		next_phase(r, IWARP_IN_CRC);
	return IWARP_NOTHING;
}

static enum iwarp_event end_of_fpdu(struct iwarp_receiver *r, const uint8_t *crc)
{
	if (r->crc && !crc32c_matches(r->sum, crc))
		return break_off(r, IWARP_FPDU_CRC);
	if (r->found)
		return break_off(r, r->found);
	begin_fpdu(r);
	return IWARP_FPDU;
}

static enum iwarp_event take_crc(struct iwarp_receiver *r, struct input *in)
{
	size_t n = limit(r, in, IWARP_CRC_BYTES - r->done);

	memcpy(r->field + r->done, take(r, in, n, false), n);
	r->done += n;
	return r->done == IWARP_CRC_BYTES ? end_of_fpdu(r, r->field) : IWARP_NOTHING;
}

static enum iwarp_event step(struct iwarp_receiver *r, struct input *in)
{
	if (in_marker(r))
		return take_marker(r, in);
	switch (r->phase) {
	case IWARP_IN_LENGTH:
		return take_length(r, in);
	case IWARP_IN_ULPDU:
		return take_ulpdu(r, in);
	case IWARP_IN_PAD:
		return take_pad(r, in);
	default:
		return take_crc(r, in);
	}
}

/* ---- an FPDU that lies in the caller's data as a whole ---- */

static size_t whole_fpdu(const struct iwarp_receiver *r, const struct input *in)
{
	size_t ulpdu, bytes;

	if (!r->buffer || r->phase != IWARP_IN_LENGTH || r->done || in_marker(r) ||
	    in->bytes < IWARP_LENGTH_BYTES)
		return 0;
	ulpdu = get_16(in->data);
	bytes = IWARP_LENGTH_BYTES + ulpdu + iwarp_pad(ulpdu) + IWARP_CRC_BYTES;
	return ulpdu && limit(r, in, bytes) == bytes ? bytes : 0;
}

/* Without a copy. If something is wrong, `in` is as before and the slow way says what. */
static bool take_whole(struct iwarp_receiver *r, struct input *in)
{
	size_t bytes = whole_fpdu(r, in), covered = bytes - IWARP_CRC_BYTES, ulpdu;

	if (!bytes)
		return false;
	if (r->crc && !crc32c_matches(crc32c_add(r->sum, in->data, covered),
				      in->data + covered))
		return false;
	ulpdu = get_16(in->data);
	if (r->found || iwarp_segment_decode(in->data + IWARP_LENGTH_BYTES, ulpdu, ulpdu,
					     &r->segment, &r->header_bytes))
		return false;
	r->position += bytes;
	in->data += bytes;
	in->bytes -= bytes;
	begin_fpdu(r);
	return true;
}

enum iwarp_event iwarp_receiver_take(struct iwarp_receiver *r, const uint8_t **data,
				     size_t *bytes)
{
	struct input in = { *data, *bytes };
	enum iwarp_event event = r->error ? IWARP_BROKEN : IWARP_NOTHING;

	while (!event && in.bytes)
		event = take_whole(r, &in) ? IWARP_FPDU : step(r, &in);
	*data = in.data;
	*bytes = in.bytes;
	return event;
}
