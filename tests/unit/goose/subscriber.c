/* SPDX-License-Identifier: BSD-2-Clause */
/* What a subscriber of GOOSE makes of the numbers of messages. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/node/iec61850-8-1/subscriber.h"

#define MS UINT64_C(1000000)
#define LIVE_MS 100

static struct goose_subscriber s;
static struct goose_arrival a;
static uint64_t now;

static void begin(void)
{
	s = (struct goose_subscriber){ 0 };
	now = 1000 * MS;
}

/* A millisecond behind the one before. */
static enum goose_verdict take_message(struct goose message)
{
	now += MS;
	message.allowed_live_ms = LIVE_MS;
	a = goose_subscriber_take(&s, &message, false, now);
	return a.verdict;
}

static enum goose_verdict take(uint32_t state, uint32_t sequence)
{
	return take_message((struct goose){ .state = state, .sequence = sequence, .revision = 1 });
}

static void the_first_message_is_a_change_whatever_its_numbers(void **state)
{
	begin();
	assert_int_equal(take(70, 8), GOOSE_CHANGE);
	assert_true(!a.lost_changes && !a.lost_messages && !a.restarted && !a.resumed && !a.revised);
}

static void repetitions_and_changes_in_order_lose_nothing(void **state)
{
	begin();
	for (uint32_t i = 1; i < 5; i++) {
		assert_int_equal(take(i, 0), GOOSE_CHANGE);
		assert_int_equal(a.lost_changes + a.lost_messages, 0);
		for (uint32_t k = 1; k < 4; k++) {
			assert_int_equal(take(i, k), GOOSE_REPETITION);
			assert_int_equal(a.lost_messages, 0);
		}
	}
}

static void a_lost_repetition_is_counted(void **state)
{
	begin();
	take(1, 0);
	assert_int_equal(take(1, 4), GOOSE_REPETITION);
	assert_int_equal(a.lost_messages, 3);
}

static void a_message_that_comes_twice_is_used_once(void **state)
{
	begin();
	take(1, 0);
	assert_int_equal(take(1, 0), GOOSE_DUPLICATE);
	assert_int_equal(take(2, 0), GOOSE_CHANGE);
	assert_int_equal(take(2, 0), GOOSE_DUPLICATE);
}

static void an_overtaken_message_is_not_used(void **state)
{
	begin();
	take(1, 0);
	take(1, 2);
	assert_int_equal(take(1, 1), GOOSE_OLD);
	assert_int_equal(take(2, 0), GOOSE_CHANGE);
	assert_int_equal(take(1, 3), GOOSE_OLD);
	assert_int_equal(take(2, 1), GOOSE_REPETITION);
}

static void a_change_whose_first_message_was_lost_is_seen(void **state)
{
	begin();
	take(1, 0);
	assert_int_equal(take(2, 1), GOOSE_CHANGE);
	assert_int_equal(a.lost_changes, 0);
	assert_int_equal(a.lost_messages, 1);
}

static void lost_changes_are_counted(void **state)
{
	begin();
	take(3, 0);
	assert_int_equal(take(7, 2), GOOSE_CHANGE);
	assert_int_equal(a.lost_changes, 3);
	assert_int_equal(a.lost_messages, 5);
}

static void a_publisher_that_began_again_is_heard_when_the_time_has_ended(void **state)
{
	begin();
	take(9, 4);
	now = s.until_ns - 2 * MS;
	assert_false(goose_subscriber_expire(&s, now));
	assert_int_equal(take(1, 0), GOOSE_OLD);
	/* What is not used makes nothing valid for longer. */
	now = s.until_ns - 1;
	assert_false(goose_subscriber_expire(&s, now));
	now++;
	assert_true(goose_subscriber_expire(&s, now));
	assert_false(goose_subscriber_expire(&s, now));
	assert_int_equal(take(1, 3), GOOSE_CHANGE);
	assert_true(a.restarted && a.resumed);
	assert_int_equal(a.lost_changes, 0);
	/* The same with sqNum alone. */
	now = s.until_ns;
	assert_true(goose_subscriber_expire(&s, now));
	assert_int_equal(take(1, 2), GOOSE_CHANGE);
	assert_true(a.restarted);
}

static void a_message_is_not_believed_to_be_the_last_for_weeks(void **state)
{
	begin();
	assert_int_equal(take(5, 0), GOOSE_CHANGE);
	a = goose_subscriber_take(&s, &(struct goose){ .state = UINT32_MAX - 20000, .revision = 1,
						       .allowed_live_ms = UINT32_MAX }, false, now);
	assert_int_equal(a.verdict, GOOSE_CHANGE);
	for (unsigned i = 0; i < 9999; i++)
		assert_int_equal(take(6, i), GOOSE_OLD);
	assert_int_equal(take(6, 9999), GOOSE_CHANGE);
	assert_true(a.restarted);
	assert_int_equal(take(6, 10000), GOOSE_REPETITION);
}

static void a_publisher_that_was_silent_goes_on(void **state)
{
	begin();
	take(9, 4);
	now = s.until_ns;
	assert_true(goose_subscriber_expire(&s, now));
	assert_int_equal(goose_subscriber_end_ns(&s), UINT64_MAX);
	assert_int_equal(take(9, 7), GOOSE_REPETITION);
	assert_true(a.resumed && !a.restarted);
	assert_int_equal(a.lost_messages, 2);
	assert_int_equal(goose_subscriber_end_ns(&s), now + LIVE_MS * MS);
	now = s.until_ns;
	assert_true(goose_subscriber_expire(&s, now));
	assert_int_equal(take(11, 0), GOOSE_CHANGE);
	assert_int_equal(a.lost_changes, 1);
}

static void numbers_begin_again_behind_the_largest(void **state)
{
	begin();
	take(UINT32_MAX - 1, 0);
	assert_int_equal(take(UINT32_MAX, 0), GOOSE_CHANGE);
	s.sequence = UINT32_MAX - 1;
	assert_int_equal(take(UINT32_MAX, UINT32_MAX), GOOSE_REPETITION);
	assert_int_equal(take(UINT32_MAX, 1), GOOSE_REPETITION);
	assert_int_equal(a.lost_messages, 0);
	assert_int_equal(take(UINT32_MAX, UINT32_MAX), GOOSE_OLD);
	assert_int_equal(take(1, 0), GOOSE_CHANGE);
	assert_int_equal(a.lost_changes + a.lost_messages, 0);
	assert_int_equal(take(UINT32_MAX, 2), GOOSE_OLD);
	/* With a loss at this place; 0 is no number behind the largest one. */
	begin();
	take(UINT32_MAX - 1, 0);
	assert_int_equal(take(3, 0), GOOSE_CHANGE);
	assert_int_equal(a.lost_changes, 3);
	begin();
	take(UINT32_MAX, 0);
	assert_int_equal(take(0, 0), GOOSE_OLD);
	/* A publisher that began again after many changes is no wrap. */
	begin();
	take(3000000000u, 0);
	assert_int_equal(take(1, 0), GOOSE_OLD);
}

static void another_revision_is_seen_once(void **state)
{
	begin();
	take(1, 0);
	assert_int_equal(take_message((struct goose){ .state = 2, .revision = 2 }), GOOSE_CHANGE);
	assert_true(a.revised);
	take_message((struct goose){ .state = 3, .revision = 2 });
	assert_false(a.revised);
}

static void messages_that_need_commissioning_are_not_used(void **state)
{
	begin();
	assert_int_equal(take_message((struct goose){ .state = 1, .needs_commissioning = true }),
			 GOOSE_INCOMPLETE);
	assert_false(s.known);
	assert_int_equal(take(1, 1), GOOSE_CHANGE);
}

static void a_message_that_is_valid_for_no_time_is_not_used(void **state)
{
	const struct goose message = { .state = 1 };

	begin();
	assert_int_equal(goose_subscriber_take(&s, &message, false, now).verdict, GOOSE_LIFELESS);
	assert_false(s.known);
}

static void simulated_messages_are_used_only_if_wanted(void **state)
{
	const struct goose message = { .state = 1, .allowed_live_ms = LIVE_MS };

	begin();
	assert_int_equal(take_message((struct goose){ .state = 1, .simulation = true }),
			 GOOSE_SIMULATED);
	assert_int_equal(goose_subscriber_take(&s, &message, true, now).verdict, GOOSE_SIMULATED);
	assert_false(s.known);
}

static void simulated_messages_replace_others_while_they_come(void **state)
{
	begin();
	s.simulation = true;
	assert_int_equal(take(50, 0), GOOSE_CHANGE);
	assert_int_equal(take_message((struct goose){ .state = 1, .simulation = true }), GOOSE_CHANGE);
	assert_int_equal(a.lost_changes, 0);
	assert_int_equal(take(51, 0), GOOSE_REPLACED);
	assert_int_equal(take_message((struct goose){ .state = 2, .simulation = true }), GOOSE_CHANGE);
	now = s.until_ns;
	assert_true(goose_subscriber_expire(&s, now));
	assert_int_equal(take(51, 3), GOOSE_CHANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_message_is_a_change_whatever_its_numbers),
		cmocka_unit_test(repetitions_and_changes_in_order_lose_nothing),
		cmocka_unit_test(a_lost_repetition_is_counted),
		cmocka_unit_test(a_message_that_comes_twice_is_used_once),
		cmocka_unit_test(an_overtaken_message_is_not_used),
		cmocka_unit_test(a_change_whose_first_message_was_lost_is_seen),
		cmocka_unit_test(lost_changes_are_counted),
		cmocka_unit_test(a_publisher_that_began_again_is_heard_when_the_time_has_ended),
		cmocka_unit_test(a_message_is_not_believed_to_be_the_last_for_weeks),
		cmocka_unit_test(a_publisher_that_was_silent_goes_on),
		cmocka_unit_test(numbers_begin_again_behind_the_largest),
		cmocka_unit_test(another_revision_is_seen_once),
		cmocka_unit_test(messages_that_need_commissioning_are_not_used),
		cmocka_unit_test(a_message_that_is_valid_for_no_time_is_not_used),
		cmocka_unit_test(simulated_messages_are_used_only_if_wanted),
		cmocka_unit_test(simulated_messages_replace_others_while_they_come),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
