/* SPDX-License-Identifier: BSD-2-Clause */
/* Files of events at packet numbers (event/rules.h), and which packets of a history they meet. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "engine/rc/rules.h"
#include "transport/packet/event/file.h"
#include "transport/packet/event/history.h"
#include "transport/packet/event/watch.h"
#include "util/container_of.h"

/* ---- files ---- */

static struct packet_event_rules rules;
static char error[240];

static int parse(const char *text)
{
	return packet_event_parse("f", text, strlen(text), &rules, error, sizeof(error));
}

static void each_part_of_a_line_is_read(void **state)
{
	const struct packet_event_rule *r = rules.rule;

	(void)state;
	assert_int_equal(parse("# nothing\n"
			       "\n"
			       "drop packet 3 of qp any out read-request\n"
			       "\tDelay packet 5 by 2ms of qp 0x12 in ack # late\r\n"
			       "mark packets 10-20 of qp nth 2 out each\n"
			       "corrupt packet 1 of qp 18 in write again 2\n"
			       "duplicate packets 7-4294967295 of qp any in cnp first"), 0);
	assert_int_equal(rules.count, 5);
	assert_true(r[0].action == PACKET_EVENT_DROP && r[0].line == 3 && r[0].from == 3 &&
		    r[0].to == 3 && r[0].whose == PACKET_EVENT_ANY_QP &&
		    r[0].direction == CARRIER_OUT && r[0].class == PACKET_EVENT_READ_REQUEST &&
		    r[0].which == PACKET_EVENT_FIRST);
	assert_true(r[1].action == PACKET_EVENT_DELAY && r[1].delay_ns == 2000000 &&
		    r[1].whose == PACKET_EVENT_QP && r[1].qp == 0x12 &&
		    r[1].direction == CARRIER_IN && r[1].class == PACKET_EVENT_ACK);
	assert_true(r[2].action == PACKET_EVENT_MARK && r[2].from == 10 && r[2].to == 20 &&
		    r[2].whose == PACKET_EVENT_NTH_QP && r[2].qp == 2 &&
		    r[2].class == PACKET_EVENT_ANY_CLASS && r[2].which == PACKET_EVENT_EACH);
	assert_true(r[3].action == PACKET_EVENT_CORRUPT && r[3].qp == 18 &&
		    r[3].which == PACKET_EVENT_AGAIN && r[3].again == 2);
	assert_true(r[4].action == PACKET_EVENT_DUPLICATE && r[4].to == UINT32_MAX &&
		    r[4].line == 7);
	assert_int_equal(parse(""), 0);
	assert_int_equal(rules.count, 0);
}

static void an_error_names_line_word_and_what_would_be_right(void **state)
{
	static const struct {
		const char *text, *error;
	} wrong[] = {
		{ "\n\nloose packet 1 of qp any out", "f:3: 'loose' is not usable, expected drop, delay" },
		{ "drop", "f:1: the line ends too early, expected packet N or packets N-M" },
		{ "drop packet 0 of qp any out", "f:1: '0' is not usable, expected a number of a packet" },
		{ "drop packet 1-2 of qp any out", "'1-2' is not usable, expected a number" },
		{ "drop packets 3-2 of qp any out", "'3-2' is not usable, expected numbers of packets" },
		{ "drop packets 3 of qp any out", "'3' is not usable, expected numbers of packets" },
		{ "drop packet 4294967296 of qp any out", "'4294967296' is not usable" },
		{ "drop packet 1 by 2ms of qp any out", "'by' is not usable, expected of qp" },
		{ "delay packet 1 of qp any out", "'of' is not usable, expected by TIME" },
		{ "delay packet 1 by 2 of qp any out", "'2' is not usable, expected a whole number" },
		{ "delay packet 1 by 0ms of qp any out", "'0ms' is not usable" },
		{ "delay packet 1 by 3601s of qp any out", "'3601s' is not usable" },
		{ "drop packet 1 of qp 0x1000000 out", "'0x1000000' is not usable, expected any" },
		{ "drop packet 1 of qp 0 out", "'0' is not usable, expected any, nth N" },
		{ "drop packet 1 of qp nth 0 out", "'0' is not usable, expected a number from 1" },
		{ "drop packet 1 of qp any up", "'up' is not usable, expected in or out" },
		{ "drop packet 1 of qp any out reed", "'reed' is not usable, expected send, write" },
		{ "drop packet 1 of qp any out send twice", "'twice' is not usable, expected first" },
		{ "drop packet 1 of qp any out again", "the line ends too early, expected a number from 1 to 250" },
		{ "drop packet 1 of qp any out again 251", "'251' is not usable" },
		{ "drop packet 1 of qp any out first each", "'each' is not usable, expected the end" },
		{ "drop packet \x01\xff of qp any out", "'\?\?' is not usable" },
	};

	(void)state;
	assert_int_equal(parse("drop packet 9 of qp any in"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		assert_int_equal(parse(wrong[i].text), -EINVAL);
		if (!strstr(error, wrong[i].error))
			fail_msg("'%s' instead of '%s'", error, wrong[i].error);
	}
	/* All of them have left the rules as they were. */
	assert_true(rules.count == 1 && rules.rule[0].from == 9);
}

static void a_file_has_256_events_at_most(void **state)
{
	static const char line[] = "drop packet 1 of qp any out\n";
	static char text[257 * sizeof(line)];

	(void)state;
	for (unsigned i = 0; i < 256; i++)
		strcat(text, line);
	assert_int_equal(parse(text), 0);
	assert_int_equal(rules.count, 256);
	strcat(text, line);
	assert_int_equal(parse(text), -EINVAL);
	assert_non_null(strstr(error, "f:257: more than 256 events"));
}

static void the_example_can_be_read(void **state)
{
	struct packet_event_rules *r = NULL;

	(void)state;
	if (packet_event_load(EXAMPLE, &r, error, sizeof(error)))
		fail_msg("%s", error);
	assert_int_equal(r->count, 8);
	free(r);
}

/* ---- histories ---- */

static struct packet_history *history(void)
{
	return calloc(1, sizeof(struct packet_history));
}

/* How often the packet was sent again; the owner numbers it. */
static unsigned times(struct packet_history *h, struct rc_packet p)
{
	struct packet_history_entry *e = packet_history_see(h, &p);

	e->number = h->count;
	return e->times;
}

static void a_psn_is_new_until_it_was_seen_and_again_a_round_later(void **state)
{
	struct packet_history *h = history();

	(void)state;
	for (uint32_t i = 0; i < 1u << 24; i++)
		if (times(h, (struct rc_packet){ .psn = i }))
			fail_msg("psn %u was not seen", i);
	assert_int_equal(times(h, (struct rc_packet){ .psn = 0xffffff }), 1);
	assert_int_equal(times(h, (struct rc_packet){ .psn = 0xffffff }), 2);
	for (uint32_t i = 0; i < 5000; i++)
		assert_int_equal(times(h, (struct rc_packet){ .psn = i }), 0);
	assert_int_equal(times(h, (struct rc_packet){ .psn = 4999 }), 1);
	free(h);
}

/* READs so long that their requests leave the place of another PSN alone. */
static void psns_that_come_back_are_new(void **state)
{
	struct packet_history *h = history();

	(void)state;
	assert_int_equal(times(h, (struct rc_packet){ .psn = 7 }), 0);
	assert_int_equal(times(h, (struct rc_packet){ .psn = 7 }), 1);
	for (uint32_t i = 0; i < 1u << 22; i++)
		times(h, (struct rc_packet){ .psn = 8 + i % 1000 * 4096 });
	assert_int_equal(times(h, (struct rc_packet){ .psn = 7 }), 0);
	free(h);
}

static void the_rest_of_a_read_is_the_read_again(void **state)
{
	struct packet_history *h = history();
	const struct rc_packet whole = { .op = RC_READ, .psn = 0xfffffe, .rkey = 5, .length = 5000,
					 .remote_addr = 0x1000 };
	struct rc_packet rest = { .op = RC_READ, .psn = 1, .rkey = 5, .length = 5000 - 3 * 1024,
				  .remote_addr = 0x1000 + 3 * 1024 };

	(void)state;
	assert_int_equal(times(h, whole), 0);
	assert_int_equal(times(h, rest), 1);
	assert_int_equal(times(h, rest), 2);
	rest.rkey = 6;
	assert_int_equal(times(h, rest), 0);
	assert_int_equal(times(h, whole), 3);
	free(h);
}

/* ---- events ---- */

static struct packet_events *watch(const char *text)
{
	struct packet_events *e = packet_events_open();

	assert_non_null(e);
	if (parse(text))
		fail_msg("%s", error);
	packet_events_set(e, &rules, 1000);
	return e;
}

static struct carrier_fault_verdict see(struct packet_events *e, enum carrier_direction direction,
					uint32_t qpn, struct rc_packet p)
{
	const struct packet_frame f = { .rc = p, .service = PACKET_RC };
	struct carrier_fault_verdict v = { 0 };

	packet_events_see(e, direction, qpn, &f, 2000, &v);
	return v;
}

static void all_events_of_a_packet_take_place(void **state)
{
	struct packet_events *e = watch("mark packets 1-3 of qp any out\n"
					"delay packet 2 by 5us of qp any out\n"
					"delay packet 2 by 1us of qp any out\n"
					"duplicate packet 2 of qp any out\n");
	struct carrier_fault_verdict v;
	char line[PACKET_EVENT_LINE_BYTES];

	(void)state;
	v = see(e, CARRIER_OUT, 9, (struct rc_packet){ .psn = 1 });
	assert_true(v.mark && !v.delay_ns && !v.duplicate && !v.drop && !v.corrupt);
	v = see(e, CARRIER_IN, 9, (struct rc_packet){ .psn = 2 });
	assert_true(!v.mark);
	v = see(e, CARRIER_OUT, 9, (struct rc_packet){ .psn = 2 });
	assert_true(v.mark && v.delay_ns == 6000 && v.duplicate && !v.drop);
	assert_int_equal(packet_events_tell(e, 4, line, sizeof(line)), 5);
	assert_string_equal(line, "line=4 action=duplicate qp=0x9 direction=out packet=2 psn=2 "
				  "opcode=send-middle again=0 at_us=1 reaction=none sent_again=0");
	/* A line that is too short is cut. */
	for (size_t n = 0; n < sizeof(line); n++) {
		memset(line, 'x', sizeof(line));
		packet_events_tell(e, 4, line, n);
		assert_true(!n || strlen(line) < n);
		assert_int_equal(line[n], 'x');
	}
	packet_events_close(e);
}

static void more_events_than_are_recorded_take_place(void **state)
{
	struct packet_events *e = watch("drop packets 1-1000000 of qp any out\n");

	(void)state;
	for (uint32_t i = 0; i < 1000; i++)
		assert_true(see(e, CARRIER_OUT, 9, (struct rc_packet){ .psn = i }).drop);
	assert_int_equal(packet_events_tell(e, 0, error, 0), PACKET_EVENT_RECORDS);
	packet_events_set(e, NULL, 0);
	assert_false(see(e, CARRIER_OUT, 9, (struct rc_packet){ .psn = 1000 }).drop);
	assert_int_equal(packet_events_tell(e, 0, error, 0), 0);
	packet_events_close(e);
}

static void more_queue_pairs_than_are_counted_have_no_events(void **state)
{
	struct packet_events *e = watch("drop packet 1 of qp any in\n");
	unsigned dropped = 0;

	(void)state;
	for (uint32_t i = 2; i < 5002; i++)
		dropped += see(e, CARRIER_IN, i, (struct rc_packet){ .op = RC_CNP }).drop;
	assert_int_equal(dropped, 4096);
	/* One that is connected anew gives its place back. */
	packet_events_connected(e, 2);
	assert_true(see(e, CARRIER_IN, 5001, (struct rc_packet){ .op = RC_CNP }).drop);
	packet_events_close(e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_part_of_a_line_is_read),
		cmocka_unit_test(an_error_names_line_word_and_what_would_be_right),
		cmocka_unit_test(a_file_has_256_events_at_most),
		cmocka_unit_test(the_example_can_be_read),
		cmocka_unit_test(a_psn_is_new_until_it_was_seen_and_again_a_round_later),
		cmocka_unit_test(psns_that_come_back_are_new),
		cmocka_unit_test(the_rest_of_a_read_is_the_read_again),
		cmocka_unit_test(all_events_of_a_packet_take_place),
		cmocka_unit_test(more_events_than_are_recorded_take_place),
		cmocka_unit_test(more_queue_pairs_than_are_counted_have_no_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
