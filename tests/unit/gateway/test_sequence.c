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

/* 40 samples in a row, of which one has another number: how many seem lost. */
static uint64_t lost_with(uint32_t flags, uint64_t first, uint64_t wrong)
{
	struct sequence q = { 0 };
	uint64_t lost = 0;

	for (unsigned i = 0; i < 40; i++) {
		enum sequence_verdict v = take(&q, flags, i == 10 ? wrong : first + i,
					       flags & SAMPLE_HAS_ORIGIN ? i + 1 : 0);

		if (v == SEQUENCE_LOST)
			lost += q.distance;
		/* What follows is judged as if nothing had happened. */
		if (i > 11)
			assert_int_equal(v, SEQUENCE_NEXT);
	}
	return lost;
}

static void one_wrong_number_makes_no_losses(void **state)
{
	static const uint64_t wrong[] = {
		UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, UINT64_C(1) << 40,
		UINT64_C(1) << 33, UINT32_MAX, UINT32_MAX - 1, 0, 5, 700 };
	static const uint64_t firsts[] = { 1000, 100000, UINT64_C(1) << 50,
					   UINT64_MAX - 100 };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		for (size_t k = 0; k < sizeof(firsts) / sizeof(*firsts); k++)
			for (int stamped = 0; stamped < 2 &&
			     (wrong[i] < firsts[k] || wrong[i] - firsts[k] > 1000); stamped++)
				/* One is missing: that which has the wrong number. */
				if (lost_with(stamped ? STAMPED : NUMBERED, firsts[k], wrong[i]) > 2)
					fail_msg("%ju among %ju", (uintmax_t)wrong[i],
						 (uintmax_t)firsts[k]);
}

/* A number of nanoseconds or of anything else: no losses, no restart at each sample. */
static void numbers_that_count_no_samples_lose_nothing(void **state)
{
	static const uint64_t steps[] = { 10000000, UINT64_C(1) << 32, UINT64_C(1) << 40 };

	for (int i = 0; i < 6; i++) {
		struct sequence q = { 0 };
		unsigned restarts = 0;

		for (unsigned n = 0; n < 100; n++) {
			struct sample s = { .flags = i % 2 ? STAMPED : NUMBERED,
					    .sequence = 7 + n * steps[i / 2],
					    .origin = { 5, (long)n * 10000000 } };
			enum sequence_verdict v = sequence_judge(&q, &s);

			/* Without times ten million may be lost. */
			if (steps[i / 2] > 1u << 31 || i % 2)
				assert_int_not_equal(v, SEQUENCE_LOST);
			restarts += v == SEQUENCE_RESTART;
		}
		assert_true(restarts <= 1);
	}
}

static void a_million_lost_samples_are_lost_and_no_restart(void **state)
{
	struct sequence q = { 0 };

	run(&q, STAMPED, 0, 10, 1);
	assert_int_equal(take(&q, STAMPED, 5000010, 20), SEQUENCE_LOST);
	assert_int_equal(q.distance, 5000000);
	/* But not within a moment. */
	run(&q, STAMPED, 5000011, 10, 21);
	assert_int_equal(take(&q, STAMPED, UINT32_MAX / 2, 31), SEQUENCE_RESTART);
}

static void what_a_generator_left_out_is_not_lost(void **state)
{
	struct sequence q = { 0 };

	sequence_note_left_out(10, 5, (struct timespec){ .tv_sec = 1015 });
	sequence_note_left_out(20, 1, (struct timespec){ .tv_sec = 1021 });
	run(&q, STAMPED, 0, 10, 1000);
	assert_int_equal(take(&q, STAMPED, 15, 1015), SEQUENCE_LEFT_OUT);
	assert_int_equal(q.left_out, 5);
	assert_int_equal(q.distance, 0);
	run(&q, STAMPED, 16, 3, 1016);
	/* 19 is lost, 20 was left out. */
	assert_int_equal(take(&q, STAMPED, 21, 1021), SEQUENCE_LOST);
	assert_int_equal(q.left_out, 1);
	assert_int_equal(q.distance, 1);
	/* Of another time: another generator's numbers. */
	q = (struct sequence){ 0 };
	run(&q, STAMPED, 0, 10, 5000);
	assert_int_equal(take(&q, STAMPED, 15, 5015), SEQUENCE_LOST);
	assert_int_equal(q.distance, 5);
	assert_int_equal(q.left_out, 0);
	/* More notes than are kept: the last ones count. */
	for (uint64_t i = 0; i < 5000; i++)
		sequence_note_left_out(100 + 2 * i, 1, (struct timespec){ .tv_sec = (time_t)i + 1 });
	assert_int_equal(sequence_count_left_out(100, 10000, (struct timespec){ 0 },
						 (struct timespec){ 0 }), 1024);
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
		cmocka_unit_test(one_wrong_number_makes_no_losses),
		cmocka_unit_test(numbers_that_count_no_samples_lose_nothing),
		cmocka_unit_test(a_million_lost_samples_are_lost_and_no_restart),
		cmocka_unit_test(what_a_generator_left_out_is_not_lost),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
