/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers of RTP packets; see rtp_packet.h. */
#include "gateway/node/rtp/rtp_packet.h"

#include <errno.h>

#define PADDING 0x20
#define EXTENSION 0x10
#define MARKER 0x80

void rtp_header_encode(uint8_t out[RTP_HEADER_SIZE], const struct rtp_header *h)
{
	out[0] = RTP_VERSION << 6;
	out[1] = (uint8_t)((h->marker ? MARKER : 0) | (h->payload_type & 0x7f));
	rtp_put16(out + 2, h->sequence);
	rtp_put32(out + 4, h->timestamp);
	rtp_put32(out + 8, h->ssrc);
}

static int fail(const char **why, const char *text)
{
	*why = text;
	return -EBADMSG;
}

int rtp_header_decode(const uint8_t *data, size_t len, struct rtp_header *h,
		      struct rtp_payload *payload, const char **why)
{
	size_t at, padding = 0;

	if (len < RTP_HEADER_SIZE)
		return fail(why, "it is shorter than an RTP header");
	if (data[0] >> 6 != RTP_VERSION)
		return fail(why, "it is not of RTP version 2");
	at = RTP_HEADER_SIZE + 4 * (size_t)(data[0] & 0x0f);
	if (data[0] & EXTENSION) {
		if (len < at + 4)
			return fail(why, "it ends inside its header extension");
		at += 4 + 4 * (size_t)rtp_get16(data + at + 2);
	}
	if (at > len)
		return fail(why, "it ends inside its RTP header");
	if (data[0] & PADDING) {
		padding = data[len - 1];
		if (!padding || padding > len - at)
			return fail(why, "its padding is longer than its payload, or 0");
	}
	*h = (struct rtp_header){
		.marker = data[1] & MARKER,
		.payload_type = data[1] & 0x7f,
		.sequence = (uint16_t)rtp_get16(data + 2),
		.timestamp = rtp_get32(data + 4),
		.ssrc = rtp_get32(data + 8),
	};
	*payload = (struct rtp_payload){ .at = at, .len = len - at - padding };
	return 0;
}
