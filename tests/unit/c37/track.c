/* SPDX-License-Identifier: BSD-2-Clause */
/* What the times of data frames tell. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "gateway/node/c37.118/c37_track.h"
#include "util/container_of.h"
#include "util/prng.h"
#include "wire/grid/c37.h"

#define SECOND INT64_C(1000000000)
#define START (INT64_C(1700000000) * SECOND)

static struct c37_track begin(int16_t rate, bool ordered)
{
	struct c37_track t = { .ordered = ordered };

	c37_track_set_rate(&t, rate);
	c37_track_take(&t, START, 0);
	return t;
}

/* Time stamps of every usual rate, rounded to the unit of FRACSEC. */
static void every_missing_frame_is_counted(void **state)
{
	static const int16_t rates[] = { 1, 10, 25, 30, 50, 60, 100, 120, 240, -1, -2, -10 };
	static const uint32_t bases[] = { 1000000, 16777215, 1000, 600 };

	for (unsigned r = 0; r < ARRAY_SIZE(rates); r++)
		for (unsigned b = 0; b < ARRAY_SIZE(bases); b++) {
			struct prng p = prng_from(r * 8 + b + 1);
			struct c37_track t = begin(rates[r], true);
			double period = rates[r] > 0 ? 1.0 / rates[r] : -rates[r];
			uint64_t missed = 0, frame = 0;

			for (unsigned i = 0; i < 5000; i++) {
				uint64_t skip = prng_below(&p, 10) ? 0 : prng_below(&p, 20);
				struct c37_place place;
				double at;

				frame += 1 + skip;
				at = (double)frame * period;
				place = c37_track_take(&t, START + (int64_t)at * SECOND +
					(int64_t)((double)(int64_t)((at - (double)(int64_t)at) * bases[b] + 0.5) /
						  bases[b] * 1e9), 0);
				missed += skip;
				assert_int_equal(place.order, C37_ORDER_NEXT);
				assert_int_equal(place.missed, skip);
				assert_int_equal(place.sequence, frame);
			}
			assert_true(missed > 0);
		}
}

/* Samples of a gateway are stamped when they are made: up to half a period late. */
static void a_late_sample_is_no_missing_frame(void **state)
{
	struct prng p = prng_from(3);
	struct c37_track t = begin(50, true);

	for (int64_t i = 1; i < 20000; i++) {
		struct c37_place place = c37_track_take(&t, START + i * SECOND / 50 +
					(int64_t)prng_below(&p, 10000000), 0);

		assert_int_equal(place.missed, 0);
		assert_int_equal(place.sequence, i);
	}
}

static void repeated_late_and_set_clocks_are_told_apart(void **state)
{
	struct c37_track t = begin(50, false);
	struct c37_place p;

	p = c37_track_take(&t, START, 0);
	assert_int_equal(p.order, C37_ORDER_REPEATED);
	p = c37_track_take(&t, START + 5 * SECOND / 50, 0);
	assert_int_equal(p.missed, 4);
	p = c37_track_take(&t, START + 3 * SECOND / 50, 0);
	assert_int_equal(p.order, C37_ORDER_LATE);
	assert_int_equal(p.sequence, 3);
	p = c37_track_take(&t, START + 6 * SECOND / 50, 0);
	assert_int_equal(p.order, C37_ORDER_NEXT);
	assert_int_equal(p.sequence, 6);
	/* Over TCP nothing overtakes. */
	t.ordered = true;
	p = c37_track_take(&t, START + 3 * SECOND / 50, 0);
	assert_int_equal(p.order, C37_ORDER_STEP);
	assert_int_equal(p.sequence, 7);
	p = c37_track_take(&t, START + 4 * SECOND / 50, 0);
	assert_int_equal(p.order, C37_ORDER_NEXT);
	assert_int_equal(p.missed, 0);
	/* Hours, forth and back. */
	p = c37_track_take(&t, START + 7200 * SECOND, 0);
	assert_int_equal(p.order, C37_ORDER_STEP);
	p = c37_track_take(&t, START, 0);
	assert_int_equal(p.order, C37_ORDER_STEP);
	assert_int_equal(p.missed, 0);
}

/* Seconds as POSIX counts them: the inserted one has the number of another one. */
static void leap_seconds_are_no_loss(void **state)
{
	static const int16_t rates[] = { 1, 10, 50, 60, 120, -1 };

	for (unsigned r = 0; r < ARRAY_SIZE(rates); r++)
		for (int deletes = 0; deletes < 2; deletes++) {
			uint8_t direction = deletes ? C37_LEAP_DELETES : 0;
			struct c37_track t = begin(rates[r], true);
			int64_t period = rates[r] > 0 ? SECOND / rates[r] : SECOND, shift = 0;
			unsigned leaps = 0;

			/* The last second of the day is the tenth, from the first on. */
			for (int64_t at = period; at < 20 * SECOND; at += period) {
				uint8_t quality = (uint8_t)(at < 10 * SECOND ?
					C37_LEAP_PENDING | direction : C37_LEAP_OCCURRED | direction);
				struct c37_place p;

				if (at >= 10 * SECOND)
					shift = deletes ? SECOND : -SECOND;
				p = c37_track_take(&t, START + at + shift, quality);
				assert_int_equal(p.missed, 0);
				assert_int_equal(p.sequence, t.sequence);
				leaps += p.order == C37_ORDER_LEAP;
				assert_true(p.order == C37_ORDER_NEXT || p.order == C37_ORDER_LEAP);
			}
			assert_int_equal(leaps, 1);
		}
}

static void without_a_rate_nothing_is_missing(void **state)
{
	struct c37_track t = begin(0, true);

	for (uint64_t i = 1; i < 100; i++) {
		struct c37_place p = c37_track_take(&t, START + (int64_t)(i * i) * SECOND / 7, 0);

		assert_int_equal(p.missed, 0);
		assert_int_equal(p.sequence, i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_missing_frame_is_counted),
		cmocka_unit_test(a_late_sample_is_no_missing_frame),
		cmocka_unit_test(repeated_late_and_set_clocks_are_told_apart),
		cmocka_unit_test(leap_seconds_are_no_loss),
		cmocka_unit_test(without_a_rate_nothing_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
