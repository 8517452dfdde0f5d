/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RTP and RTCP packets from outside: each is refused with a reason or taken apart within its
 * bounds, and a session that is given them keeps to its rules.
 *
 * usage: fuzz_rtp [RUNS [SEED]]
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/rtp/rtcp_packet.h"
#include "gateway/node/rtp/rtp_packet.h"
#include "gateway/node/rtp/rtp_session.h"

#define MUTATE_BYTES "\x00\x01\x80\x81\x90\xa0\xb0\xc8\xc9\xca\xcb\xcc\x15\x95\x7f\xff"
#include "drive.h"

static struct rtp_session session;
static struct rtp_reporter reporter;
static uint64_t now_ns = 1;

static void must(bool good)
{
	if (!good)
		abort();
}

static void read_rtp(const uint8_t *data, size_t size, const struct rtp_arrival *a)
{
	uint8_t again[RTP_HEADER_SIZE];
	struct rtp_payload payload;
	enum rtp_verdict v;
	struct rtp_header h;
	const char *why = NULL;
	unsigned peer = RTP_PEERS;
	bool fresh;
	int ret = rtp_header_decode(data, size, &h, &payload, &why);

	must(ret == 0 || (ret == -EBADMSG && why));
	if (ret)
		return;
	must(payload.at >= RTP_HEADER_SIZE && payload.at + payload.len <= size);
	rtp_header_encode(again, &h);
	must(!memcmp(again + 1, data + 1, RTP_HEADER_SIZE - 1));
	v = rtp_session_take(&session, &h, a, &peer, &fresh);
	must(v > RTP_DELIVER_LATE || peer < RTP_PEERS);
}

static void read_rtcp(const uint8_t *data, size_t size, const struct rtp_arrival *a)
{
	const char *why = NULL;
	struct rtcp_part part;
	size_t at = 0, before = 0;
	int ret = rtcp_check(data, size, &why);

	must(ret == 0 || (ret == -EBADMSG && why));
	if (ret)
		return;
	for (; rtcp_next(data, size, &at, &part); before = at) {
		must(at > before && at <= size && part.count <= 31);
		must(!part.count || (part.body >= data + before &&
				     part.body + part.body_len <= data + at));
		if (part.type == RTCP_SR)
			rtp_session_sender_report(&session, part.ssrc, &part.sender, a);
		for (unsigned i = 0; i < part.count; i++) {
			if (part.type == RTCP_BYE) {
				rtp_session_bye(&session, rtcp_part_bye(&part, i), a->from);
			} else {
				struct rtcp_report r = rtcp_part_report(&part, i);
				double loss = rtp_reporter_loss(&reporter, &r);

				must(r.lost >= -0x800000 && r.lost <= 0x7fffff);
				must(loss >= 0 && loss <= 1);
				must(rtcp_round_trip(&r, (uint32_t)a->now_ns) >= -1);
			}
		}
	}
}

/* What this node would report is a compound packet of its own. */
static void report(void)
{
	struct rtcp_report reports[RTP_PEERS];
	struct rtcp_compound c = { .reports = reports, .cname = "fuzz", .bye = true };
	uint8_t out[RTCP_COMPOUND_MAX];
	const char *why;
	size_t len;

	c.report_count = rtp_session_reports(&session, reports, now_ns);
	must(c.report_count <= RTP_PEERS);
	len = rtcp_encode(out, &c);
	must(len <= sizeof(out) && !rtcp_check(out, len, &why));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct socket_address from = { .in4 = { .sin_family = AF_INET }, .len = sizeof(from.in4) };
	struct rtp_arrival a = { .from = &from, .now_ns = now_ns,
				 .wall_ns = (int64_t)now_ns * 3 };

	if (!session.clock_rate)
		rtp_session_begin(&session, 90000);
	from.in4.sin_addr.s_addr = size ? data[size - 1] & 3 : 0;
	now_ns += UINT64_C(100000000);
	read_rtp(data, size, &a);
	read_rtcp(data, size, &a);
	report();
	return 0;
}

#ifndef FUZZER
#define SIZE_MAX_BYTES 256

static size_t make(uint8_t *bytes, size_t capacity)
{
	struct rtcp_report r[2] = { { .ssrc = (uint32_t)random_below(4),
				      .lost = (int32_t)random_below(100),
				      .highest = (uint32_t)random_below(70000) } };
	const struct rtcp_sender sender = { .ntp = random_below(UINT64_MAX) };
	const struct rtcp_compound c = { .ssrc = (uint32_t)random_below(4),
		.sender = random_below(2) ? &sender : NULL, .reports = r,
		.report_count = (unsigned)random_below(3), .cname = "a@b",
		.bye = !random_below(4) };
	const struct rtp_header h = { .payload_type = 21, .ssrc = (uint32_t)random_below(4),
		.sequence = (uint16_t)random_below(80), .timestamp = (uint32_t)random_below(9) };
	uint8_t compound[RTCP_COMPOUND_MAX];
	size_t size = RTP_HEADER_SIZE + random_below(20);

	memset(bytes, 7, size);
	if (random_below(2)) {
		rtp_header_encode(bytes, &h);
	} else {
		size = rtcp_encode(compound, &c);
		memcpy(bytes, compound, size);
	}
	return mutate_times(bytes, size, capacity, random_below(4));
}

int main(int argc, char **argv)
{
	return drive(argc, argv, 300000, SIZE_MAX_BYTES, make);
}
#endif
