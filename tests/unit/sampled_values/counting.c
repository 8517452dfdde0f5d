/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * smpCnt: what a subscriber makes of the numbers of a stream, and which numbers a publisher gives.
 * Single cases, and random streams against what is known of them; the time is the test's.
 *
 * usage: sampled-values-counting [SEED [STREAMS]]
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/node/iec61850-9-2/counting.h"
#include "util/container_of.h"
#include "util/prng.h"

#define SECOND UINT64_C(1000000000)

static uint64_t seed = 1, streams = 300;

/* One sample, at `ns`. */
static struct counting_step take(struct counting *c, unsigned count, uint32_t stated, uint64_t ns)
{
	return counting_take(c, (uint16_t)count, stated, ns, ns > c->last_ns ? ns - c->last_ns : 0);
}

static void expect(struct counting_step got, enum counting_verdict verdict, uint64_t sequence,
		   uint64_t lost)
{
	assert_int_equal(got.verdict, verdict);
	if (verdict != COUNTING_REPEATED && verdict != COUNTING_IMPOSSIBLE)
		assert_int_equal(got.sequence, sequence);
	assert_int_equal(got.lost, lost);
}

/* Samples `from` to `to` - 1 of a stream of `rate` a second, without a fault. */
static void run(struct counting *c, uint64_t from, uint64_t to, uint32_t rate, uint32_t stated)
{
	for (uint64_t i = from; i < to; i++)
		expect(take(c, (unsigned)(i % rate), stated, SECOND + i * SECOND / rate),
		       COUNTING_NEXT, i, 0);
}

static void the_sequence_goes_on_over_wraps(void **state)
{
	static const uint32_t rates[] = { 1, 2, 10, 50, 4000, 4800, 14400, 65535 };

	for (size_t i = 0; i < ARRAY_SIZE(rates); i++) {
		for (unsigned how = 0; how < 3; how++) {
			struct counting c = { .configured = how == 1 ? rates[i] : 0 };

			/* Where it has to learn them, it learns no shorter wraps than these. */
			if (how == 2 && rates[i] < 4)
				continue;
			run(&c, 0, 3 * rates[i] + 5, rates[i], how ? 0 : rates[i]);
			assert_int_equal(counting_wrap(&c), rates[i]);
		}
	}
}

static void lost_samples_are_counted(void **state)
{
	struct counting c = { .configured = 4000 };

	run(&c, 0, 3999, 4000, 0);
	expect(take(&c, 2, 0, SECOND * 2), COUNTING_LOST, 4002, 3);
	expect(take(&c, 3, 0, SECOND * 2), COUNTING_NEXT, 4003, 0);
	expect(take(&c, 2003, 0, SECOND * 2), COUNTING_LOST, 6003, 1999);
}

static void repeated_and_late_samples_are_found(void **state)
{
	for (uint32_t configured = 0; configured <= 4000; configured += 4000) {
		struct counting c = { .configured = configured };

		run(&c, 0, 4100, 4000, 0);
		expect(take(&c, 99, 0, 2 * SECOND), COUNTING_REPEATED, 0, 0);
		expect(take(&c, 98, 0, 2 * SECOND), COUNTING_REPEATED, 0, 0);
		expect(take(&c, 103, 0, 2 * SECOND), COUNTING_LOST, 4103, 3);
		expect(take(&c, 101, 0, 2 * SECOND), COUNTING_LATE, 4101, 0);
		expect(take(&c, 101, 0, 2 * SECOND), COUNTING_REPEATED, 0, 0);
		expect(take(&c, 100, 0, 2 * SECOND), COUNTING_LATE, 4100, 0);
		expect(take(&c, 104, 0, 2 * SECOND), COUNTING_NEXT, 4104, 0);
		/* Around the wrap. */
		expect(take(&c, 3999, 0, 3 * SECOND), COUNTING_LOST, 7999, 3894);
		expect(take(&c, 1, 0, 3 * SECOND), COUNTING_LOST, 8001, 1);
		expect(take(&c, 0, 0, 3 * SECOND), COUNTING_LATE, 8000, 0);
		expect(take(&c, 3999, 0, 3 * SECOND), COUNTING_REPEATED, 0, 0);
	}
}

/* Whole seconds are lost if all clocks say that they have passed. */
static void lost_seconds_are_counted(void **state)
{
	struct counting c = { .configured = 4000 };

	run(&c, 0, 4001, 4000, 0);
	/* From two seconds to five. */
	expect(take(&c, 1, 0, 5 * SECOND), COUNTING_LOST, 16001, 12000);
	expect(counting_take(&c, 2, 0, 9 * SECOND, SECOND / 4000), COUNTING_NEXT, 16002, 0);
	/* The same number a second later is not the same sample. */
	expect(take(&c, 2, 0, 10 * SECOND), COUNTING_LOST, 20002, 3999);
}

static void a_publisher_that_begins_again_is_no_loss(void **state)
{
	struct counting c = { .configured = 4000 };

	run(&c, 0, 1500, 4000, 0);
	expect(take(&c, 0, 0, SECOND + SECOND * 1500 / 4000), COUNTING_RESTARTED, 1500, 0);
	expect(take(&c, 1, 0, SECOND + SECOND * 1501 / 4000), COUNTING_NEXT, 1501, 0);
}

static void a_stated_rate_is_believed_only_while_it_is_true(void **state)
{
	struct counting more = { 0 }, less = { 0 };

	/* It says 4000, and counts to 4799; and the other way round. */
	run(&more, 0, 20000, 4800, 4000);
	assert_int_equal(counting_wrap(&more), 4800);
	run(&less, 0, 4000, 4000, 4800);
	expect(take(&less, 0, 4800, 2 * SECOND), COUNTING_LOST, 4800, 800);
	for (unsigned i = 1; i < 12000; i++)
		expect(take(&less, i % 4000, 4800, 2 * SECOND + i * SECOND / 4000), COUNTING_NEXT,
		       4800 + i, 0);
	assert_int_equal(counting_wrap(&less), 4000);
	/* Samples that are missing before the wrap, once, do not say so. */
	less = (struct counting){ 0 };
	run(&less, 0, 4797, 4800, 4800);
	expect(take(&less, 0, 4800, 2 * SECOND - SECOND / 1000), COUNTING_LOST, 4800, 3);
	assert_int_equal(counting_wrap(&less), 4800);
	/* A configured one is no guess. */
	more = (struct counting){ .configured = 4000 };
	run(&more, 0, 4000, 4800, 4800);
	expect(take(&more, 4000, 4800, 2 * SECOND), COUNTING_IMPOSSIBLE, 0, 0);
}

static void a_rate_that_was_learned_too_small_is_forgotten(void **state)
{
	struct counting c = { 0 };

	run(&c, 0, 1500, 4000, 0);
	/* It begins again: as if it were the wrap. */
	expect(take(&c, 0, 0, 2 * SECOND), COUNTING_NEXT, 1500, 0);
	assert_int_equal(counting_wrap(&c), 1500);
	for (unsigned i = 1; i < 4000; i++)
		expect(take(&c, i, 0, 2 * SECOND + i * SECOND / 4000), COUNTING_NEXT, 1500 + i, 0);
	expect(take(&c, 0, 0, 3 * SECOND), COUNTING_NEXT, 5500, 0);
	assert_int_equal(counting_wrap(&c), 4000);
}

static void the_time_is_that_next_to_the_receipt(void **state)
{
	const int64_t s = 1700000000 * (int64_t)SECOND;
	struct counting c = { .configured = 4000 };
	int64_t ns;

	assert_true(counting_time(&c, 0, s + 70000, &ns));
	assert_int_equal(ns, s);
	assert_true(counting_time(&c, 3999, s + 70000, &ns));
	assert_int_equal(ns, s - 250000);
	/* The clock here may be behind, too. */
	assert_true(counting_time(&c, 1, s - 70000, &ns));
	assert_int_equal(ns, s + 250000);
	assert_false(counting_time(&c, 4000, s, &ns));
	/* A learned rate counts a second only if it takes one. */
	c = (struct counting){ 0 };
	run(&c, 5, 4001, 4000, 0);
	assert_false(counting_time(&c, 0, s, &ns));
	run(&c, 4001, 8001, 4000, 0);
	assert_true(counting_time(&c, 0, s, &ns));
	c = (struct counting){ 0 };
	for (uint64_t i = 0; i < 3 * 65536; i++)
		expect(take(&c, (unsigned)(i % 65536), 0, SECOND + i * 1000000), COUNTING_NEXT, i, 0);
	assert_int_equal(counting_wrap(&c), 65536);
	assert_false(counting_time(&c, 0, s, &ns));
}

struct item {
	uint64_t index;
	double place;
};

static int by_place(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	return x->place < y->place ? -1 : x->place > y->place;
}

static double fraction(struct prng *random)
{
	return (double)(prng_next(random) >> 11) * 0x1p-53;
}

/* A stream with losses, copies and overtaking, some of them close to wraps; all numbers are right,
 * and lost is what is missing. The rate is configured, stated, or learned from a second without
 * faults. */
static void random_stream(struct prng *random)
{
	static const uint32_t rates[] = { 600, 4000, 4800, 14400, 65535 };
	uint32_t rate = rates[prng_next(random) % ARRAY_SIZE(rates)];
	unsigned how = (unsigned)(prng_next(random) % 3);
	uint64_t first = prng_next(random) % rate, count = 3000, clean = how == 2 ? 2 * rate : 1;
	struct counting c = { .configured = how == 0 ? rate : 0 };
	struct item *items = calloc(3 * count, sizeof(*items));
	uint8_t *seen = calloc(1, count);
	uint64_t lost = 0, late = 0, got = 0, sequence_first = 0, base, last = 0, missing = 0;
	size_t n = 0;

	assert_non_null(items);
	assert_non_null(seen);
	for (uint64_t i = 0; i < clean; i++) {
		struct counting_step s =
			take(&c, (unsigned)((first + i) % rate), how == 1 ? rate : 0,
			     (i + 1) * SECOND / rate);

		assert_int_equal(s.lost, 0);
		if (!i)
			sequence_first = s.sequence;
		assert_int_equal(s.sequence, sequence_first + i);
	}
	/* Some of these streams begin a little before a wrap. */
	base = clean;
	for (uint64_t i = 0; i < count; i++) {
		double far = fraction(random) < 0.05 ? 20 * fraction(random) : 0;

		if (fraction(random) < 0.1)
			continue;
		items[n++] = (struct item){ i, (double)i + far };
		if (fraction(random) < 0.1)
			items[n++] = (struct item){ i, (double)i + 20 * fraction(random) };
		last = i;
	}
	qsort(items, n, sizeof(*items), by_place);
	for (size_t i = 0; i < n; i++) {
		uint64_t index = items[i].index;
		struct counting_step s =
			take(&c, (unsigned)((first + base + index) % rate), how == 1 ? rate : 0,
			     (base + 1) * SECOND / rate + (uint64_t)(items[i].place * SECOND / rate));

		if (seen[index]) {
			assert_int_equal(s.verdict, COUNTING_REPEATED);
			continue;
		}
		assert_true(s.verdict == COUNTING_NEXT || s.verdict == COUNTING_LOST ||
			    s.verdict == COUNTING_LATE);
		assert_int_equal(s.sequence, sequence_first + base + index);
		seen[index] = 1;
		lost += s.lost;
		late += s.verdict == COUNTING_LATE;
		got++;
	}
	for (uint64_t i = 0; i <= last; i++)
		missing += !seen[i];
	assert_int_equal(lost - late, missing);
	assert_true(got > count / 2);
	free(items);
	free(seen);
}

static void random_streams_are_counted_right(void **state)
{
	struct prng random = { .state = seed };

	printf("seed %llu\n", (unsigned long long)seed);
	for (uint64_t i = 0; i < streams; i++)
		random_stream(&random);
}

/* Whatever comes: it ends, and numbers of samples that are delivered come once. */
static void random_numbers_do_no_harm(void **state)
{
	struct prng random = { .state = seed + 1 };
	struct counting c = { 0 };
	uint64_t ns = 1, greatest = 0;

	for (unsigned i = 0; i < 300000; i++) {
		unsigned count = (unsigned)(prng_next(&random) % (i % 1000 < 500 ? 65536 : 20));
		uint32_t stated = i % 3000 < 1500 ? 0 : (uint32_t)(prng_next(&random) % 3) * 4000;
		struct counting_step s;

		ns += prng_next(&random) % (i % 100 ? 1000000 : 5 * SECOND);
		s = take(&c, count, stated, ns);
		if (s.verdict == COUNTING_REPEATED)
			continue;
		assert_true(s.verdict == COUNTING_LATE ? s.sequence < greatest :
			    !i || s.sequence > greatest);
		assert_true(counting_wrap(&c) <= COUNTING_MAX);
		if (s.verdict != COUNTING_LATE)
			greatest = s.sequence;
	}
}

/* ---- publisher ---- */

static uint16_t number(struct numbering *n, uint64_t ns, uint64_t step, bool expected_astray)
{
	bool astray;
	uint16_t got = numbering_take(n, (int64_t)(ns % SECOND), step, &astray);

	assert_int_equal(astray, expected_astray);
	return got;
}

static void without_a_time_samples_are_counted(void **state)
{
	struct numbering n = { .wrap = 3 }, all = { .wrap = COUNTING_MAX, .by_time = true };
	bool astray;

	for (unsigned i = 0; i < 10; i++)
		assert_int_equal(number(&n, 17 * SECOND, 5, false), i % 3);
	for (unsigned i = 0; i < 70000; i++)
		assert_int_equal(numbering_take(&all, -1, 1, &astray), i % 65536);
}

/* Times of a source are planned ones: each second begins with 0, wherever the times lie between
 * two numbers, and rounded to nanoseconds. */
static void each_second_begins_with_0(void **state)
{
	static const uint32_t rates[] = { 1, 50, 4000, 4800, 14400, 65536 };

	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		for (unsigned phase = 0; phase < 16; phase++) {
			struct numbering n = { .wrap = rates[r], .by_time = true };
			uint64_t period = SECOND / rates[r], begin = 5 * SECOND + phase * period / 16;
			uint16_t first = number(&n, begin, 1, false);

			assert_true(first == 0 || (first == 1 % rates[r] && phase >= 8));
			for (uint64_t i = 1; i < 2 * rates[r] + 3; i++)
				assert_int_equal(number(&n, begin + i * SECOND / rates[r], 1, false),
						 (first + i) % rates[r]);
		}
	}
}

/* Times are up to 15 ms late, and steps are left out. Sequence numbers tell one from the other. */
static void late_times_do_not_give_a_number_twice(void **state)
{
	struct prng random = { .state = seed };
	struct numbering n = { .wrap = 4800, .by_time = true };
	uint64_t before = 0;

	assert_int_equal(number(&n, SECOND, 1, false), 0);
	for (uint64_t i = 1; i < 50000; i++) {
		uint64_t late = fraction(&random) < 0.05 ?
					(uint64_t)(fraction(&random) * 15e6) : prng_next(&random) % 30000;

		if (fraction(&random) < 0.02)
			i += prng_next(&random) % 300;
		assert_int_equal(number(&n, SECOND + i * SECOND / 4800 + late, i - before, false),
				 i % 4800);
		before = i;
	}
}

/* Without sequence numbers, or with ones that say nothing, the time decides. */
static void numbers_follow_the_time(void **state)
{
	struct numbering n = { .wrap = 4800, .by_time = true };

	number(&n, SECOND, 0, false);
	assert_int_equal(number(&n, SECOND + 100 * SECOND / 4800, 0, true), 100);
	/* A hook left out every second sample before. */
	for (unsigned i = 101; i < 5000; i++)
		assert_int_equal(number(&n, SECOND + i * SECOND / 4800, 2, false), i % 4800);
	/* Samples are missing that no sequence number tells of: some numbers later it is right. */
	for (unsigned i = 5010, told = 0; i < 5300; i++) {
		bool astray;
		uint16_t got = numbering_take(&n, (int64_t)(i * SECOND / 4800 % SECOND), 1, &astray);

		told += astray;
		assert_int_equal(got, (told ? i : i - 10) % 4800);
		assert_int_equal(told, told || i >= 5010 + 128);
	}
}

static void a_wrong_rate_is_told(void **state)
{
	static const unsigned rates[] = { 1000, 4700, 4900, 9600 };

	for (size_t r = 0; r < ARRAY_SIZE(rates); r++) {
		struct numbering n = { .wrap = 4800, .by_time = true };
		unsigned told = 0;

		for (uint64_t i = 0; i < 10000; i++) {
			bool astray;

			numbering_take(&n, (int64_t)(i * SECOND / rates[r] % SECOND), 1, &astray);
			told += astray;
		}
		assert_true(told > 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sequence_goes_on_over_wraps),
		cmocka_unit_test(lost_samples_are_counted),
		cmocka_unit_test(repeated_and_late_samples_are_found),
		cmocka_unit_test(lost_seconds_are_counted),
		cmocka_unit_test(a_publisher_that_begins_again_is_no_loss),
		cmocka_unit_test(a_stated_rate_is_believed_only_while_it_is_true),
		cmocka_unit_test(a_rate_that_was_learned_too_small_is_forgotten),
		cmocka_unit_test(the_time_is_that_next_to_the_receipt),
		cmocka_unit_test(random_streams_are_counted_right),
		cmocka_unit_test(random_numbers_do_no_harm),
		cmocka_unit_test(without_a_time_samples_are_counted),
		cmocka_unit_test(each_second_begins_with_0),
		cmocka_unit_test(late_times_do_not_give_a_number_twice),
		cmocka_unit_test(numbers_follow_the_time),
		cmocka_unit_test(a_wrong_rate_is_told),
	};

	if (argc > 1)
		seed = strtoull(argv[1], NULL, 0);
	if (argc > 2)
		streams = strtoull(argv[2], NULL, 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
