/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hooks and times that no clock shows: before 1970, at the limits of 64 bits, with
 * nanoseconds out of range. A sanitizer sees what overflows; here stands what is right.
 */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "harness.h"
#include "gateway/plugin/stats.h"
#include "gateway/sample/time.h"

#define R HOOK_NODE_READ
#define P HOOK_PATH

static const int64_t seconds[] = {
	0, 1, -1, -2, 1700000000, -1700000000, INT32_MIN, UINT32_MAX, INT64_C(9223372036),
	INT64_C(9223372037), INT64_C(-9223372037), INT64_C(-9223372038), INT64_MAX / 2,
	INT64_MIN / 2, INT64_MAX - 1, INT64_MAX, INT64_MIN, INT64_MIN + 1,
};

static const long nsecs[] = {
	0, 1, 500000000, 999999999, 1000000000, -1, -1000000000, UINT32_MAX, LONG_MAX, LONG_MIN,
};

#define TIMES (ARRAY_SIZE(seconds) * ARRAY_SIZE(nsecs))

static struct timespec time_number(size_t i)
{
	return (struct timespec){ seconds[i / ARRAY_SIZE(nsecs) % ARRAY_SIZE(seconds)],
				  nsecs[i % ARRAY_SIZE(nsecs)] };
}

static const struct {
	enum hook_place place;
	const char *hook;
} hooks[] = {
	{ R, "{ type = \"average\"; offset = 0; signals = ( \"u\", \"i\" ) }" },
	{ R, "{ type = \"decimate\"; ratio = 2; renumber = true }" },
	{ R, "{ type = \"drop\" }" },
	{ R, "{ type = \"restart\" }" },
	{ R, "{ type = \"fix\" }" },
	{ R, "{ type = \"ts\" }" },
	{ R, "{ type = \"ebm\"; phases = ( ( \"u\", \"i\" ) ) }" },
	{ P, "{ type = \"frame\" }" },
	{ P, "{ type = \"frame\"; interval = \"1ms\"; offset = 0.3 }" },
	{ P, "{ type = \"frame\"; trigger = \"sequence\"; interval = 3; offset = 1 }" },
	{ R, "{ type = \"gate\"; signal = \"u\"; mode = \"above\"; threshold = 0.0; duration = 1e9 }" },
	{ R, "{ type = \"gate\"; signal = \"u\"; duration = 1e-9; samples = 1 }" },
	{ R, "{ type = \"jitter_calc\" }" },
	{ R, "{ type = \"limit_rate\"; rate = 10.0; mode = \"origin\" }" },
	{ R, "{ type = \"limit_rate\"; rate = 1e-9; mode = \"received\" }" },
	{ R, "{ type = \"limit_rate\"; rate = 1e9; mode = \"local\" }" },
	{ R, "{ type = \"pmu\"; signals = ( \"u\" ); sample_rate = 50.0; dft_rate = 10; nominal_freq = 10.0 }" },
	{ R, "{ type = \"pmu\"; signals = ( \"u\" ); sample_rate = 50.0; dft_rate = -10; nominal_freq = 10.0 }" },
	{ R, "{ type = \"ip-dft-pmu\"; signals = ( \"u\" ); sample_rate = 100.0; dft_rate = 10; nominal_freq = 10.0; estimation_range = 5.0 }" },
	{ R, "{ type = \"power\"; window_size = 4; pairings = ( { voltage = \"u\"; current = \"i\" } ) }" },
	{ R, "{ type = \"pps_ts\"; signal = \"u\" }" },
	{ R, "{ type = \"pps_ts\"; signal = \"u\"; mode = \"horizon\"; horizon_estimation = 2; horizon_compensation = 1 }" },
	{ R, "{ type = \"pps_ts\"; signal = \"u\"; mode = \"horizon\"; expected_smp_rate = 1e-3 }" },
	{ R, "{ type = \"reorder_ts\"; window_size = 4; flush = true }" },
	{ R, "{ type = \"shift_ts\"; offset = 9e9 }" },
	{ R, "{ type = \"shift_ts\"; offset = -9e9; mode = \"received\" }" },
	{ R, "{ type = \"shift_seq\"; offset = -5 }" },
	{ R, "{ type = \"skip_first\"; seconds = 1e9 }" },
	{ R, "{ type = \"stats\"; output = \"/dev/null\"; verbose = true; warmup = 5 }" },
	{ R, "{ type = \"print\"; output = \"/dev/null\" }" },
	{ R, "{ type = \"print\"; output = \"/dev/null\"; format = \"csv\" }" },
	{ R, "{ type = \"print\"; output = \"/dev/null\"; format = \"json.kafka\" }" },
#ifdef HAVE_DIGEST
	{ P, "{ type = \"digest\"; uri = \"/dev/null\" }" },
#endif
#ifdef HAVE_LUA
	{ P, "{ type = \"lua\"; signals = ( { name = \"x\"; expression = \"smp.ts_origin[0] + 1\" } ) }" },
#endif
};

/* The numbers wander too: to the limits, and back. */
static uint64_t number(size_t i)
{
	static const uint64_t odd[] = { 0, 1, UINT32_MAX, UINT64_MAX, UINT64_MAX / 2 };

	return i % 7 == 3 ? odd[i / 7 % ARRAY_SIZE(odd)] : i;
}

static void any_time_goes_through_every_hook(void **state)
{
	for (size_t k = 0; k < ARRAY_SIZE(hooks); k++) {
		struct harness t;
		char text[400];

		snprintf(text, sizeof(text),
			 "signals = ( { name = \"u\" }, { name = \"i\" } ); hooks = ( %s );",
			 hooks[k].hook);
		harness_start(&t, hooks[k].place, text);
		for (size_t i = 0; i < 3 * TIMES; i++) {
			struct sample *s = harness_sample(&t, number(i), 0);

			/* Neighbours in the table, and pairs from all over it. */
			s->origin = time_number(i < TIMES ? i : i * 37);
			s->received = time_number(i < TIMES ? i + 1 : i * 11);
			if (i % 53 == 0)
				s->flags |= SAMPLE_NEW_SIMULATION;
			put_real(s, i % 4 < 2 ? 5 : -5);
			put_real(s, 2);
			harness_run(&t, s);
			if (i % 100 == 0)
				hook_list_periodic(t.hooks);
		}
		harness_end(&t);
	}
}

static struct sample *at(struct harness *t, uint64_t sequence, int64_t sec, long nsec)
{
	struct sample *s = harness_sample(t, sequence, 0);

	s->origin = s->received = (struct timespec){ sec, nsec };
	return harness_run(t, s);
}

static void assert_origin(const struct sample *s, int64_t sec, long nsec)
{
	assert_non_null(s);
	assert_true(s->origin.tv_sec == sec);
	assert_int_equal(s->origin.tv_nsec, nsec);
}

static void frames_begin_at_whole_seconds_on_both_sides_of_1970(void **state)
{
	static const struct { int64_t sec; long nsec; bool begins; } steps[] = {
		{ -3, 900000000, true }, { -3, 999999999, false }, { -2, 0, true },
		{ -1, 0, true }, { -1, 999999999, false }, { 0, 0, true }, { 0, 1, false },
		{ 1, 0, true }, { INT64_C(20000000000), 5, true },
		{ INT64_C(20000000000), 6, false }, { INT64_C(20000000001), 0, true },
	};
	struct harness t;

	harness_start(&t, P, "hooks = ( { type = \"frame\" } );");
	for (size_t i = 0; i < ARRAY_SIZE(steps); i++) {
		struct sample *s = at(&t, i, steps[i].sec, steps[i].nsec);

		assert_int_equal(!!(s->flags & SAMPLE_NEW_FRAME), steps[i].begins);
	}
	harness_end(&t);
}

static void the_order_of_times_holds_on_both_sides_of_1970(void **state)
{
	struct harness t;

	harness_start(&t, R, "hooks = ( { type = \"reorder_ts\"; window_size = 2 } );");
	assert_null(at(&t, 1, 1, 0));
	assert_null(at(&t, 2, -1, 500000000));
	assert_origin(at(&t, 3, INT64_C(20000000000), 0), -1, 500000000);
	assert_origin(at(&t, 4, -2, 0), -2, 0);
	harness_end(&t);

	harness_start(&t, R, "hooks = ( { type = \"skip_first\"; seconds = 2.0 } );");
	assert_null(at(&t, 1, -1, 0));
	assert_null(at(&t, 2, 0, 0));
	assert_null(at(&t, 3, 0, 999999999));
	assert_non_null(at(&t, 4, 1, 0));
	harness_end(&t);
}

static void shift_ts_carries_and_ends_at_the_limits(void **state)
{
	struct harness t;

	harness_start(&t, R, "hooks = ( { type = \"shift_ts\"; offset = -1.75 } );");
	assert_origin(at(&t, 1, 0, 250000000), -2, 500000000);
	assert_origin(at(&t, 2, -1, 750000000), -2, 0);
	assert_origin(at(&t, 3, -5, 0), -7, 250000000);
	assert_origin(at(&t, 4, INT64_MIN, 5), INT64_MIN, 0);
	assert_origin(at(&t, 5, INT64_C(20000000000), 0), INT64_C(19999999998), 250000000);
	harness_end(&t);
	harness_start(&t, R, "hooks = ( { type = \"shift_ts\"; offset = 0.5 } );");
	assert_origin(at(&t, 1, -1, 500000000), 0, 0);
	assert_origin(at(&t, 2, INT64_MAX, 600000000), INT64_MAX, 999999999);
	assert_origin(at(&t, 3, 7, 1500000000), 9, 0);
	harness_end(&t);
}

/* One wrong stamp of the far future must not silence the source for ever. */
static void limit_rate_goes_on_after_a_stamp_of_the_far_future(void **state)
{
	struct harness t;

	harness_start(&t, R, "hooks = ( { type = \"limit_rate\"; rate = 10.0; mode = \"origin\" } );");
	assert_non_null(at(&t, 1, 100, 0));
	assert_null(at(&t, 2, 100, 50000000));
	assert_null(at(&t, 3, 99, 950000000));
	assert_non_null(at(&t, 4, INT64_MAX, 0));
	assert_non_null(at(&t, 5, 100, 100000000));
	assert_null(at(&t, 6, 100, 150000000));
	assert_non_null(at(&t, 7, 100, 200000000));
	harness_end(&t);
	harness_start(&t, R, "hooks = ( { type = \"limit_rate\"; rate = 10.0; mode = \"origin\" } );");
	assert_non_null(at(&t, 1, -1, 950000000));
	assert_null(at(&t, 2, 0, 49999999));
	assert_non_null(at(&t, 3, 0, 50000000));
	harness_end(&t);
}

static void stats_measure_across_1970(void **state)
{
	struct harness t;

	harness_start(&t, R, "hooks = ( { type = \"stats\"; output = \"/dev/null\" } );");
	for (int i = 0; i < 4; i++) {
		struct sample *s = harness_sample(&t, (uint64_t)i, 0);

		s->origin = (struct timespec){ i - 2, 250000000 };
		s->received = (struct timespec){ i - 2, 750000000 };
		harness_run(&t, s);
	}
	assert_true(node_stats_value(&t.node, STATS_OWD, STATS_HIGHEST) == 0.5);
	assert_true(node_stats_value(&t.node, STATS_OWD, STATS_LOWEST) == 0.5);
	assert_true(node_stats_value(&t.node, STATS_GAP_SENT, STATS_HIGHEST) == 1);
	assert_true(node_stats_value(&t.node, STATS_GAP_RECEIVED, STATS_LOWEST) == 1);
	harness_end(&t);
}

/* Ten samples a second, an edge at each whole one; the first edge at second `from`. */
static void pulse_from(int64_t from, const char *mode)
{
	struct harness t;
	char text[200];

	snprintf(text, sizeof(text),
		 "signals = ( { name = \"p\" } ); hooks = ( { type = \"pps_ts\"; signal = \"p\"; mode = \"%s\" } );",
		 mode);
	harness_start(&t, R, text);
	for (int i = -5; i < 40; i++) {
		struct timespec time = sample_time_add_ns((struct timespec){ from, 0 },
							  i * INT64_C(100000000));
		struct sample *s = harness_sample(&t, (uint64_t)(i + 5), 0);

		s->received = sample_time_add_ns(time, 1000000);
		put_real(s, i >= 0 && i % 10 == 0 ? 5 : 0);
		s = harness_run(&t, s);
		if (i >= 10 && (!s || llabs(sample_time_since_ns(s->origin, time)) > 2))
			fail_msg("%s: sample %d from second %jd has %jd s %ld ns", mode, i,
				 (intmax_t)from, s ? (intmax_t)s->origin.tv_sec : 0,
				 s ? s->origin.tv_nsec : 0);
	}
	harness_end(&t);
}

static void pps_ts_stamps_any_second(void **state)
{
	static const int64_t from[] = { 1700000000, 0, -2, -1, -1700000000, UINT32_MAX,
					INT64_C(9223372035), INT64_C(20000000000),
					INT64_C(-20000000000) };

	for (size_t i = 0; i < ARRAY_SIZE(from); i++) {
		pulse_from(from[i], "simple");
		pulse_from(from[i], "horizon");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_time_goes_through_every_hook),
		cmocka_unit_test(frames_begin_at_whole_seconds_on_both_sides_of_1970),
		cmocka_unit_test(the_order_of_times_holds_on_both_sides_of_1970),
		cmocka_unit_test(shift_ts_carries_and_ends_at_the_limits),
		cmocka_unit_test(limit_rate_goes_on_after_a_stamp_of_the_far_future),
		cmocka_unit_test(stats_measure_across_1970),
		cmocka_unit_test(pps_ts_stamps_any_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
