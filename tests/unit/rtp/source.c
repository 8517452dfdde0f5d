/* SPDX-License-Identifier: BSD-2-Clause */
/* Sequence numbers, losses and jitter of a source: RFC 3550 appendices A.1, A.3 and A.8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/node/rtp/rtp_source.h"

static struct rtp_source s;

static void begin(uint16_t sequence)
{
	rtp_source_begin(&s, sequence);
	assert_int_equal(rtp_source_take(&s, sequence), RTP_PROBATION);
	assert_int_equal(rtp_source_take(&s, (uint16_t)(sequence + 1)), RTP_IN_ORDER);
	assert_true(rtp_source_is_valid(&s));
}

static struct rtcp_report made(void)
{
	struct rtcp_report r = { 0 };

	rtp_source_report(&s, &r);
	return r;
}

static void is_valid_after_two_in_sequence(void **state)
{
	rtp_source_begin(&s, 7);
	assert_int_equal(rtp_source_take(&s, 7), RTP_PROBATION);
	assert_int_equal(rtp_source_take(&s, 9), RTP_PROBATION);
	assert_int_equal(rtp_source_take(&s, 20), RTP_PROBATION);
	assert_int_equal(rtp_source_take(&s, 21), RTP_IN_ORDER);
	assert_true(rtp_source_is_valid(&s));
	assert_int_equal(rtp_source_lost(&s), 0);
}

static void counts_what_is_missing(void **state)
{
	struct rtcp_report r;

	begin(100);
	for (uint16_t n = 102; n < 200; n++)
		if (n % 4)
			assert_int_equal(rtp_source_take(&s, n), RTP_IN_ORDER);
	r = made();
	assert_int_equal(r.highest, 199);
	/* 104, 108 ... 196; from 101 on 99 were expected. */
	assert_int_equal(r.lost, 24);
	assert_int_equal(r.fraction, 24 * 256 / 99);
	/* Nothing is lost afterwards: the fraction is that of the interval. */
	for (uint16_t n = 200; n < 300; n++)
		rtp_source_take(&s, n);
	r = made();
	assert_int_equal(r.lost, 24);
	assert_int_equal(r.fraction, 0);
	r = made(); /* an interval without packets */
	assert_int_equal(r.fraction, 0);
}

static void wraps_around(void **state)
{
	struct rtcp_report r;

	begin(65533);
	assert_int_equal(rtp_source_take(&s, 65535), RTP_IN_ORDER);
	assert_int_equal(rtp_source_take(&s, 0), RTP_IN_ORDER);
	assert_int_equal(rtp_source_take(&s, 2), RTP_IN_ORDER); /* 1 is missing */
	assert_int_equal(rtp_source_take(&s, 65535), RTP_REPEATED);
	assert_int_equal(rtp_source_take(&s, 1), RTP_LATE);
	r = made();
	assert_int_equal(r.highest, 65536 + 2);
	/* A repeated packet counts as received, as appendix A.3 says. */
	assert_int_equal(r.lost, -1);
	for (uint32_t n = 3; n < 3 * 65536u; n++)
		assert_int_equal(rtp_source_take(&s, (uint16_t)n), RTP_IN_ORDER);
	assert_int_equal(made().highest, 4 * 65536u - 1);
	assert_int_equal(rtp_source_lost(&s), -1);
}

static void tells_late_from_repeated(void **state)
{
	begin(1000);
	assert_int_equal(rtp_source_take(&s, 1100), RTP_IN_ORDER);
	assert_int_equal(rtp_source_take(&s, 1100), RTP_REPEATED);
	for (uint16_t n = 1099; n > 1001; n--)
		assert_int_equal(rtp_source_take(&s, n), RTP_LATE);
	for (uint16_t n = 1001; n < 1101; n++)
		assert_int_equal(rtp_source_take(&s, n), RTP_REPEATED);
	/* A step back of more than 100 is another numbering, as is one forward of 3000. */
	assert_int_equal(rtp_source_take(&s, 999), RTP_STRAY);
	assert_int_equal(rtp_source_take(&s, 1100 + 3000), RTP_STRAY);
	assert_int_equal(rtp_source_take(&s, 1100 + 2999), RTP_IN_ORDER);
}

static void a_restart_needs_two_in_sequence(void **state)
{
	struct rtcp_report r;

	begin(100);
	assert_int_equal(rtp_source_take(&s, 40000), RTP_STRAY);
	assert_int_equal(rtp_source_take(&s, 102), RTP_IN_ORDER);
	assert_int_equal(rtp_source_take(&s, 40007), RTP_STRAY);
	assert_int_equal(rtp_source_take(&s, 40008), RTP_RESTARTED);
	assert_int_equal(rtp_source_take(&s, 40009), RTP_IN_ORDER);
	r = made();
	assert_int_equal(r.lost, 0);
	assert_int_equal(r.highest, 40009);
}

/* J += (|D| - J) / 16, in the integers of appendix A.8. */
static void jitter_is_that_of_appendix_a_8(void **state)
{
	double j = 0;
	uint32_t arrival = 0xfffff000, last = 0; /* wraps around */

	begin(0);
	for (unsigned n = 0; n < 500; n++) {
		uint32_t delay = (n * 7919) % 160;
		uint32_t d = delay > last ? delay - last : last - delay;

		rtp_source_time(&s, arrival, arrival + 12345 + delay);
		if (n)
			j += (d - j) / 16;
		last = delay;
		arrival += 90;
	}
	assert_in_range((uint32_t)abs((int)made().jitter - (int)j), 0, 1);
	assert_true(made().jitter > 10);
}

static void no_jitter_without_delay(void **state)
{
	begin(0);
	for (uint32_t n = 0; n < 100; n++)
		rtp_source_time(&s, n * 90 + 5, n * 90);
	assert_int_equal(made().jitter, 0);
}

static void a_reporter_is_compared_with_itself(void **state)
{
	struct rtp_reporter p = { 0 };
	struct rtcp_report r = { .fraction = 128, .lost = 50, .highest = 100 };

	assert_true(rtp_reporter_loss(&p, &r) == 0.5);
	r = (struct rtcp_report){ .fraction = 0, .lost = 75, .highest = 200 };
	assert_true(rtp_reporter_loss(&p, &r) == 0.25);
	r = (struct rtcp_report){ .lost = 75, .highest = 200 }; /* nothing has come since */
	assert_true(rtp_reporter_loss(&p, &r) == 0);
	r = (struct rtcp_report){ .fraction = 64, .lost = 0, .highest = 10 }; /* restarted */
	assert_true(rtp_reporter_loss(&p, &r) == 0.25);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_valid_after_two_in_sequence),
		cmocka_unit_test(counts_what_is_missing),
		cmocka_unit_test(wraps_around),
		cmocka_unit_test(tells_late_from_repeated),
		cmocka_unit_test(a_restart_needs_two_in_sequence),
		cmocka_unit_test(jitter_is_that_of_appendix_a_8),
		cmocka_unit_test(no_jitter_without_delay),
		cmocka_unit_test(a_reporter_is_compared_with_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
