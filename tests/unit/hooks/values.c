/* SPDX-License-Identifier: BSD-2-Clause */
/* Hooks that work on values: average, cast, limit_value, round, scale. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "gateway/hook/part/select.h"
#include "harness.h"

#define R HOOK_NODE_READ
#define ABC "signals = ( { name = \"a\"; unit = \"V\" }, { name = \"b\"; type = \"integer\" }, { name = \"c\" } ); "
#define ALL_TYPES                                                              \
	"signals = ( { name = \"f\" }, { name = \"i\"; type = \"integer\" }, " \
	"{ name = \"b\"; type = \"boolean\" }, { name = \"z\"; type = \"complex\" } ); "

static struct sample *abc(struct harness *t, double a, int64_t b, double c)
{
	struct sample *s = harness_sample(t, 1, 1000);

	put_real(s, a);
	put_integer(s, b);
	put_real(s, c);
	return harness_run(t, s);
}

static struct sample *all_types(struct harness *t, double f, int64_t i, bool b,
				float re, float im)
{
	struct sample *s = harness_sample(t, 1, 1000);

	put_real(s, f);
	put_integer(s, i);
	put_integer(s, b);
	put_complex(s, re, im);
	return harness_run(t, s);
}

static void average_inserts_the_mean_where_it_is_told(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, ABC "hooks = ( { type = \"average\"; signals = ( \"a\", \"b\" ); offset = 1 } );");
	assert_int_equal(t.out->count, 4);
	assert_string_equal(t.out->signals[0].name, "a");
	assert_string_equal(t.out->signals[0].unit, "V");
	assert_string_equal(t.out->signals[1].name, "average");
	assert_int_equal(t.out->signals[1].type, SIGNAL_FLOAT);
	assert_string_equal(t.out->signals[2].name, "b");
	assert_int_equal(t.out->signals[2].type, SIGNAL_INTEGER);
	s = abc(&t, 1.5, 4, 100);
	assert_int_equal(s->length, 4);
	assert_ptr_equal(s->signals, t.out);
	assert_true(s->data[0].f == 1.5 && s->data[1].f == 2.75);
	assert_int_equal(s->data[2].i, 4);
	assert_true(s->data[3].f == 100);
	harness_end(&t);
}

static void average_can_stand_at_both_ends(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, HOOK_NODE_WRITE, ABC "hooks = ( { type = \"average\"; signals = ( 0, 2 ); offset = 3 },"
			 " { type = \"average\"; signals = ( \"a\" ); offset = 0 } );");
	assert_int_equal(t.out->count, 5);
	s = abc(&t, 1, 7, 4);
	assert_int_equal(s->length, 5);
	assert_true(s->data[0].f == 1 && s->data[1].f == 1);
	assert_true(s->data[4].f == 2.5);
	harness_end(&t);
}

static void average_makes_room_for_its_value(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, "signals = \"8f\"; hooks = ( { type = \"average\"; signals = ( \"signal0\", \"signal7\" ); offset = 8 } );");
	assert_int_equal(t.capacity, 9);
	s = harness_sample(&t, 0, 0);
	for (int i = 0; i < 8; i++)
		put_real(s, i);
	s = harness_run(&t, s);
	assert_int_equal(s->length, 9);
	assert_true(s->data[8].f == 3.5);
	harness_end(&t);
}

static void a_later_hook_finds_the_new_signal_by_name(void **state)
{
	struct harness t;
	struct sample *s;

	/* Average, scaled, under a new name, limited: each by the last one's name. */
	harness_start(&t, R, ABC "hooks = ( { type = \"average\"; signals = ( \"a\", \"c\" ); offset = 0 },"
			 " { type = \"scale\"; signal = \"average\"; scale = 10.0; offset = 1.0 },"
			 " { type = \"cast\"; signal = \"average\"; new_name = \"load\"; new_unit = \"%\"; new_type = \"integer\" },"
			 " { type = \"limit_value\"; signal = \"load\"; min = 0; max = 20 } );");
	assert_string_equal(t.out->signals[0].name, "load");
	assert_string_equal(t.out->signals[0].unit, "%");
	s = abc(&t, 1, 0, 2.05);
	assert_int_equal(s->data[0].i, 16);
	assert_true(s->data[1].f == 1);
	s = abc(&t, 10, 0, 20);
	assert_int_equal(s->data[0].i, 20);
	harness_end(&t);
}

static void cast_converts_between_all_types(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, ALL_TYPES "hooks = ( { type = \"cast\"; signals = ( \"f\", \"b\", \"z\" ); new_type = \"integer\" } );");
	s = all_types(&t, -2.9, 3, true, 7.5f, 1);
	assert_int_equal(s->data[0].i, -2);
	assert_int_equal(s->data[1].i, 3);
	assert_int_equal(s->data[2].i, 1);
	assert_int_equal(s->data[3].i, 7);
	s = all_types(&t, 1e300, 3, false, 0, 0);
	assert_true(s->data[0].i == INT64_MAX);
	s = all_types(&t, (double)NAN, 3, false, 0, 0);
	assert_int_equal(s->data[0].i, 0);
	harness_end(&t);

	harness_start(&t, R, ALL_TYPES "hooks = ( { type = \"cast\"; signals = ( 0, 1, 2, 3 ); new_type = \"float\" } );");
	s = all_types(&t, 0.25, -9, true, 1.5f, 2);
	assert_true(s->data[0].f == 0.25 && s->data[1].f == -9);
	assert_true(s->data[2].f == 1 && s->data[3].f == 1.5);
	for (unsigned i = 0; i < 4; i++)
		assert_int_equal(t.out->signals[i].type, SIGNAL_FLOAT);
	harness_end(&t);

	harness_start(&t, R, ALL_TYPES "hooks = ( { type = \"cast\"; signals = ( 0, 1, 3 ); new_type = \"boolean\" } );");
	s = all_types(&t, 0.001, 0, true, 0, 2);
	assert_int_equal(s->data[0].i, 1);
	assert_int_equal(s->data[1].i, 0);
	assert_int_equal(s->data[3].i, 1);
	harness_end(&t);

	harness_start(&t, R, ALL_TYPES "hooks = ( { type = \"cast\"; signals = ( 0, 1, 2 ); new_type = \"complex\" } );");
	s = all_types(&t, 0.5, -4, true, 3, 2);
	assert_true(s->data[0].z.re == 0.5f && s->data[0].z.im == 0);
	assert_true(s->data[1].z.re == -4 && s->data[2].z.re == 1);
	assert_true(s->data[3].z.re == 3 && s->data[3].z.im == 2);
	harness_end(&t);
}

static void cast_renames_and_leaves_values_alone(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, HOOK_PATH, ABC "hooks = ( { type = \"cast\"; signal = \"b\"; new_name = \"n\" } );");
	assert_string_equal(t.out->signals[1].name, "n");
	assert_int_equal(t.out->signals[1].type, SIGNAL_INTEGER);
	assert_string_equal(t.in->signals[1].name, "b");
	s = abc(&t, 0, INT64_MAX, 0);
	assert_true(s->data[1].i == INT64_MAX);
	harness_end(&t);

	harness_start(&t, HOOK_PATH, ABC "hooks = ( { type = \"cast\"; signals = ( \"a\", \"b\" ); new_name = \"n\" } );");
	assert_non_null(strstr(fake_log(), "2 signals are called 'n'"));
	harness_end(&t);
}

static void limit_value_keeps_values_between(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, ABC "hooks = ( { type = \"limit_value\"; signals = ( \"a\", \"b\" ); min = -1.5; max = 2.5 } );");
	s = abc(&t, 3, 3, 3);
	assert_true(s->data[0].f == 2.5 && s->data[1].i == 2);
	assert_true(s->data[2].f == 3);
	s = abc(&t, -3, -3, -3);
	assert_true(s->data[0].f == -1.5 && s->data[1].i == -1);
	s = abc(&t, 1.25, 0, 0);
	assert_true(s->data[0].f == 1.25 && s->data[1].i == 0);
	s = abc(&t, (double)INFINITY, 0, 0);
	assert_true(s->data[0].f == 2.5);
	s = abc(&t, (double)NAN, 0, 0);
	assert_true(isnan(s->data[0].f));
	harness_end(&t);
}

static void round_rounds_half_away_from_zero(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, ALL_TYPES "hooks = ( { type = \"round\"; signals = ( 0, 1, 2, 3 ); precision = 0 } );");
	s = all_types(&t, 2.5, 7, true, 0.5f, -1.49f);
	assert_true(s->data[0].f == 3 && s->data[1].i == 7 && s->data[2].i == 1);
	assert_true(s->data[3].z.re == 1 && s->data[3].z.im == -1);
	s = all_types(&t, -2.5, 0, 0, 0, 0);
	assert_true(s->data[0].f == -3);
	harness_end(&t);

	/* One place, as in VILLASnode, where nothing is said. */
	harness_start(&t, R, ABC "hooks = ( { type = \"round\"; signal = \"a\" } );");
	assert_true(abc(&t, 3.14159, 0, 0)->data[0].f == 3.1);
	assert_true(abc(&t, -0.25, 0, 0)->data[0].f == -0.3);
	harness_end(&t);

	harness_start(&t, R, ABC "hooks = ( { type = \"round\"; signal = \"a\"; precision = 2 } );");
	assert_true(abc(&t, 3.14159, 0, 0)->data[0].f == 3.14);
	assert_true(abc(&t, -0.005, 0, 0)->data[0].f == -0.01);
	/* Nothing to round: exactly as it was, and no overflow. */
	assert_true(abc(&t, 9007199254740993.0, 0, 0)->data[0].f == 9007199254740993.0);
	assert_true(abc(&t, 1e308, 0, 0)->data[0].f == 1e308);
	assert_true(isnan(abc(&t, (double)NAN, 0, 0)->data[0].f));
	harness_end(&t);
}

static void scale_multiplies_and_adds(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, ALL_TYPES "hooks = ( { type = \"scale\"; signals = ( 0, 1, 2, 3 ); scale = 2.5; offset = -1 } );");
	s = all_types(&t, 4, 3, true, 2, 4);
	assert_true(s->data[0].f == 9 && s->data[1].i == 6 && s->data[2].i == 1);
	assert_true(s->data[3].z.re == 4 && s->data[3].z.im == 10);
	harness_end(&t);
}

static void scale_of_small_integers_is_that_of_doubles(void **state)
{
	struct harness t;

	/* 10 * 0.7 is 7 in double, and a little less with more bits. */
	harness_start(&t, R, ABC "hooks = ( { type = \"scale\"; signal = \"b\"; scale = 0.7 } );");
	assert_true(abc(&t, 0, 10, 0)->data[1].i == 7);
	assert_true(abc(&t, 0, -10, 0)->data[1].i == -7);
	harness_end(&t);
}

static void scale_keeps_integers_beyond_53_bits(void **state)
{
	static const int64_t values[] = { INT64_MAX, INT64_MIN,
					  (INT64_C(1) << 53) + 1 };
	struct harness t;

	/* Where long double is no longer than double it cannot. */
	if (LDBL_MANT_DIG < 64)
		skip();
	harness_start(&t, R, ABC "hooks = ( { type = \"scale\"; signal = \"b\"; scale = 1 } );");
	for (size_t i = 0; i < ARRAY_SIZE(values); i++)
		assert_true(abc(&t, 0, values[i], 0)->data[1].i == values[i]);
	harness_end(&t);
	harness_start(&t, R, ABC "hooks = ( { type = \"scale\"; signal = \"b\"; scale = -2; offset = 1 } );");
	assert_true(abc(&t, 0, values[2], 0)->data[1].i == -2 * values[2] + 1);
	assert_true(abc(&t, 0, INT64_MAX, 0)->data[1].i == INT64_MIN);
	assert_true(abc(&t, 0, INT64_MIN, 0)->data[1].i == INT64_MAX);
	harness_end(&t);
}

static void gain_is_the_same_as_scale(void **state)
{
	struct harness t;

	harness_start(&t, R, ABC "hooks = ( { type = \"scale\"; signal = \"a\"; gain = 3 } );");
	assert_true(abc(&t, 2, 0, 0)->data[0].f == 6);
	harness_end(&t);
	harness_start(&t, R, ABC "hooks = ( { type = \"scale\"; signal = \"a\"; gain = 3; scale = 3.0 } );");
	assert_true(abc(&t, 2, 0, 0)->data[0].f == 6);
	harness_end(&t);
}

static void without_known_signals_default_names_and_indices_count(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, "hooks = ( { type = \"scale\"; signals = ( \"signal1\", 0 ); scale = 2 },"
			 " { type = \"average\"; signals = ( 0, 1 ); offset = 0 } );");
	assert_int_equal(t.out->count, 65);
	assert_string_equal(t.out->signals[0].name, "average");
	s = harness_sample(&t, 1, 1000);
	put_real(s, 1);
	put_real(s, 2);
	s = harness_run(&t, s);
	assert_int_equal(s->length, 3);
	assert_true(s->data[0].f == 3 && s->data[1].f == 2 && s->data[2].f == 4);
	harness_end(&t);
}

static void short_samples_are_left_as_short_as_they_are(void **state)
{
	struct harness t;
	struct sample *s;

	harness_start(&t, R, ABC "hooks = ( { type = \"scale\"; signals = ( 0, 2 ); scale = 2 },"
			 " { type = \"round\"; signal = 2 }, { type = \"limit_value\"; signal = 2; min = 0; max = 1 },"
			 " { type = \"cast\"; signal = 2; new_type = \"integer\" } );");
	s = harness_step(&t, 1, 4);
	assert_int_equal(s->length, 1);
	assert_true(s->data[0].f == 8);
	harness_end(&t);
}

static void a_reader_of_the_same_sample_sees_no_change(void **state)
{
	struct harness t;
	struct sample *s, *mine;

	harness_start(&t, R, ABC "hooks = ( { type = \"scale\"; signal = \"a\"; scale = 2 } );");
	s = mine = harness_sample(&t, 1, 1000);
	put_real(s, 21);
	sample_get(mine);
	s = harness_run(&t, s);
	assert_ptr_not_equal(s, mine);
	assert_true(s->data[0].f == 42 && mine->data[0].f == 21);
	sample_put(mine);
	harness_end(&t);
}

static void selections_that_make_no_sense_are_refused(void **state)
{
	expect_refused(R, ABC "hooks = ( \"scale\" );", "hooks[0].signals: missing, but required");
	expect_refused(R, ABC "hooks = ( { type = \"scale\" } );", "test.conf:1: hooks[0].signals: missing, but required");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signal = \"a\"; signals = ( \"b\" ) } );", "stands beside `signal`");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signals = ( ) } );", "the list names no signal");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signal = ( \"a\" ) } );", "hooks[0].signal: expected one signal, found a list");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signal = 1.5 } );", "expected the name or the index");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signals = ( \"a\", { } ) } );", "hooks[0].signals[1]: expected the name or the index");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signals = ( \"a\", true ) } );", "hooks[0].signals: expected the name or the index");
	expect_refused(R, "signals = ( { name = \"voltage\" } ); hooks = ( { type = \"scale\"; signal = \"voltge\" } );",
		       "no signal 'voltge', did you mean 'voltage'?");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signal = 3 } );", "no signal with index 3, there are 0 to 2");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signal = -1 } );", "no signal with index -1");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signals = ( \"a\", 0 ) } );", "signal 0 is named twice");
	expect_refused(R, "hooks = ( { type = \"scale\"; signal = \"x\" } );", "nothing is known about the signals here");
	expect_refused(R, "hooks = ( { type = \"scale\"; signal = \"signal64\" } );", "nothing is known about the signals here");
	expect_refused(R, ABC "hooks = ( { type = \"gate\"; signals = ( \"a\", \"b\" ) } );", "2 signals are named, this hook works on one");
	expect_refused(R, ABC "hooks = ( { type = \"gate\" } );", "hooks[0].signal: missing, but required");
}

static void keys_that_make_no_sense_are_refused(void **state)
{
	expect_refused(R, ABC "hooks = ( { type = \"average\"; signal = \"a\" } );", "hooks[0].offset: missing, but required");
	expect_refused(R, ABC "hooks = ( { type = \"average\"; signal = \"a\"; offset = 4 } );", "4 is beyond the end, there are 3 signals");
	expect_refused(R, ALL_TYPES "hooks = ( { type = \"average\"; signals = ( \"f\", \"z\" ); offset = 0 } );",
		       "signal 'z' is complex, which hook average cannot work on");
	expect_refused(R, ABC "hooks = ( { type = \"cast\"; signal = \"a\" } );", "changes nothing; give new_type");
	expect_refused(R, ABC "hooks = ( { type = \"cast\"; signal = \"a\"; new_type = \"int\" } );", "'int' is none of: float, integer, boolean, complex");
	expect_refused(R, ABC "hooks = ( { type = \"limit_value\"; signal = \"a\"; min = 1 } );", "hooks[0].max: missing, but required");
	expect_refused(R, ABC "hooks = ( { type = \"limit_value\"; signal = \"a\"; min = 2; max = 1.5 } );", "2 is above max, which is 1.5");
	expect_refused(R, ABC "hooks = ( { type = \"limit_value\"; signal = \"b\"; min = 1.25; max = 1.5 } );", "there is no integer from 1.25 to 1.5 for signal 'b'");
	expect_refused(R, ALL_TYPES "hooks = ( { type = \"limit_value\"; signal = \"b\"; min = 0; max = 1 } );", "signal 'b' is boolean");
	expect_refused(R, ABC "hooks = ( { type = \"round\"; signal = \"a\"; precision = -1 } );", "-1 is out of range, expected 0 to 300");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signal = \"a\"; scale = 2; gain = 3 } );", "3 contradicts scale, which is 2");
	expect_refused(R, ABC "hooks = ( { type = \"scale\"; signal = \"a\"; ofset = 3 } );", "unknown key, did you mean 'offset'?");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(average_inserts_the_mean_where_it_is_told),
		cmocka_unit_test(average_can_stand_at_both_ends),
		cmocka_unit_test(average_makes_room_for_its_value),
		cmocka_unit_test(a_later_hook_finds_the_new_signal_by_name),
		cmocka_unit_test(cast_converts_between_all_types),
		cmocka_unit_test(cast_renames_and_leaves_values_alone),
		cmocka_unit_test(limit_value_keeps_values_between),
		cmocka_unit_test(round_rounds_half_away_from_zero),
		cmocka_unit_test(scale_multiplies_and_adds),
		cmocka_unit_test(scale_of_small_integers_is_that_of_doubles),
		cmocka_unit_test(scale_keeps_integers_beyond_53_bits),
		cmocka_unit_test(gain_is_the_same_as_scale),
		cmocka_unit_test(without_known_signals_default_names_and_indices_count),
		cmocka_unit_test(short_samples_are_left_as_short_as_they_are),
		cmocka_unit_test(a_reader_of_the_same_sample_sees_no_change),
		cmocka_unit_test(selections_that_make_no_sense_are_refused),
		cmocka_unit_test(keys_that_make_no_sense_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
