/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The header of RTP packets (RFC 3550 section 5.1) as bytes. No sockets and no clocks.
 */
#ifndef GATEWAY_NODE_RTP_PACKET_H
#define GATEWAY_NODE_RTP_PACKET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RTP_VERSION 2
#define RTP_HEADER_SIZE 12
#define RTP_PAYLOAD_TYPES 128

struct rtp_header {
	bool marker;
	uint8_t payload_type;
	uint16_t sequence;
	uint32_t timestamp, ssrc;
};

/* Where the payload of a received packet lies. */
struct rtp_payload {
	size_t at, len;
};

void rtp_header_encode(uint8_t out[RTP_HEADER_SIZE], const struct rtp_header *h);

/*
 * Takes a packet apart: skips contributing sources and a header extension, and leaves out
 * the padding. 0, or -EBADMSG with the reason in *why.
 */
int rtp_header_decode(const uint8_t *data, size_t len, struct rtp_header *h,
		      struct rtp_payload *payload, const char **why);

static inline void rtp_put16(uint8_t *at, uint32_t v)
{
	at[0] = (uint8_t)(v >> 8);
	at[1] = (uint8_t)v;
}

static inline void rtp_put32(uint8_t *at, uint32_t v)
{
	rtp_put16(at, v >> 16);
	rtp_put16(at + 2, v);
}

static inline uint32_t rtp_get16(const uint8_t *at)
{
	return (uint32_t)at[0] << 8 | at[1];
}

static inline uint32_t rtp_get32(const uint8_t *at)
{
	return rtp_get16(at) << 16 | rtp_get16(at + 2);
}

#endif
