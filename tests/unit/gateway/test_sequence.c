/* SPDX-License-Identifier: BSD-2-Clause */
/* What a sequence number says about the one before it (sample/sequence.h). */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "gateway/sample/sequence.h"

#define NUMBERED SAMPLE_HAS_SEQUENCE
#define STAMPED (SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN)

static enum sequence_verdict take(struct sequence *q, uint32_t flags,
				  uint64_t number, time_t second)
{
	struct sample s = { .flags = flags, .sequence = number,
			    .origin = { .tv_sec = second } };

	return sequence_judge(q, &s);
}

/* Numbers first, first + 1 ... count of them, one second each when stamped. */
static void run(struct sequence *q, uint32_t flags, uint64_t first,
		unsigned count, time_t second)
{
	for (unsigned i = 0; i < count; i++)
		take(q, flags, first + i, second ? second + (time_t)i : 0);
}

static void numbers_in_order_are_next_with_and_without_times(void **state)
{
	struct sequence a = { 0 }, b = { 0 };

	assert_int_equal(take(&a, NUMBERED, 7, 0), SEQUENCE_FIRST);
	assert_int_equal(take(&b, STAMPED, 7, 1), SEQUENCE_FIRST);
	for (uint64_t i = 8; i < 1000; i++) {
		assert_int_equal(take(&a, NUMBERED, i, 0), SEQUENCE_NEXT);
		assert_int_equal(take(&b, STAMPED, i, (time_t)i), SEQUENCE_NEXT);
	}
}

static void a_gap_is_as_many_lost_samples(void **state)
{
	struct sequence q = { 0 };

	run(&q, STAMPED, 0, 10, 1);
	assert_int_equal(take(&q, STAMPED, 15, 20), SEQUENCE_LOST);
	assert_int_equal(q.distance, 5);
	assert_int_equal(take(&q, NUMBERED, 17, 0), SEQUENCE_LOST);
	assert_int_equal(q.distance, 1);
}

static void an_overtaken_sample_is_late_and_loses_nothing(void **state)
{
	struct sequence q = { 0 };

	run(&q, STAMPED, 100, 10, 100);
	assert_int_equal(take(&q, STAMPED, 111, 111), SEQUENCE_LOST);
	assert_int_equal(take(&q, STAMPED, 110, 110), SEQUENCE_LATE);
	assert_int_equal(q.distance, 1);
	/* It goes on where it was. */
	assert_int_equal(take(&q, STAMPED, 112, 112), SEQUENCE_NEXT);
	assert_int_equal(take(&q, STAMPED, 112, 112), SEQUENCE_LATE);
	assert_int_equal(q.distance, 0);
	/* However far, as long as its time says so. */
	assert_int_equal(take(&q, STAMPED, 4, 90), SEQUENCE_LATE);
	assert_int_equal(take(&q, STAMPED, 113, 113), SEQUENCE_NEXT);
}

static void number_0_begins_anew_and_always_0_is_no_number(void **state)
{
	struct sequence q = { 0 };

	run(&q, NUMBERED, 0, 5, 0);
	assert_int_equal(take(&q, NUMBERED, 0, 0), SEQUENCE_RESTART);
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(take(&q, NUMBERED, 0, 0), SEQUENCE_NONE);
	assert_int_equal(take(&q, 0, 0, 0), SEQUENCE_NONE);
}

static void a_smaller_number_with_a_later_time_begins_anew(void **state)
{
	struct sequence q = { 0 };

	run(&q, STAMPED, 0, 800, 1);
	assert_int_equal(take(&q, STAMPED, 1, 2000), SEQUENCE_RESTART);
	assert_int_equal(take(&q, STAMPED, 2, 2001), SEQUENCE_NEXT);
	/* The time that counts is that of the last sample, not of an older one. */
	assert_int_equal(take(&q, STAMPED, 1, 2000), SEQUENCE_LATE);
}

static void a_restart_without_times_is_one_also_when_number_0_is_lost(void **state)
{
	struct sequence q = { 0 };
	unsigned late = 0, restarts = 0;

	run(&q, NUMBERED, 0, 800, 0);
	for (uint64_t i = 1; i < 800; i++) {
		enum sequence_verdict v = take(&q, NUMBERED, i, 0);

		late += v == SEQUENCE_LATE;
		restarts += v == SEQUENCE_RESTART;
		assert_int_not_equal(v, SEQUENCE_LOST);
	}
	assert_int_equal(late, 0);
	assert_int_equal(restarts, 1);
}

static void a_restart_after_a_few_samples_is_found_by_a_run(void **state)
{
	struct sequence q = { 0 };

	run(&q, NUMBERED, 0, 50, 0);
	for (uint64_t i = 1; i < SEQUENCE_RUN; i++)
		assert_int_equal(take(&q, NUMBERED, i, 0), SEQUENCE_LATE);
	assert_int_equal(take(&q, NUMBERED, SEQUENCE_RUN, 0), SEQUENCE_RESTART);
	assert_int_equal(take(&q, NUMBERED, SEQUENCE_RUN + 1, 0), SEQUENCE_NEXT);
}

static void a_simulator_whose_clock_begins_anew_is_found_by_a_run(void **state)
{
	struct sequence q = { 0 };

	run(&q, STAMPED, 0, 800, 1);
	for (uint64_t i = 1; i < SEQUENCE_RUN; i++)
		assert_int_equal(take(&q, STAMPED, i, (time_t)i + 1), SEQUENCE_LATE);
	assert_int_equal(take(&q, STAMPED, SEQUENCE_RUN, SEQUENCE_RUN + 1),
			 SEQUENCE_RESTART);
}

static void late_samples_between_others_are_no_run(void **state)
{
	struct sequence q = { 0 };

	run(&q, NUMBERED, 0, 100, 0);
	for (uint64_t i = 0; i < 40; i++) {
		assert_int_equal(take(&q, NUMBERED, 50 + i, 0), SEQUENCE_LATE);
		assert_int_equal(take(&q, NUMBERED, 100 + i, 0), SEQUENCE_NEXT);
	}
	/* Nor do doubles of one number. */
	for (unsigned i = 0; i < 40; i++)
		assert_int_equal(take(&q, NUMBERED, 139, 0), SEQUENCE_LATE);
}

static void what_the_sender_says_counts_whatever_the_number(void **state)
{
	struct sequence q = { 0 };

	run(&q, STAMPED, 0, 10, 1);
	assert_int_equal(take(&q, STAMPED | SAMPLE_NEW_SIMULATION, 500, 11),
			 SEQUENCE_RESTART);
	assert_int_equal(take(&q, STAMPED, 501, 12), SEQUENCE_NEXT);
	assert_int_equal(take(&q, STAMPED | SAMPLE_NEW_SIMULATION, 502, 13),
			 SEQUENCE_RESTART);
}

static void a_number_of_32_bits_that_wraps_is_the_next(void **state)
{
	struct sequence q = { 0 };

	run(&q, NUMBERED, UINT32_MAX - 3, 4, 0);
	assert_int_equal(take(&q, NUMBERED, 0, 0), SEQUENCE_NEXT);
	run(&q, NUMBERED, UINT32_MAX - 3, 3, 0);
	assert_int_equal(take(&q, NUMBERED, 2, 0), SEQUENCE_LOST);
	assert_int_equal(q.distance, 3);
	/* One of 64 bits does not wrap there. */
	run(&q, NUMBERED, UINT32_MAX + UINT64_C(1), 5, 0);
	assert_int_equal(take(&q, NUMBERED, 3, 0), SEQUENCE_RESTART);
}

static void a_time_of_zero_is_none(void **state)
{
	struct sequence q = { 0 };

	for (uint64_t i = 0; i < 800; i++)
		take(&q, STAMPED, i, 0);
	assert_int_equal(take(&q, STAMPED, 1, 0), SEQUENCE_RESTART);
	assert_int_equal(take(&q, STAMPED, 2, 0), SEQUENCE_NEXT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_in_order_are_next_with_and_without_times),
		cmocka_unit_test(a_gap_is_as_many_lost_samples),
		cmocka_unit_test(an_overtaken_sample_is_late_and_loses_nothing),
		cmocka_unit_test(number_0_begins_anew_and_always_0_is_no_number),
		cmocka_unit_test(a_smaller_number_with_a_later_time_begins_anew),
		cmocka_unit_test(a_restart_without_times_is_one_also_when_number_0_is_lost),
		cmocka_unit_test(a_restart_after_a_few_samples_is_found_by_a_run),
		cmocka_unit_test(a_simulator_whose_clock_begins_anew_is_found_by_a_run),
		cmocka_unit_test(late_samples_between_others_are_no_run),
		cmocka_unit_test(what_the_sender_says_counts_whatever_the_number),
		cmocka_unit_test(a_number_of_32_bits_that_wraps_is_the_next),
		cmocka_unit_test(a_time_of_zero_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
