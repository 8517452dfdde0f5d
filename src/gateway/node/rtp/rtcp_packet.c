/* SPDX-License-Identifier: BSD-2-Clause */
/* RTCP as bytes; see rtcp_packet.h. */
#include "gateway/node/rtp/rtcp_packet.h"

#include <errno.h>
#include <string.h>

#include "gateway/node/rtp/rtp_packet.h"

#define HEADER 4
#define SENDER_SIZE 20u
#define SDES_CNAME 1
#define PADDING 0x20
#define SECONDS_1900_TO_1970 UINT64_C(2208988800)
#define NS_PER_SECOND UINT64_C(1000000000)
/* A packet is no longer on its way for more than a minute: the reporter is wrong. */
#define ROUND_TRIP_MAX (INT64_C(60) << 16)
#define LOST_MAX 0x7fffff

/* The header of a packet of `len` bytes at `at`. */
static void put_header(uint8_t *at, unsigned count, enum rtcp_type type, size_t len)
{
	at[0] = (uint8_t)(RTP_VERSION << 6 | count);
	at[1] = (uint8_t)type;
	rtp_put16(at + 2, (uint32_t)(len / 4 - 1));
}

static void put_report(uint8_t *at, const struct rtcp_report *r)
{
	int32_t lost = r->lost > LOST_MAX ? LOST_MAX :
		       r->lost < -LOST_MAX - 1 ? -LOST_MAX - 1 : r->lost;

	rtp_put32(at, r->ssrc);
	rtp_put32(at + 4, (uint32_t)r->fraction << 24 | ((uint32_t)lost & 0xffffff));
	rtp_put32(at + 8, r->highest);
	rtp_put32(at + 12, r->jitter);
	rtp_put32(at + 16, r->lsr);
	rtp_put32(at + 20, r->dlsr);
}

static size_t put_reports(uint8_t *out, const struct rtcp_compound *c)
{
	size_t len = HEADER + 4;

	rtp_put32(out + HEADER, c->ssrc);
	if (c->sender) {
		uint8_t *at = out + len;

		rtp_put32(at, (uint32_t)(c->sender->ntp >> 32));
		rtp_put32(at + 4, (uint32_t)c->sender->ntp);
		rtp_put32(at + 8, c->sender->timestamp);
		rtp_put32(at + 12, c->sender->packets);
		rtp_put32(at + 16, c->sender->octets);
		len += SENDER_SIZE;
	}
	for (unsigned i = 0; i < c->report_count; i++, len += RTCP_REPORT_SIZE)
		put_report(out + len, &c->reports[i]);
	put_header(out, c->report_count, c->sender ? RTCP_SR : RTCP_RR, len);
	return len;
}

static size_t put_cname(uint8_t *out, uint32_t ssrc, const char *cname)
{
	size_t name = strnlen(cname, RTCP_CNAME_MAX);
	size_t used = HEADER + 4 + 2 + name;
	size_t len = (used + 4) & ~(size_t)3; /* one to four zeros end the list */

	memset(out + used, 0, len - used);
	put_header(out, 1, RTCP_SDES, len);
	rtp_put32(out + HEADER, ssrc);
	out[HEADER + 4] = SDES_CNAME;
	out[HEADER + 5] = (uint8_t)name;
	memcpy(out + HEADER + 6, cname, name);
	return len;
}

size_t rtcp_encode(uint8_t out[RTCP_COMPOUND_MAX], const struct rtcp_compound *c)
{
	size_t len = put_reports(out, c);

	len += put_cname(out + len, c->ssrc, c->cname);
	if (c->bye) {
		put_header(out + len, 1, RTCP_BYE, HEADER + 4);
		rtp_put32(out + len + HEADER, c->ssrc);
		len += HEADER + 4;
	}
	return len;
}

static int fail(const char **why, const char *text)
{
	*why = text;
	return -EBADMSG;
}

int rtcp_check(const uint8_t *data, size_t len, const char **why)
{
	size_t at = 0, size;

	if (len < HEADER + 4 || len % 4)
		return fail(why, "its length is not that of an RTCP packet");
	if (data[0] >> 6 != RTP_VERSION || data[0] & PADDING ||
	    (data[1] != RTCP_SR && data[1] != RTCP_RR))
		return fail(why, "it does not begin with a report");
	for (; at < len; at += size) {
		if (len - at < HEADER || data[at] >> 6 != RTP_VERSION)
			return fail(why, "a packet in it is not of RTP version 2");
		size = 4 * ((size_t)rtp_get16(data + at + 2) + 1);
		if (size > len - at)
			return fail(why, "a packet in it is longer than the rest");
		if (data[at] & PADDING && size < len - at)
			return fail(why, "a packet that is not the last one has padding");
	}
	return 0;
}

/* The bytes of the packet without its padding; 0: the padding cannot be right. */
static size_t without_padding(const uint8_t *at, size_t size)
{
	size_t padding = at[0] & PADDING ? at[size - 1] : 0;

	if (at[0] & PADDING && (!padding || padding % 4 || padding > size - HEADER))
		return 0;
	return size - padding;
}

bool rtcp_next(const uint8_t *data, size_t len, size_t *at, struct rtcp_part *part)
{
	const uint8_t *p = data + *at;
	size_t size, head = HEADER, each = 4;

	if (len - *at < HEADER)
		return false;
	size = 4 * ((size_t)rtp_get16(p + 2) + 1);
	if (size > len - *at)
		return false;
	*part = (struct rtcp_part){ .type = p[1], .count = p[0] & 0x1f };
	*at += size;
	if (part->type != RTCP_SR && part->type != RTCP_RR && part->type != RTCP_BYE) {
		part->count = 0;
		return true;
	}
	if (part->type != RTCP_BYE) {
		head += 4 + (part->type == RTCP_SR ? SENDER_SIZE : 0);
		each = RTCP_REPORT_SIZE;
	}
	if (without_padding(p, size) < head + part->count * each)
		return false;
	part->body = p + head;
	part->body_len = part->count * each;
	if (part->type != RTCP_BYE)
		part->ssrc = rtp_get32(p + HEADER);
	if (part->type == RTCP_SR)
		part->sender = (struct rtcp_sender){
			.ntp = (uint64_t)rtp_get32(p + 8) << 32 | rtp_get32(p + 12),
			.timestamp = rtp_get32(p + 16),
			.packets = rtp_get32(p + 20),
			.octets = rtp_get32(p + 24),
		};
	return true;
}

struct rtcp_report rtcp_part_report(const struct rtcp_part *part, unsigned i)
{
	const uint8_t *at = part->body + (size_t)i * RTCP_REPORT_SIZE;
	uint32_t lost = rtp_get32(at + 4) & 0xffffff;

	return (struct rtcp_report){
		.ssrc = rtp_get32(at),
		.fraction = at[4],
		.lost = (int32_t)(lost ^ 0x800000) - 0x800000,
		.highest = rtp_get32(at + 8),
		.jitter = rtp_get32(at + 12),
		.lsr = rtp_get32(at + 16),
		.dlsr = rtp_get32(at + 20),
	};
}

uint32_t rtcp_part_bye(const struct rtcp_part *part, unsigned i)
{
	return rtp_get32(part->body + 4 * (size_t)i);
}

uint64_t rtcp_ntp_from_ns(uint64_t ns)
{
	uint64_t seconds = ns / NS_PER_SECOND + SECONDS_1900_TO_1970;

	return seconds << 32 | ((ns % NS_PER_SECOND) << 32) / NS_PER_SECOND;
}

int64_t rtcp_round_trip(const struct rtcp_report *r, uint32_t now)
{
	uint32_t since = now - r->lsr;

	if (!r->lsr || since - r->dlsr > ROUND_TRIP_MAX)
		return -1;
	return since - r->dlsr;
}
