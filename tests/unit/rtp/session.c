/* SPDX-License-Identifier: BSD-2-Clause */
/* The state of an RTP session: own numbers, sources, collisions, forged packets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/node/rtp/rtp_session.h"

#define SECOND UINT64_C(1000000000)

static struct rtp_session s;
static unsigned peer;
static bool fresh;

static struct socket_address at(const char *text)
{
	struct socket_address a;
	char why[SOCKET_WHY_MAX];

	assert_int_equal(socket_address_resolve(LAYER_UDP, text, AF_UNSPEC, &a, why), 0);
	return a;
}

static enum rtp_verdict take(uint32_t ssrc, uint16_t sequence, const char *from, uint64_t now_ns)
{
	const struct rtp_header h = { .ssrc = ssrc, .sequence = sequence };
	struct socket_address a = at(from);

	return rtp_session_take(&s, &h, &(struct rtp_arrival){ .from = &a, .now_ns = now_ns },
				&peer, &fresh);
}

static int begin(void **state)
{
	rtp_session_begin(&s, 90000);
	s.local = at("10.0.0.1:5004");
	s.remote = at("10.0.0.2:5004");
	/* No source of the tests is the node itself. */
	s.own.ssrc |= 0x80000000;
	return 0;
}

static void numbers_follow_each_other(void **state)
{
	struct rtp_header a, b;

	s.own.sequence = 65535;
	rtp_session_number(&s, &a, (int64_t)(1700000000 * SECOND));
	rtp_session_number(&s, &b, (int64_t)(1700000000 * SECOND + SECOND / 1000));
	assert_int_equal(a.sequence, 65535);
	assert_int_equal(b.sequence, 0);
	assert_int_equal(b.timestamp - a.timestamp, 90);
	assert_int_equal(a.ssrc, s.own.ssrc);
}

static void sessions_differ(void **state)
{
	struct rtp_own was = s.own;

	rtp_session_begin(&s, 90000);
	assert_true(s.own.ssrc != was.ssrc || s.own.timestamp_base != was.timestamp_base);
}

static void an_ssrc_keeps_its_address(void **state)
{
	assert_int_equal(take(1, 10, "10.0.0.2:5004", SECOND), RTP_DELIVER);
	assert_true(fresh);
	assert_int_equal(take(1, 11, "10.0.0.2:5004", SECOND), RTP_DELIVER);
	assert_false(fresh);
	assert_int_equal(take(1, 12, "10.0.0.3:5004", SECOND), RTP_DROP_FOREIGN);
	assert_int_equal(take(1, 12, "10.0.0.2:5006", SECOND), RTP_DROP_FOREIGN);
	assert_int_equal(take(1, 12, "10.0.0.2:5004", SECOND), RTP_DELIVER);
	/* After a time of silence it may have moved. */
	assert_int_equal(take(1, 13, "10.0.0.2:5006", 4 * SECOND), RTP_DELIVER);
	assert_int_equal(take(1, 13, "10.0.0.2:5006", 4 * SECOND), RTP_DROP_REPEATED);
}

static void a_collision_changes_the_ssrc_once(void **state)
{
	uint32_t was = s.own.ssrc, then;

	assert_int_equal(take(was, 1, "10.0.0.1:5004", SECOND), RTP_DROP_LOOPED);
	assert_int_equal(take(was, 1, "10.0.0.1:5005", SECOND), RTP_DROP_LOOPED);
	assert_int_equal(s.own.ssrc, was);
	assert_int_equal(take(was, 1, "10.0.0.9:5004", SECOND), RTP_DROP_COLLIDED);
	then = s.own.ssrc;
	assert_true(then != was);
	assert_true(s.bye_due);
	assert_int_equal(s.left_ssrc, was);
	/* The other one goes on as a source of its own. */
	assert_int_equal(take(was, 2, "10.0.0.9:5004", SECOND), RTP_DELIVER);
	/* One that takes each new SSRC is a loop, and others cannot change it at once. */
	assert_int_equal(take(then, 2, "10.0.0.9:5004", 20 * SECOND), RTP_DROP_LOOPED);
	assert_int_equal(take(then, 2, "10.0.0.8:5004", 2 * SECOND), RTP_DROP_LOOPED);
	assert_int_equal(s.own.ssrc, then);
	assert_int_equal(take(then, 2, "10.0.0.8:5004", 20 * SECOND), RTP_DROP_COLLIDED);
}

static void a_node_that_sends_to_itself_hears_itself(void **state)
{
	s.to_itself = true;
	assert_int_equal(take(s.own.ssrc, 1, "10.0.0.1:5004", SECOND), RTP_DELIVER);
	assert_int_equal(take(s.own.ssrc, 2, "10.0.0.1:5004", SECOND), RTP_DELIVER);
	assert_int_equal(rtp_session_senders(&s, 0), 1);
	assert_false(s.bye_due);
}

static void a_bye_of_another_host_ends_nothing(void **state)
{
	struct socket_address from = at("10.0.0.3:5005"), own = at("10.0.0.2:5005");

	take(1, 10, "10.0.0.2:5004", SECOND);
	take(1, 11, "10.0.0.2:5004", SECOND);
	assert_false(rtp_session_bye(&s, 1, &from));
	assert_false(rtp_session_bye(&s, 2, &own));
	assert_int_equal(rtp_session_senders(&s, 0), 1);
	assert_true(rtp_session_bye(&s, 1, &own));
	assert_int_equal(rtp_session_senders(&s, 0), 0);
}

static void a_flood_of_sources_does_not_push_out_the_peer(void **state)
{
	take(1, 10, "10.0.0.2:5004", SECOND);
	take(1, 11, "10.0.0.2:5004", SECOND);
	for (uint32_t i = 0; i < 1000; i++)
		take(1000 + i, (uint16_t)i, "10.0.0.9:1", 2 * SECOND + i);
	take(1, 12, "10.0.0.2:5004", 3 * SECOND);
	assert_false(fresh);
	assert_int_equal(rtp_session_senders(&s, 0), 1);
}

static void reports_tell_of_valid_sources_once(void **state)
{
	struct socket_address from = at("10.0.0.2:5005");
	const struct rtcp_sender sr = { .ntp = 0x1122334455667788 };
	const struct rtp_arrival a = { .from = &from, .now_ns = 2 * SECOND };
	struct rtcp_report out[RTP_PEERS];

	take(1, 10, "10.0.0.2:5004", SECOND);
	assert_int_equal(rtp_session_reports(&s, out, SECOND), 0);
	take(1, 11, "10.0.0.2:5004", SECOND);
	take(1, 14, "10.0.0.2:5004", SECOND);
	rtp_session_sender_report(&s, 1, &sr, &a);
	assert_int_equal(rtp_session_reports(&s, out, 2 * SECOND + SECOND / 2), 1);
	assert_int_equal(out[0].lost, 2);
	assert_int_equal(out[0].lsr, 0x33445566);
	assert_int_equal(out[0].dlsr, 0x8000);
	assert_int_equal(rtp_session_reports(&s, out, 3 * SECOND), 0);
	assert_int_equal(s.lost, 2);
	/* A late one is not lost any more. */
	assert_int_equal(take(1, 13, "10.0.0.2:5004", SECOND), RTP_DELIVER_LATE);
	assert_int_equal(s.lost, 1);
}

static void sender_reports_end_with_the_data(void **state)
{
	struct rtcp_sender sr;
	struct rtp_header h = { 0 };

	assert_false(rtp_session_sender(&s, &sr, SECOND));
	rtp_session_number(&s, &h, 0);
	rtp_session_sent(&s, &h, 1, 100, 10 * SECOND);
	assert_true(rtp_session_sender(&s, &sr, 12 * SECOND));
	assert_int_equal(sr.packets, 1);
	assert_int_equal(sr.octets, 100);
	/* Of the instant of the report: two seconds after that of the packet. */
	assert_int_equal(sr.timestamp - h.timestamp, 180000);
	assert_true(rtp_session_sender(&s, &sr, 12 * SECOND));
	assert_false(rtp_session_sender(&s, &sr, 12 * SECOND));
}

static void a_report_of_what_was_not_sent_is_known(void **state)
{
	struct rtp_header h = { 0 };

	for (int i = 0; i < 10; i++) {
		rtp_session_number(&s, &h, 0);
		rtp_session_sent(&s, &h, 1, 1, SECOND);
	}
	assert_true(rtp_session_has_sent(&s, h.sequence));
	assert_true(rtp_session_has_sent(&s, 0x70000 + (uint16_t)(h.sequence - 9)));
	assert_false(rtp_session_has_sent(&s, (uint16_t)(h.sequence - 10)));
	assert_false(rtp_session_has_sent(&s, (uint16_t)(h.sequence + 1)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(numbers_follow_each_other, begin),
		cmocka_unit_test_setup(sessions_differ, begin),
		cmocka_unit_test_setup(an_ssrc_keeps_its_address, begin),
		cmocka_unit_test_setup(a_collision_changes_the_ssrc_once, begin),
		cmocka_unit_test_setup(a_node_that_sends_to_itself_hears_itself, begin),
		cmocka_unit_test_setup(a_bye_of_another_host_ends_nothing, begin),
		cmocka_unit_test_setup(a_flood_of_sources_does_not_push_out_the_peer, begin),
		cmocka_unit_test_setup(reports_tell_of_valid_sources_once, begin),
		cmocka_unit_test_setup(sender_reports_end_with_the_data, begin),
		cmocka_unit_test_setup(a_report_of_what_was_not_sent_is_known, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
