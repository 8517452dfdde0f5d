/* SPDX-License-Identifier: BSD-2-Clause */
/* RTP headers and RTCP compound packets as bytes. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/node/rtp/rtcp_packet.h"
#include "gateway/node/rtp/rtp_packet.h"

static void writes_the_header_of_section_5_1(void **state)
{
	const struct rtp_header h = { .marker = true, .payload_type = 21, .sequence = 0x1234,
				      .timestamp = 0x89abcdef, .ssrc = 0xdeadbeef };
	const uint8_t wanted[] = { 0x80, 0x95, 0x12, 0x34, 0x89, 0xab, 0xcd, 0xef,
				   0xde, 0xad, 0xbe, 0xef };
	uint8_t out[RTP_HEADER_SIZE];
	struct rtp_payload payload;
	struct rtp_header again;
	const char *why;

	rtp_header_encode(out, &h);
	assert_memory_equal(out, wanted, sizeof(wanted));
	assert_int_equal(rtp_header_decode(out, sizeof(out), &again, &payload, &why), 0);
	assert_true(again.marker);
	assert_int_equal(again.payload_type, 21);
	assert_int_equal(again.sequence, 0x1234);
	assert_int_equal(again.timestamp, 0x89abcdef);
	assert_int_equal(again.ssrc, 0xdeadbeef);
	assert_int_equal(payload.at, 12);
	assert_int_equal(payload.len, 0);
}

static void skips_sources_and_extension_and_padding(void **state)
{
	/* Two contributing sources, an extension of one word, a payload of 3, padding of 5. */
	uint8_t p[12 + 8 + 8 + 3 + 5] = { 0xb2, 0x15 };
	struct rtp_payload payload;
	struct rtp_header h;
	const char *why;

	p[12 + 8 + 3] = 1;
	p[sizeof(p) - 1] = 5;
	assert_int_equal(rtp_header_decode(p, sizeof(p), &h, &payload, &why), 0);
	assert_int_equal(payload.at, 28);
	assert_int_equal(payload.len, 3);
}

static void refuses_what_is_no_packet(void **state)
{
	uint8_t p[20] = { 0x80 };
	struct rtp_payload payload;
	struct rtp_header h;
	const char *why;

	assert_int_equal(rtp_header_decode(p, 11, &h, &payload, &why), -EBADMSG);
	p[0] = 0x40;
	assert_int_equal(rtp_header_decode(p, sizeof(p), &h, &payload, &why), -EBADMSG);
	p[0] = 0x83; /* three sources do not fit */
	assert_int_equal(rtp_header_decode(p, sizeof(p), &h, &payload, &why), -EBADMSG);
	p[0] = 0x90;
	p[15] = 2;   /* nor does the extension */
	assert_int_equal(rtp_header_decode(p, sizeof(p), &h, &payload, &why), -EBADMSG);
	p[0] = 0xa0; /* padding of 0, and of more than there is */
	assert_int_equal(rtp_header_decode(p, sizeof(p), &h, &payload, &why), -EBADMSG);
	p[19] = 9;
	assert_int_equal(rtp_header_decode(p, sizeof(p), &h, &payload, &why), -EBADMSG);
	p[19] = 8;
	assert_int_equal(rtp_header_decode(p, sizeof(p), &h, &payload, &why), 0);
	assert_int_equal(payload.len, 0);
}

static const struct rtcp_report report = { .ssrc = 0x11223344, .fraction = 64, .lost = -2,
	.highest = 0x00012345, .jitter = 77, .lsr = 0xb7052000, .dlsr = 0x00054000 };
static const struct rtcp_sender sender = { .ntp = 0xb44db70520000000, .timestamp = 3,
	.packets = 4, .octets = 5 };

static void a_compound_packet_reads_back(void **state)
{
	const struct rtcp_compound c = { .ssrc = 0xcafe0001, .sender = &sender,
		.reports = &report, .report_count = 1, .cname = "a@b", .bye = true };
	uint8_t out[RTCP_COMPOUND_MAX];
	size_t len = rtcp_encode(out, &c), at = 0;
	struct rtcp_part part;
	struct rtcp_report r;
	const char *why;

	assert_int_equal(len, 28 + 24 + 16 + 8);
	assert_int_equal(rtcp_check(out, len, &why), 0);
	assert_true(rtcp_next(out, len, &at, &part));
	assert_int_equal(part.type, RTCP_SR);
	assert_int_equal(part.ssrc, 0xcafe0001);
	assert_int_equal(part.count, 1);
	assert_true(part.sender.ntp == sender.ntp);
	assert_int_equal(part.sender.octets, 5);
	r = rtcp_part_report(&part, 0);
	assert_int_equal(r.ssrc, report.ssrc);
	assert_int_equal(r.fraction, 64);
	assert_int_equal(r.lost, -2);
	assert_int_equal(r.highest, 0x00012345);
	assert_int_equal(r.jitter, 77);
	assert_int_equal(r.lsr, report.lsr);
	assert_int_equal(r.dlsr, report.dlsr);
	assert_true(rtcp_next(out, len, &at, &part));
	assert_int_equal(part.type, RTCP_SDES);
	assert_memory_equal(out + 52, "\x81\xca\x00\x03\xca\xfe\x00\x01\x01\x03" "a@b\0\0\0", 16);
	assert_true(rtcp_next(out, len, &at, &part));
	assert_int_equal(part.type, RTCP_BYE);
	assert_int_equal(rtcp_part_bye(&part, 0), 0xcafe0001);
	assert_false(rtcp_next(out, len, &at, &part));
	assert_int_equal(at, len);
}

static void the_largest_one_fits(void **state)
{
	struct rtcp_report reports[RTCP_REPORTS_MAX] = { { 0 } };
	char cname[RTCP_CNAME_MAX + 1];
	struct rtcp_compound c = { .sender = &sender, .reports = reports,
		.report_count = RTCP_REPORTS_MAX, .cname = cname, .bye = true };
	uint8_t out[RTCP_COMPOUND_MAX];
	const char *why;

	memset(cname, 'x', RTCP_CNAME_MAX);
	for (unsigned n = 0; n <= RTCP_CNAME_MAX; n++) {
		size_t len;

		cname[n] = '\0';
		len = rtcp_encode(out, &c);
		assert_in_range(len, 1, RTCP_COMPOUND_MAX);
		assert_int_equal(rtcp_check(out, len, &why), 0);
		cname[n] = 'x';
	}
}

/* The tests of appendix A.2. */
static void refuses_what_is_no_compound_packet(void **state)
{
	const struct rtcp_compound c = { .reports = &report, .report_count = 1, .cname = "c" };
	uint8_t good[RTCP_COMPOUND_MAX], p[RTCP_COMPOUND_MAX];
	size_t len = rtcp_encode(good, &c);
	const char *why;

	assert_int_equal(rtcp_check(good, len, &why), 0);
	for (size_t cut = 0; cut < len; cut++)
		if (cut != 32) /* the report alone */
			assert_int_equal(rtcp_check(good, cut, &why), -EBADMSG);
	memcpy(p, good, len);
	p[0] = 0x41;
	assert_int_equal(rtcp_check(p, len, &why), -EBADMSG);
	p[0] = 0xa1; /* padding in the first one */
	assert_int_equal(rtcp_check(p, len, &why), -EBADMSG);
	memcpy(p, good, len);
	p[1] = RTCP_BYE;
	assert_int_equal(rtcp_check(p, len, &why), -EBADMSG);
	memcpy(p, good, len);
	p[3]++;
	assert_int_equal(rtcp_check(p, len, &why), -EBADMSG);
}

static void a_packet_shorter_than_its_reports_ends_the_walk(void **state)
{
	const struct rtcp_compound c = { .reports = &report, .report_count = 1, .cname = "c" };
	uint8_t p[RTCP_COMPOUND_MAX];
	size_t len = rtcp_encode(p, &c), at = 0;
	struct rtcp_part part;

	p[0]++;
	assert_false(rtcp_next(p, len, &at, &part));
}

/* The example of section 6.4.1, figure 2. */
static void the_round_trip_is_that_of_the_example(void **state)
{
	struct rtcp_report r = report;

	assert_int_equal(rtcp_round_trip(&r, 0xb7108000), 0x00062000); /* 6.125 s */
	r.lsr = 0;
	assert_int_equal(rtcp_round_trip(&r, 0xb7108000), -1);
	r = report;
	r.dlsr = 0x00700000; /* longer than since the report was sent */
	assert_int_equal(rtcp_round_trip(&r, 0xb7108000), -1);
}

static void ntp_times_begin_in_1900(void **state)
{
	assert_true(rtcp_ntp_from_ns(0) == UINT64_C(2208988800) << 32);
	assert_true(rtcp_ntp_from_ns(1500000000) ==
		    ((UINT64_C(2208988801) << 32) | 0x80000000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(writes_the_header_of_section_5_1),
		cmocka_unit_test(skips_sources_and_extension_and_padding),
		cmocka_unit_test(refuses_what_is_no_packet),
		cmocka_unit_test(a_compound_packet_reads_back),
		cmocka_unit_test(the_largest_one_fits),
		cmocka_unit_test(refuses_what_is_no_compound_packet),
		cmocka_unit_test(a_packet_shorter_than_its_reports_ends_the_walk),
		cmocka_unit_test(the_round_trip_is_that_of_the_example),
		cmocka_unit_test(ntp_times_begin_in_1900),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
