/* SPDX-License-Identifier: BSD-2-Clause */
/* The emulated network: as much is lost as was asked for, and the same again. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/node/socket/netem.h"
#include "util/clock.h"

#define MESSAGES 20000

/* What arrived: numbers, times and whether it was changed. */
struct sink {
	atomic_uint count;
	uint32_t number[2 * MESSAGES];
	uint64_t at_ns[2 * MESSAGES];
	unsigned damaged_bits[2 * MESSAGES];
};

static struct sink first, second;

static void take(void *context, char *buf, size_t len)
{
	struct sink *s = context;
	unsigned i = atomic_load(&s->count);
	uint32_t copies[4];

	assert_int_equal(len, sizeof(copies));
	memcpy(copies, buf, sizeof(copies));
	s->at_ns[i] = clock_monotonic_ns_slow();
	s->damaged_bits[i] = 0;
	for (unsigned k = 1; k < 4; k++)
		s->damaged_bits[i] +=
			(unsigned)__builtin_popcount(copies[0] ^ copies[k]);
	s->number[i] = copies[0];
	atomic_store(&s->count, i + 1);
}

static struct netem *open_with(const char *json, struct sink *to)
{
	struct netem_settings settings = { 0 };
	struct config *c;
	struct netem *n;

	assert_int_equal(config_load_text("test", json, strlen(json), &c), 0);
	assert_int_equal(netem_parse(&settings, c, config_root(c)), 0);
	config_destroy(c);
	atomic_store(&to->count, 0);
	assert_int_equal(netem_open(&n, &settings, take, to), 0);
	return n;
}

static void put(struct netem *n, uint32_t from, uint32_t count)
{
	for (uint32_t i = from; i < from + count; i++) {
		const uint32_t copies[4] = { i, i, i, i };

		netem_put(n, (const char *)copies, sizeof(copies));
	}
}

/* Three and a half standard deviations of a binomial distribution. */
static void assert_share(double percent, unsigned n, unsigned of)
{
	double p = percent / 100, mean = p * of;
	double variance = mean * (1 - p), off = n - mean;

	if (off * off > 12.25 * variance)
		fail_msg("%u of %u are not %g percent", n, of, percent);
}

static void loses_the_share_that_was_asked_for(void **state)
{
	struct netem *n = open_with("{ \"loss\": 10, \"seed\": 7 }", &first);

	put(n, 0, MESSAGES);
	assert_int_equal(first.count, MESSAGES - netem_counters(n)->lost);
	assert_share(10, MESSAGES - first.count, MESSAGES);
	for (unsigned i = 1; i < first.count; i++)
		assert_true(first.number[i] > first.number[i - 1]);
	netem_close(n, "test");
}

static void loses_the_same_again_with_the_same_seed(void **state)
{
	struct netem *a = open_with("{ \"loss\": 30, \"seed\": 42 }", &first);
	struct netem *b = open_with(
		"{ \"loss\": 30, \"duplicate\": 20, \"seed\": 42 }", &second);
	struct netem *c;
	unsigned k = 0;

	put(a, 0, 2000);
	put(b, 0, 2000);
	/* Twice or not, the same ones are lost. */
	for (unsigned i = 0; i < second.count; i++) {
		if (i && second.number[i] == second.number[i - 1])
			continue;
		assert_int_equal(second.number[i], first.number[k++]);
	}
	assert_int_equal(k, first.count);
	c = open_with("{ \"loss\": 30, \"seed\": 43 }", &second);
	put(c, 0, 2000);
	assert_true(first.count != second.count ||
		    memcmp(first.number, second.number, first.count * 4));
	netem_close(a, "test");
	netem_close(b, "test");
	netem_close(c, "test");
}

static void sends_twice_and_damages_one_bit(void **state)
{
	struct netem *n = open_with(
		"{ \"duplicate\": 5, \"corrupt\": 2, \"seed\": 3 }", &first);
	unsigned damaged = 0;

	put(n, 0, MESSAGES);
	assert_share(5, first.count - MESSAGES, MESSAGES);
	for (unsigned i = 0; i < first.count; i++) {
		/* A bit of the first copy differs from all three others. */
		assert_true(first.damaged_bits[i] <= 1 ||
			    first.damaged_bits[i] == 3);
		damaged += first.damaged_bits[i] > 0;
	}
	assert_share(2, damaged, first.count);
	netem_close(n, "test");
}

static void delays_each_message_and_keeps_the_order(void **state)
{
	struct netem *n = open_with("{ \"delay\": 5000, \"seed\": 1 }", &first);
	uint64_t sent_ns = clock_monotonic_ns_slow();

	put(n, 0, 200);
	netem_close(n, "test"); /* waits for them */
	assert_int_equal(first.count, 200);
	for (unsigned i = 0; i < 200; i++) {
		assert_int_equal(first.number[i], i);
		assert_true(first.at_ns[i] >= sent_ns + 5000000);
	}
}

static void jitter_lets_messages_overtake(void **state)
{
	static const char *const settings[] = {
		"{ \"delay\": 3000, \"jitter\": 2000, \"seed\": 5 }",
		"{ \"delay\": 3000, \"jitter\": 1000, \"distribution\": \"normal\", \"seed\": 5 }",
		"{ \"delay\": 3000, \"jitter\": 1000, \"distribution\": \"pareto\", \"seed\": 5 }",
		"{ \"delay\": 3000, \"jitter\": 1000, \"distribution\": \"paretonormal\", \"seed\": 5 }",
	};

	for (size_t k = 0; k < 4; k++) {
		struct netem *n = open_with(settings[k], &first);
		unsigned overtaken = 0;

		put(n, 0, 200);
		netem_close(n, "test");
		assert_int_equal(first.count, 200);
		for (unsigned i = 1; i < 200; i++)
			overtaken += first.number[i] < first.number[i - 1];
		assert_true(overtaken > 20);
	}
}

static void what_is_too_much_or_too_late_is_lost(void **state)
{
	struct netem *n = open_with(
		"{ \"delay\": 10000000, \"limit\": 50, \"seed\": 5 }", &first);
	uint64_t since_ns = clock_monotonic_ns_slow();

	put(n, 0, 100);
	assert_int_equal(netem_counters(n)->overflown, 50);
	netem_close(n, "test");
	assert_int_equal(first.count, 0);
	assert_true(clock_monotonic_ns_slow() - since_ns < 2 * NSEC_PER_SEC);
}

static void refuses_what_is_no_percentage(void **state)
{
	static const char *const wrong[] = {
		"{ \"loss\": 101 }",
		"{ \"corruption\": -1 }",
		"{ \"corruption\": \"much\" }",
		"{ \"corrupt\": 1, \"corruption\": 2 }",
		"{ \"delay\": -1 }",
		"{ \"distribution\": \"odd\" }",
		"{ \"los\": 1 }",
	};

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct netem_settings settings;
		struct config *c;

		assert_int_equal(config_load_text("test", wrong[i],
						  strlen(wrong[i]), &c), 0);
		assert_int_equal(netem_parse(&settings, c, config_root(c)), -EINVAL);
		config_destroy(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loses_the_share_that_was_asked_for),
		cmocka_unit_test(loses_the_same_again_with_the_same_seed),
		cmocka_unit_test(sends_twice_and_damages_one_bit),
		cmocka_unit_test(delays_each_message_and_keeps_the_order),
		cmocka_unit_test(jitter_lets_messages_overtake),
		cmocka_unit_test(what_is_too_much_or_too_late_is_lost),
		cmocka_unit_test(refuses_what_is_no_percentage),
	};

	clock_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
