/* SPDX-License-Identifier: BSD-2-Clause */
/* MPA request and reply frames; see mpa.h. */
#include "wire/iwarp/mpa.h"

#include <string.h>

#include "wire/bytes.h"

enum {
	KEY_BYTES = 16,
	AT_FLAGS = 16,
	AT_PRIVATE_LENGTH = 18,

	/* the word of flags; the revision is in its low byte */
	M = 0x8000, C = 0x4000, R = 0x2000, S = 0x1000, REVISION = 0x00ff,

	PEER_TO_PEER = 0x8000, RTR_SEND = 0x4000, /* with the IRD */
	RTR_WRITE = 0x8000, RTR_READ = 0x4000,    /* with the ORD */
};

static const char *key_of(bool reply)
{
	return reply ? "MPA ID Rep Frame" : "MPA ID Req Frame";
}

static bool encodable(const struct iwarp_mpa *mpa)
{
	size_t more = mpa->enhanced ? IWARP_MPA_ENHANCED_BYTES : 0;

	if (mpa->revision > IWARP_MPA_REVISION_MAX || (mpa->reject && !mpa->reply) ||
	    mpa->private_bytes + more > IWARP_MPA_PRIVATE_MAX)
		return false;
	return !mpa->enhanced || (mpa->revision == 2 && mpa->ird <= IWARP_MPA_DEPTH_MAX &&
				  mpa->ord <= IWARP_MPA_DEPTH_MAX);
}

static uint8_t *put_enhanced(const struct iwarp_mpa *mpa, uint8_t *to)
{
	to = put_16(to, (uint16_t)(mpa->ird | (mpa->peer_to_peer ? PEER_TO_PEER : 0) |
				   (mpa->rtr_send ? RTR_SEND : 0)));
	return put_16(to, (uint16_t)(mpa->ord | (mpa->rtr_write ? RTR_WRITE : 0) |
				     (mpa->rtr_read ? RTR_READ : 0)));
}

size_t iwarp_mpa_encode(const struct iwarp_mpa *mpa, uint8_t *to)
{
	uint8_t *at = to + KEY_BYTES;
	size_t more = mpa->enhanced ? IWARP_MPA_ENHANCED_BYTES : 0;

	if (!encodable(mpa))
		return 0;
	memcpy(to, key_of(mpa->reply), KEY_BYTES);
	at = put_16(at, (uint16_t)((mpa->markers ? M : 0) | (mpa->crc ? C : 0) |
				   (mpa->reject ? R : 0) | (mpa->enhanced ? S : 0) |
				   mpa->revision));
	at = put_16(at, (uint16_t)(mpa->private_bytes + more));
	if (mpa->enhanced)
		at = put_enhanced(mpa, at);
	if (mpa->private_bytes)
		memcpy(at, mpa->private_data, mpa->private_bytes);
	return IWARP_MPA_HEADER_BYTES + more + mpa->private_bytes;
}

static void get_enhanced(const uint8_t *from, struct iwarp_mpa *mpa)
{
	uint16_t ird = get_16(from), ord = get_16(from + 2);

	mpa->peer_to_peer = ird & PEER_TO_PEER;
	mpa->rtr_send = ird & RTR_SEND;
	mpa->rtr_write = ord & RTR_WRITE;
	mpa->rtr_read = ord & RTR_READ;
	mpa->ird = ird & IWARP_MPA_DEPTH_MAX;
	mpa->ord = ord & IWARP_MPA_DEPTH_MAX;
}

static void get_frame(const uint8_t *from, bool reply, struct iwarp_mpa *mpa)
{
	uint16_t flags = get_16(from + AT_FLAGS);
	const uint8_t *private_data = from + IWARP_MPA_HEADER_BYTES;

	*mpa = (struct iwarp_mpa){
		.reply = reply,
		.markers = flags & M,
		.crc = flags & C,
		.reject = reply && (flags & R),
		.revision = flags & REVISION,
		.enhanced = (flags & S) && (flags & REVISION) == 2,
		.private_data = private_data,
		.private_bytes = get_16(from + AT_PRIVATE_LENGTH),
	};
	if (!mpa->enhanced)
		return;
	get_enhanced(private_data, mpa);
	mpa->private_data += IWARP_MPA_ENHANCED_BYTES;
	mpa->private_bytes -= IWARP_MPA_ENHANCED_BYTES;
}

enum iwarp_error iwarp_mpa_decode(const uint8_t *from, size_t bytes, bool reply,
				  struct iwarp_mpa *mpa, size_t *frame_bytes)
{
	uint16_t flags, length;

	if (memcmp(from, key_of(reply), bytes < KEY_BYTES ? bytes : KEY_BYTES) != 0)
		return IWARP_MPA_KEY;
	if (bytes < IWARP_MPA_HEADER_BYTES) {
		*frame_bytes = IWARP_MPA_HEADER_BYTES;
		return IWARP_OK;
	}
	flags = get_16(from + AT_FLAGS);
	length = get_16(from + AT_PRIVATE_LENGTH);
	if ((flags & REVISION) > IWARP_MPA_REVISION_MAX)
		return IWARP_MPA_REVISION;
	if (length > IWARP_MPA_PRIVATE_MAX)
		return IWARP_MPA_PRIVATE_DATA;
	if ((flags & S) && (flags & REVISION) == 2 && length < IWARP_MPA_ENHANCED_BYTES)
		return IWARP_MPA_ENHANCED;
	*frame_bytes = (size_t)IWARP_MPA_HEADER_BYTES + length;
	if (*frame_bytes <= bytes)
		get_frame(from, reply, mpa);
	return IWARP_OK;
}
