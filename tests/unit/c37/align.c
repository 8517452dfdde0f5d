/* SPDX-License-Identifier: BSD-2-Clause */
/* Frames of several streams become steps of one time. Argument: a seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/c37.118/c37_align.h"
#include "util/container_of.h"
#include "util/prng.h"

#define MS UINT64_C(1000000)
#define WAIT (100 * MS)
#define PERIOD 20000000
#define START (INT64_C(1700000000) * 1000000000)

static uint64_t seed = 1;

static struct c37_align begin(unsigned streams, bool ordered)
{
	struct c37_align a;

	c37_align_init(&a, streams, WAIT, 1000000);
	for (unsigned i = 0; i < streams; i++)
		c37_align_set(&a, i, false, ordered);
	return a;
}

static enum c37_align_result put(struct c37_align *a, unsigned stream, int64_t step, uint64_t now)
{
	unsigned place;

	return c37_align_put(a, stream, START + step * PERIOD, now, &place);
}

/* The next step is that one, with these streams. */
static void expect(struct c37_align *a, uint64_t now, int64_t step, uint32_t present)
{
	struct c37_step s;

	assert_true(c37_align_next(a, now, &s));
	assert_int_equal(s.time_ns, START + step * PERIOD);
	assert_int_equal(s.present, present);
}

static void expect_none(struct c37_align *a, uint64_t now)
{
	struct c37_step s;

	assert_false(c37_align_next(a, now, &s));
}

static void a_step_goes_out_when_all_streams_have_come(void **state)
{
	struct c37_align a = begin(3, false);

	assert_int_equal(put(&a, 2, 0, 0), C37_ALIGN_TAKEN);
	assert_int_equal(put(&a, 0, 0, 1), C37_ALIGN_TAKEN);
	expect_none(&a, 2);
	assert_int_equal(put(&a, 0, 0, 2), C37_ALIGN_TWICE);
	assert_int_equal(put(&a, 1, 0, 3), C37_ALIGN_TAKEN);
	expect(&a, 4, 0, 7);
	expect_none(&a, UINT64_MAX);
	assert_int_equal(put(&a, 1, 0, 5), C37_ALIGN_LATE);
	assert_true(c37_align_due_ns(&a) == UINT64_MAX);
}

static void times_that_differ_a_little_are_the_same(void **state)
{
	struct c37_align a = begin(2, false);
	unsigned first, second;

	c37_align_put(&a, 0, START, 0, &first);
	assert_int_equal(c37_align_put(&a, 1, START + 999999, 0, &second), C37_ALIGN_TAKEN);
	assert_int_equal(first, second);
	expect(&a, 1, 0, 3);
}

static void a_stream_that_is_missing_is_waited_for(void **state)
{
	struct c37_align a = begin(2, false);

	put(&a, 0, 0, 0);
	put(&a, 0, 1, 20 * MS);
	put(&a, 1, 1, 30 * MS);
	/* The second step is complete, and comes after the first. */
	expect_none(&a, WAIT - 1);
	assert_int_equal(c37_align_due_ns(&a), WAIT);
	expect(&a, WAIT, 0, 1);
	expect(&a, WAIT, 1, 3);
	assert_int_equal(put(&a, 1, 0, WAIT + 1), C37_ALIGN_LATE);
}

static void an_ordered_stream_that_has_gone_on_is_not_waited_for(void **state)
{
	struct c37_align a = begin(2, true);

	put(&a, 0, 0, 0);
	put(&a, 0, 1, 20 * MS);
	expect_none(&a, 21 * MS);
	put(&a, 1, 1, 30 * MS);
	expect(&a, 31 * MS, 0, 1);
	expect(&a, 31 * MS, 1, 3);
}

static void a_stream_that_is_away_is_not_waited_for(void **state)
{
	struct c37_align a = begin(3, true);

	put(&a, 0, 0, 0);
	put(&a, 1, 0, 0);
	expect_none(&a, 1);
	c37_align_set(&a, 2, true, true);
	expect(&a, 1, 0, 3);
	put(&a, 0, 1, 2);
	put(&a, 1, 1, 2);
	expect(&a, 2, 1, 3);
}

/* A clock that is set wrong by a second, or by an hour, to either side. */
static void a_wrong_clock_makes_nobody_else_late(void **state)
{
	static const int64_t wrong[] = { 50, -50, 180000, -180000, 1, -1 };

	for (unsigned w = 0; w < ARRAY_SIZE(wrong); w++) {
		struct c37_align a = begin(3, false);
		unsigned good = 0, alone = 0;
		struct c37_step s;

		/* Odd numbers, so that the wrong times are none of the others. */
		for (int64_t i = 0; i < 200; i++) {
			uint64_t now = (uint64_t)i * 2 * PERIOD;

			assert_int_equal(put(&a, 0, 2 * i, now), C37_ALIGN_TAKEN);
			assert_int_equal(put(&a, 2, 2 * i + wrong[w] / 2 * 2 + 1, now), C37_ALIGN_TAKEN);
			assert_int_equal(put(&a, 1, 2 * i, now), C37_ALIGN_TAKEN);
			while (c37_align_next(&a, now, &s)) {
				assert_true(s.present == 3 || s.present == 4);
				good += s.present == 3;
				alone += s.present == 4;
			}
		}
		while (c37_align_next(&a, UINT64_MAX, &s)) {
			good += s.present == 3;
			alone += s.present == 4;
		}
		assert_int_equal(good, 200);
		assert_int_equal(alone, 200);
	}
}

/* A device that has missed a leap second: its times are those that the others have a second before
 * or after. With one other device, and with two. */
static void a_clock_that_is_wrong_by_whole_periods_makes_nobody_else_late(void **state)
{
	static const int64_t wrong[] = { 50, -50, 12, 250 };

	for (unsigned w = 0; w < 2 * ARRAY_SIZE(wrong); w++) {
		unsigned last = 1 + w % 2, good = 0, alone = 0;
		struct c37_align a = begin(1 + last, w % 3);
		struct c37_step s;

		for (int64_t i = 1000; i < 1400; i++) {
			uint64_t now = (uint64_t)i * PERIOD;

			for (unsigned k = 0; k < last; k++)
				assert_int_equal(put(&a, k, i, now + k), C37_ALIGN_TAKEN);
			assert_int_equal(put(&a, last, i + wrong[w / 2], now + 2), C37_ALIGN_TAKEN);
			while (c37_align_next(&a, i == 1399 ? UINT64_MAX : now + 3, &s)) {
				good += s.present == (1u << last) - 1;
				alone += s.present == 1u << last;
			}
		}
		assert_int_equal(good, 400);
		assert_int_equal(alone, 400);
	}
}

/* A connection stands still for 3 s and brings all at once then. Its clock is right. */
static void what_a_stream_brings_after_a_standstill_is_late(void **state)
{
	struct c37_align a = begin(2, true);
	unsigned late = 0;
	struct c37_step s;

	for (int64_t i = 1000; i < 2000; i++) {
		uint64_t now = (uint64_t)i * PERIOD;
		bool still = i >= 1650 && i < 1800;

		put(&a, 0, i, now);
		if (!still)
			assert_int_equal(put(&a, 1, i, now), C37_ALIGN_TAKEN);
		for (int64_t k = 1650; i == 1799 && k < 1790; k++)
			late += put(&a, 1, k, now) == C37_ALIGN_LATE;
		while (c37_align_next(&a, now, &s))
			assert_true(s.present == 3 || (s.present == 1 && i < 1810));
	}
	assert_int_equal(late, 140);
}

static void steps_beyond_the_room_go_out(void **state)
{
	struct c37_align a = begin(2, false);
	struct c37_step s;

	for (unsigned i = 0; i < C37_STEPS_MAX; i++) {
		assert_false(c37_align_make_room(&a, &s));
		put(&a, 0, i, 0);
	}
	assert_true(c37_align_make_room(&a, &s));
	assert_int_equal(s.time_ns, START);
	assert_int_equal(put(&a, 0, C37_STEPS_MAX, 0), C37_ALIGN_TAKEN);
}

/* More frames with ever new times than there is room for, while two others go on as ever. */
static void a_flood_of_one_stream_costs_only_its_own_steps(void **state)
{
	struct c37_align a = begin(3, false);
	unsigned good = 0, others = 0;
	struct c37_step s;

	for (int64_t i = 0; i < 60; i++) {
		uint64_t now = (uint64_t)i * PERIOD;

		for (unsigned k = 0; k < 3000; k++) {
			if (c37_align_make_room(&a, &s))
				others += s.present != 4;
			if (k == 0 || k == 2000)
				put(&a, k > 0, i, now);
			else
				assert_int_equal(put(&a, 2, 100000 + i * 3000 + k, now), C37_ALIGN_TAKEN);
			while (c37_align_next(&a, now, &s)) {
				good += s.present == 3;
				others += s.present == 1 || s.present == 2;
			}
		}
	}
	assert_true(good >= 54);
	assert_int_equal(others, 0);
}

/* What one frame has become: was it taken, and in how many steps did it go out? */
struct fate {
	bool taken;
	unsigned out;
};

#define STREAMS 4
#define STEPS 300

static void check_step(const struct c37_step *s, struct fate fates[STREAMS][STEPS], uint64_t now)
{
	int64_t step = (s->time_ns - START + PERIOD / 2) / PERIOD;

	assert_true(s->present && s->present < 1u << STREAMS && s->place < C37_STEPS_MAX);
	assert_true(s->until_ns >= now || s->until_ns + PERIOD >= now);
	for (unsigned k = 0; k < STREAMS; k++)
		fates[k][step].out += s->present >> k & 1;
}

/* Frames come after random delays, some are lost, some come twice. */
static void each_frame_is_in_one_step_or_told_to_be_late(void **state)
{
	struct prng p = prng_from(seed);

	for (unsigned run = 0; run < 50; run++) {
		static struct fate fates[STREAMS][STEPS];
		struct c37_align a = begin(STREAMS, false);
		struct c37_step s;
		unsigned late = 0;

		memset(fates, 0, sizeof(fates));
		for (uint64_t now = 0; now < (STEPS + 20) * (uint64_t)PERIOD; now += PERIOD / 4) {
			for (unsigned k = 0; k < STREAMS; k++) {
				int64_t step = (int64_t)(now / PERIOD) - (int64_t)prng_below(&p, 8);
				enum c37_align_result r;
				struct fate *f;

				if (step < 0 || step >= STEPS || !prng_below(&p, 10))
					continue;
				f = &fates[k][step];
				r = put(&a, k, step, now);
				late += r == C37_ALIGN_LATE;
				assert_true(r == C37_ALIGN_TAKEN || r == C37_ALIGN_LATE || f->taken);
				assert_true(r != C37_ALIGN_TAKEN || !f->taken);
				f->taken |= r == C37_ALIGN_TAKEN;
			}
			while (c37_align_next(&a, now, &s))
				check_step(&s, fates, now);
		}
		while (c37_align_next(&a, UINT64_MAX, &s))
			check_step(&s, fates, s.until_ns);
		for (unsigned k = 0; k < STREAMS; k++)
			for (unsigned i = 0; i < STEPS; i++)
				assert_int_equal(fates[k][i].out, fates[k][i].taken);
		assert_true(late > 0);
		for (unsigned i = 0; i < ARRAY_SIZE(a.used); i++)
			assert_int_equal(a.used[i], 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_step_goes_out_when_all_streams_have_come),
		cmocka_unit_test(times_that_differ_a_little_are_the_same),
		cmocka_unit_test(a_stream_that_is_missing_is_waited_for),
		cmocka_unit_test(an_ordered_stream_that_has_gone_on_is_not_waited_for),
		cmocka_unit_test(a_stream_that_is_away_is_not_waited_for),
		cmocka_unit_test(a_wrong_clock_makes_nobody_else_late),
		cmocka_unit_test(a_clock_that_is_wrong_by_whole_periods_makes_nobody_else_late),
		cmocka_unit_test(what_a_stream_brings_after_a_standstill_is_late),
		cmocka_unit_test(steps_beyond_the_room_go_out),
		cmocka_unit_test(a_flood_of_one_stream_costs_only_its_own_steps),
		cmocka_unit_test(each_frame_is_in_one_step_or_told_to_be_late),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	printf("seed %llu\n", (unsigned long long)seed);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
