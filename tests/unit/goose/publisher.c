/* SPDX-License-Identifier: BSD-2-Clause */
/* When a publisher of GOOSE sends, and with which numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/node/iec61850-8-1/publisher.h"
#include "util/container_of.h"
#include "util/prng.h"

#define MS UINT64_C(1000000)

static const struct goose_repetition usual = { 2 * MS, 1000 * MS, 2, 1 };

static struct goose_publisher p;
static struct goose_publication out;

static void sends(uint64_t now_ns, uint32_t state, uint32_t sequence)
{
	assert_false(now_ns && goose_publisher_take(&p, now_ns - 1, &out));
	assert_true(goose_publisher_take(&p, now_ns, &out));
	assert_int_equal(out.state, state);
	assert_int_equal(out.sequence, sequence);
}

static void sends_nothing_before_the_first_values(void **state)
{
	goose_publisher_begin(&p, &usual, 0);
	assert_false(goose_publisher_take(&p, UINT64_MAX - 1, &out));
	goose_publisher_change(&p, 5);
	sends(5, 1, 0);
}

static void repeats_at_intervals_that_grow_to_the_stable_one(void **state)
{
	static const uint64_t after_ms[] = { 0, 2, 6, 14, 30, 62, 126, 254, 510, 1022, 2022, 3022 };

	goose_publisher_begin(&p, &usual, 0);
	goose_publisher_change(&p, 7 * MS);
	for (uint32_t i = 0; i < ARRAY_SIZE(after_ms); i++)
		sends((7 + after_ms[i]) * MS, 1, i);
}

static void a_change_begins_the_intervals_and_numbers_again(void **state)
{
	goose_publisher_begin(&p, &usual, 0);
	goose_publisher_change(&p, 0);
	sends(0, 1, 0);
	sends(2 * MS, 1, 1);
	sends(6 * MS, 1, 2);
	goose_publisher_change(&p, 7 * MS);
	sends(7 * MS, 2, 0);
	sends(9 * MS, 2, 1);
	/* Before its first message was sent. */
	goose_publisher_change(&p, 10 * MS);
	goose_publisher_change(&p, 10 * MS);
	sends(10 * MS, 4, 0);
}

static void a_publisher_that_was_stopped_goes_on_with_its_states(void **state)
{
	goose_publisher_begin(&p, &usual, 0);
	assert_true(goose_publisher_is_silent(&p));
	goose_publisher_change(&p, 0);
	assert_false(goose_publisher_is_silent(&p));
	sends(0, 1, 0);
	goose_publisher_begin(&p, &usual, p.state);
	assert_true(goose_publisher_is_silent(&p));
	assert_false(goose_publisher_take(&p, 5 * MS, &out));
	goose_publisher_change(&p, 7 * MS);
	sends(7 * MS, 2, 0);
}

static void a_burst_is_sent_at_once(void **state)
{
	const struct goose_repetition r = { 2 * MS, 1000 * MS, 2, 3 };

	goose_publisher_begin(&p, &r, 0);
	goose_publisher_change(&p, 10);
	for (uint32_t i = 0; i < 3; i++) {
		assert_true(goose_publisher_take(&p, 10, &out));
		assert_int_equal(out.sequence, i);
	}
	sends(10 + 2 * MS, 1, 3);
}

static void a_late_caller_makes_up_nothing(void **state)
{
	goose_publisher_begin(&p, &usual, 0);
	goose_publisher_change(&p, 0);
	sends(0, 1, 0);
	assert_true(goose_publisher_take(&p, 500 * MS, &out));
	assert_int_equal(out.sequence, 1);
	sends(504 * MS, 1, 2);
}

static void numbers_go_on_at_one_behind_the_largest(void **state)
{
	goose_publisher_begin(&p, &usual, 0);
	p.state = UINT32_MAX - 1;
	goose_publisher_change(&p, 0);
	sends(0, UINT32_MAX, 0);
	p.sequence = UINT32_MAX;
	sends(2 * MS, UINT32_MAX, UINT32_MAX);
	sends(6 * MS, UINT32_MAX, 1);
	goose_publisher_change(&p, 7 * MS);
	sends(7 * MS, 1, 0);
}

static void the_factor_and_the_limits_hold(void **state)
{
	struct goose_repetition r = { 4 * MS, 4 * MS, 1, 1 };

	goose_publisher_begin(&p, &r, 0);
	goose_publisher_change(&p, 0);
	for (uint32_t i = 0; i < 10; i++)
		sends(4 * MS * i, 1, i);
	r = (struct goose_repetition){ 4 * MS, 10 * MS, 1.5, 1 };
	goose_publisher_begin(&p, &r, 0);
	goose_publisher_change(&p, 0);
	sends(0, 1, 0);
	sends(4 * MS, 1, 1);
	sends(10 * MS, 1, 2);
	sends(19 * MS, 1, 3);
	sends(29 * MS, 1, 4);
}

/* Any patterns, changes and late callers: no interval is longer than the longest one, unless the
 * caller is late; and numbers go on one by one. */
static void any_run_keeps_the_rules(void **state)
{
	struct prng random = { .state = 11 };

	for (unsigned run = 0; run < 2000; run++) {
		uint64_t min_ns = 1 + prng_next(&random) % (100 * MS), now = prng_next(&random) % MS;
		const struct goose_repetition r = {
			min_ns, min_ns + prng_next(&random) % (1000 * MS),
			1 + (double)(prng_next(&random) % 50) / 10,
			1 + (unsigned)(prng_next(&random) % 4) };
		uint32_t changes = 0, sequence = 0;

		goose_publisher_begin(&p, &r, 0);
		for (unsigned step = 0; step < 60; step++) {
			if (!changes || prng_next(&random) % 5 == 0) {
				goose_publisher_change(&p, now);
				changes++;
				sequence = 0;
			}
			while (goose_publisher_take(&p, now, &out)) {
				assert_int_equal(out.state, changes);
				assert_int_equal(out.sequence, sequence++);
			}
			assert_true(sequence >= r.burst);
			assert_true(p.next_ns >= now + r.min_ns || !sequence ||
				    sequence > r.burst || p.next_ns > now);
			assert_true(p.next_ns <= now + r.max_ns);
			now = prng_next(&random) % 3 ? p.next_ns :
						       now + prng_next(&random) % r.max_ns;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sends_nothing_before_the_first_values),
		cmocka_unit_test(repeats_at_intervals_that_grow_to_the_stable_one),
		cmocka_unit_test(a_change_begins_the_intervals_and_numbers_again),
		cmocka_unit_test(a_publisher_that_was_stopped_goes_on_with_its_states),
		cmocka_unit_test(a_burst_is_sent_at_once),
		cmocka_unit_test(a_late_caller_makes_up_nothing),
		cmocka_unit_test(numbers_go_on_at_one_behind_the_largest),
		cmocka_unit_test(the_factor_and_the_limits_hold),
		cmocka_unit_test(any_run_keeps_the_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
