/* SPDX-License-Identifier: BSD-2-Clause */
/* Sets of processors, and what is concluded from measured figures. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bench/tune/check.h"
#include "bench/tune/cpus.h"
#include "bench/tune/measure.h"
#include "util/prng.h"

#define MS 1000000ull

static void lists_and_masks_say_the_same(void **state)
{
	static const struct {
		const char *list, *mask;
	} sets[] = {
		{ "", "0" }, { "0", "1" }, { "0-3", "f" }, { "1,3", "a" },
		{ "0,31-33", "3,80000001" }, { "64", "1,00000000,00000000" },
		{ "4095", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		struct tune_cpus a, b;
		char text[4096];

		assert_int_equal(tune_cpus_parse_list(sets[i].list, &a), 0);
		assert_int_equal(tune_cpus_print_list(&a, text, sizeof(text)), 0);
		assert_string_equal(text, sets[i].list);
		assert_int_equal(tune_cpus_print_mask(&a, text, sizeof(text)), 0);
		if (sets[i].mask)
			assert_string_equal(text, sets[i].mask);
		assert_int_equal(tune_cpus_parse_mask(text, &b), 0);
		assert_true(tune_cpus_equal(&a, &b));
	}
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const wrong[] = { "a", "1-", "-1", "3-1", "1,,2", ",1", "1,", "1 2",
					     "0x1", "4096", "99999999999999999999", "1;2" };
	static const char *const no_mask[] = { "", "g", "1 2", "0x1" };
	struct tune_cpus c;
	char tiny[4];

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_true(tune_cpus_parse_list(wrong[i], &c) < 0);
	for (size_t i = 0; i < sizeof(no_mask) / sizeof(no_mask[0]); i++)
		assert_true(tune_cpus_parse_mask(no_mask[i], &c) < 0);
	/* Never a part of a set. */
	assert_int_equal(tune_cpus_parse_list("10-20", &c), 0);
	assert_int_equal(tune_cpus_print_list(&c, tiny, sizeof(tiny)), -ENAMETOOLONG);
}

/* 4 ms in each 100 ms, with the noise of interrupts between. */
static size_t make_gaps(struct tune_gap *g, size_t regular, size_t noise)
{
	struct prng r;
	size_t n = 0;
	uint64_t at = 0;

	r = prng_from(7);
	for (size_t i = 0; i < regular; i++) {
		for (size_t k = 0; k < noise; k++)
			g[n++] = (struct tune_gap){ .at_ns = i * 100 * MS + (k + 1) * 7 * MS +
						    prng_next(&r) % MS, .ns = 25000 };
		at = (i + 1) * 100 * MS + prng_next(&r) % MS;
		g[n++] = (struct tune_gap){ .at_ns = at, .ns = 4 * MS + prng_next(&r) % 50000 };
	}
	return n;
}

static void a_period_is_found_among_noise(void **state)
{
	struct tune_gap g[256];
	struct tune_gaps out;
	const struct tune_taken *t = &out.by[TUNE_BELOW];
	size_t n = make_gaps(g, 20, 3);

	(void)state;
	tune_gaps_evaluate(g, n, 2000 * MS, &out);
	assert_int_equal(t->count, n);
	assert_int_equal(out.by[TUNE_SWITCHED].count, 0);
	assert_in_range(t->period_ns, 98 * MS, 102 * MS);
	assert_in_range(t->regular_ns, 4 * MS, 4 * MS + 50000);
	assert_in_range(t->lost_ns, 80 * MS, 83 * MS);
}

/* A busy system does not hide what its hypervisor does. */
static void a_period_is_found_between_other_programs(void **state)
{
	struct tune_gap g[256];
	struct tune_gaps out;
	struct prng r = prng_from(3);
	size_t n = make_gaps(g, 20, 3);

	(void)state;
	for (size_t i = 0; i < n; i++)
		if (g[i].ns < MS) {
			g[i].switched = true;
			g[i].ns = prng_below(&r, 50 * MS);
		}
	tune_gaps_evaluate(g, n, 2000 * MS, &out);
	assert_int_equal(out.by[TUNE_BELOW].count, 20);
	assert_int_equal(out.by[TUNE_SWITCHED].count, 60);
	assert_in_range(out.by[TUNE_BELOW].period_ns, 98 * MS, 102 * MS);
}

static void no_period_is_seen_where_there_is_none(void **state)
{
	struct tune_gap g[64];
	struct tune_gaps out;
	const struct tune_taken *t = &out.by[TUNE_BELOW];
	struct prng r;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		uint64_t at = 0;

		r = prng_from(seed);
		for (size_t i = 0; i < 64; i++) {
			/* From 1 to 60 ms, most of them short. */
			at += MS + (prng_next(&r) % (60 * MS) >> prng_next(&r) % 6);
			g[i] = (struct tune_gap){ .at_ns = at,
						  .ns = 30000 + prng_next(&r) % (10 * MS) };
		}
		tune_gaps_evaluate(g, 64, at, &out);
		assert_int_equal(t->period_ns, 0);
	}
	tune_gaps_evaluate(g, 0, 1000 * MS, &out);
	assert_int_equal(t->period_ns, 0);
	assert_int_equal(t->longest_ns, 0);
	/* Too few to say. */
	tune_gaps_evaluate(g, 3, 1000 * MS, &out);
	assert_int_equal(t->period_ns, 0);
}

static void the_sentence_names_who_takes_the_processors(void **state)
{
	struct tune_gap g[256];
	struct tune_gaps gaps = { .cpu = 1 };
	struct check c = { .gaps = &gaps, .gaps_count = 1, .host.virtual = true };
	char text[320];

	(void)state;
	tune_gaps_evaluate(g, make_gaps(g, 20, 0), 2000 * MS, &gaps);
	c.steal_ns = (double)gaps.by[TUNE_BELOW].lost_ns;
	check_gaps_sentence(&c, TUNE_BELOW, text, sizeof(text));
	assert_non_null(strstr(text, "your hypervisor takes the processors away for 4.0 ms every 100 ms"));
	check_gaps_sentence(&c, TUNE_SWITCHED, text, sizeof(text));
	assert_non_null(strstr(text, "no other program"));
	c.steal_ns = 0;
	check_gaps_sentence(&c, TUNE_BELOW, text, sizeof(text));
	assert_non_null(strstr(text, "or interrupts"));
	c.host.virtual = false;
	check_gaps_sentence(&c, TUNE_BELOW, text, sizeof(text));
	assert_non_null(strstr(text, "firmware"));
	gaps.by[TUNE_SWITCHED] = gaps.by[TUNE_BELOW];
	check_gaps_sentence(&c, TUNE_SWITCHED, text, sizeof(text));
	assert_non_null(strstr(text, "other programs"));
}

static struct tune_latency latency(const double off[5], const double on[5])
{
	struct tune_latency l = { 0 };

	memcpy(l.median_ns[TUNE_FLAG_OFF], off, sizeof(l.median_ns[0]));
	memcpy(l.median_ns[TUNE_FLAG_ON], on, sizeof(l.median_ns[0]));
	return l;
}

static void the_flag_is_judged_by_more_than_chance(void **state)
{
	const double low[] = { 2000, 2010, 1990, 2020, 2000 };
	const double high[] = { 2700, 2690, 2720, 2710, 2700 };
	const double mixed[] = { 1900, 2100, 2005, 1980, 2300 };
	const double hardly[] = { 2021, 2022, 2023, 2024, 2025 };
	struct tune_latency l = latency(low, high);
	struct tune_wake w = { 0 };

	(void)state;
	assert_int_equal(tune_flag_judge(&l), TUNE_FLAG_HARMS);
	l = latency(high, low);
	assert_int_equal(tune_flag_judge(&l), TUNE_FLAG_HELPS);
	l = latency(low, mixed);
	assert_int_equal(tune_flag_judge(&l), TUNE_FLAG_EQUAL);
	l = latency(low, hardly);
	assert_int_equal(tune_flag_judge(&l), TUNE_FLAG_EQUAL);
	l = latency(low, low);
	assert_int_equal(tune_flag_judge(&l), TUNE_FLAG_EQUAL);
	assert_non_null(strstr(check_flag_sentence(&w), "not measured"));
	w.timer.verdict = TUNE_FLAG_HELPS;
	w.poll.verdict = TUNE_FLAG_HARMS;
	assert_non_null(strstr(check_flag_sentence(&w), "not for those that poll"));
	w.timer.verdict = TUNE_FLAG_EQUAL;
	assert_non_null(strstr(check_flag_sentence(&w), "force_latency"));
}

/* On whatever machine: figures that can be. */
static void a_measurement_gives_possible_figures(void **state)
{
	struct tune_cpus all;
	struct tune_gaps *gaps;
	size_t count;

	(void)state;
	memset(&all, 0xff, sizeof(all));
	assert_int_equal(tune_gaps_measure(&all, 30 * MS, &gaps, &count), 0);
	assert_true(count > 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(gaps[i].err, 0);
		assert_true(gaps[i].duration_ns >= 29 * MS);
		for (int k = 0; k < TUNE_TAKERS; k++) {
			const struct tune_taken *t = &gaps[i].by[k];

			assert_true(t->lost_ns <= gaps[i].duration_ns);
			assert_true(t->longest_ns <= t->lost_ns);
			assert_true(t->lost_ns >= t->count * TUNE_GAP_NS);
		}
	}
	free(gaps);
	memset(&all, 0, sizeof(all));
	assert_int_equal(tune_gaps_measure(&all, MS, &gaps, &count), -ENODEV);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists_and_masks_say_the_same),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(a_period_is_found_among_noise),
		cmocka_unit_test(a_period_is_found_between_other_programs),
		cmocka_unit_test(no_period_is_seen_where_there_is_none),
		cmocka_unit_test(the_sentence_names_who_takes_the_processors),
		cmocka_unit_test(the_flag_is_judged_by_more_than_chance),
		cmocka_unit_test(a_measurement_gives_possible_figures),
	};

	return cmocka_run_group_tests_name("tune: figures", tests, NULL, NULL);
}
