/* SPDX-License-Identifier: BSD-2-Clause */
/* The sending rate, and the interval of reports (RFC 3550 section 6.2, appendix A.7). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "gateway/node/rtp/rtcp_interval.h"
#include "gateway/node/rtp/rtp_rate.h"

#define SECOND UINT64_C(1000000000)

static struct rtp_rate made(double init)
{
	struct rtp_rate r = { .a = 10, .b = 0.5, .kp = 1, .min = 1, .source = 2000 };

	rtp_rate_begin(&r, init);
	return r;
}

static void is(double a, double b)
{
	if (fabs(a - b) > 1e-6 * fabs(b) + 1e-9)
		fail_msg("%g is not %g", a, b);
}

static void rises_by_a_and_falls_by_b(void **state)
{
	struct rtp_rate r = made(1000);

	rtp_rate_report(&r, 0, 5);
	is(r.rate, 1010);
	rtp_rate_report(&r, 0.009, 5);
	is(r.rate, 1020);
	rtp_rate_report(&r, 0.01, 5);
	is(r.rate, 510);
	for (int i = 0; i < 100; i++)
		rtp_rate_report(&r, 1, 5);
	is(r.rate, 1);
	for (int i = 0; i < 1000; i++)
		rtp_rate_report(&r, 0, 5);
	is(r.rate, 2000);
}

static void the_controller_follows_slower(void **state)
{
	struct rtp_rate r = made(1000);

	r.kp = 0.5;
	rtp_rate_report(&r, 0.5, 5); /* asked for: 500 */
	is(r.rate, 750);
	r.ki = 0.01;
	r.integral = 0;
	rtp_rate_report(&r, 0, 2); /* 10 more: 0.5 * 10 + 0.01 * 10 * 2 */
	is(r.rate, 755.2);
	r.kd = 0.1;
	r.ki = 0;
	r.before = 10;
	rtp_rate_report(&r, 0.5, 1); /* 377.6 less: -188.8 and 0.1 * (-377.6 - 10) */
	is(r.rate, 755.2 - 188.8 - 38.76);
}

static unsigned admitted(struct rtp_gate *g, int how, uint64_t step, unsigned count,
			 uint64_t every_ns)
{
	unsigned n = 0;

	for (unsigned i = 0; i < count; i++)
		n += rtp_gate_admits(g, how, step, SECOND + i * every_ns);
	return n;
}

static void decimate_lets_one_of_n_go(void **state)
{
	struct rtp_rate r = made(500);
	struct rtp_gate g = { 0 };

	assert_int_equal(rtp_rate_step(&r, RTP_THROTTLE_DISABLED), 0);
	assert_int_equal(rtp_rate_step(&r, RTP_THROTTLE_DECIMATE), 4);
	r.rate = 499; /* never faster than the rate */
	assert_int_equal(rtp_rate_step(&r, RTP_THROTTLE_DECIMATE), 5);
	assert_int_equal(admitted(&g, RTP_THROTTLE_DECIMATE, 4, 400, 1), 100);
	assert_true(rtp_gate_admits(&g, RTP_THROTTLE_DECIMATE, 4, 0));
	assert_false(rtp_gate_admits(&g, RTP_THROTTLE_DECIMATE, 4, 0));
}

static void limit_rate_reaches_its_rate(void **state)
{
	struct rtp_rate r = made(300);
	struct rtp_gate g = { 0 };
	uint64_t step = rtp_rate_step(&r, RTP_THROTTLE_LIMIT_RATE);

	assert_int_equal(step, 3333333);
	/* A thousand a second for ten seconds: not a quarter of them, but 300 a second. */
	assert_in_range(admitted(&g, RTP_THROTTLE_LIMIT_RATE, step, 10000, SECOND / 1000), 2995,
			3005);
	/* After a long silence no burst. */
	assert_true(rtp_gate_admits(&g, RTP_THROTTLE_LIMIT_RATE, step, 100 * SECOND));
	assert_false(rtp_gate_admits(&g, RTP_THROTTLE_LIMIT_RATE, step, 100 * SECOND + 1));
}

static void all_go_at_the_rate_of_the_source(void **state)
{
	struct rtp_rate r = made(2000);
	struct rtp_gate g = { 0 };

	assert_int_equal(rtp_rate_step(&r, RTP_THROTTLE_LIMIT_RATE), 0);
	assert_int_equal(admitted(&g, RTP_THROTTLE_LIMIT_RATE, 0, 1000, 0), 1000);
}

static void reports_are_not_sent_more_often_than_allowed(void **state)
{
	struct rtcp_interval i = { .min_s = 5, .bandwidth = 2000, .average_size = 128,
				   .members = 2, .senders = 1, .we_sent = true,
				   .initial = true };

	is(rtcp_interval_mean(&i), 2.5);
	i.initial = false;
	is(rtcp_interval_mean(&i), 5);
	is(rtcp_interval_next(&i, 0), 5 * 0.5 / 1.2182818);
	is(rtcp_interval_next(&i, 1), 5 * 1.5 / 1.2182818);
}

/* A quarter of the bandwidth is the senders', if they are less than a quarter. */
static void large_sessions_report_seldom(void **state)
{
	struct rtcp_interval i = { .min_s = 5, .bandwidth = 2000, .average_size = 100,
				   .members = 1001, .senders = 1 };

	is(rtcp_interval_mean(&i), 1000 * 100 / 1500.0);
	i.we_sent = true;
	is(rtcp_interval_mean(&i), 5);
	i.senders = 600;
	is(rtcp_interval_mean(&i), 1001 * 100 / 2000.0);
	rtcp_interval_size(&i, 260);
	is(i.average_size, 110);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rises_by_a_and_falls_by_b),
		cmocka_unit_test(the_controller_follows_slower),
		cmocka_unit_test(decimate_lets_one_of_n_go),
		cmocka_unit_test(limit_rate_reaches_its_rate),
		cmocka_unit_test(all_go_at_the_rate_of_the_source),
		cmocka_unit_test(reports_are_not_sent_more_often_than_allowed),
		cmocka_unit_test(large_sessions_report_seldom),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
