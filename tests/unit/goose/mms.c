/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of signals as values of messages, and back. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "gateway/node/iec61850-8-1/mms.h"
#include "util/container_of.h"
#include "util/prng.h"

static union signal_data integer(int64_t i)
{
	return (union signal_data){ .i = i };
}

static void the_limits_of_integers_hold(void **state)
{
	static const struct {
		const char *name;
		int64_t min, max;
	} cases[] = {
		{ "int8", -128, 127 }, { "int16", -32768, 32767 }, { "int32", INT32_MIN, INT32_MAX },
		{ "int8u", 0, 255 }, { "int16u", 0, 65535 }, { "int32u", 0, UINT32_MAX },
	};
	struct goose_value v;
	union signal_data back;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct mms_type *t = mms_type_find(cases[i].name);

		assert_non_null(t);
		assert_true(mms_from_signal(t, 32, integer(cases[i].min), SIGNAL_INTEGER, &v));
		assert_true(mms_to_signal(t, &v, &back));
		assert_int_equal(back.i, cases[i].min);
		assert_true(mms_from_signal(t, 32, integer(cases[i].max), SIGNAL_INTEGER, &v));
		assert_true(mms_to_signal(t, &v, &back));
		assert_int_equal(back.i, cases[i].max);
		assert_false(mms_from_signal(t, 32, integer(cases[i].min - 1), SIGNAL_INTEGER, &v));
		assert_false(mms_from_signal(t, 32, integer(cases[i].max + 1), SIGNAL_INTEGER, &v));
		/* Nor does such a value come from a message. */
		v = (struct goose_value){ .type = t->tag, .integer = cases[i].max + 1 };
		assert_false(mms_to_signal(t, &v, &back));
	}
}

/* 2048 in 13 bits is the flag `test` of a quality, its twelfth bit (IEC 61850-8-1, 8.1.3.4). */
static void the_first_bit_of_a_string_is_the_lowest_one(void **state)
{
	const struct mms_type *t = mms_type_find("bitstring");
	struct goose_value v;
	union signal_data back;

	assert_true(mms_from_signal(t, 13, integer(2048), SIGNAL_INTEGER, &v));
	assert_int_equal(v.bits, 13);
	assert_int_equal(v.number, 1 << (12 - 11));
	assert_true(mms_to_signal(t, &v, &back));
	assert_int_equal(back.i, 2048);
	assert_false(mms_from_signal(t, 13, integer(8192), SIGNAL_INTEGER, &v));
	assert_true(mms_from_signal(t, 64, integer(-1), SIGNAL_INTEGER, &v));
	assert_true(v.number == UINT64_MAX);
}

static void other_types_are_refused(void **state)
{
	static const char *const names[] = { "boolean", "int32", "int32u", "bitstring", "float32" };
	struct goose_value v;
	union signal_data back;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			const struct mms_type *from = mms_type_find(names[i]);

			assert_true(mms_from_signal(from, 32, integer(1), SIGNAL_INTEGER, &v));
			assert_int_equal(mms_to_signal(mms_type_find(names[k]), &v, &back), i == k);
		}
	assert_null(mms_type_find("float"));
	assert_null(mms_type_find(""));
}

static void floats_become_integers_and_back_where_they_can(void **state)
{
	const struct mms_type *t = mms_type_find("int64"), *f = mms_type_find("float64");
	struct goose_value v;

	assert_true(mms_from_signal(t, 0, (union signal_data){ .f = -7.9 }, SIGNAL_FLOAT, &v));
	assert_int_equal(v.integer, -7);
	assert_false(mms_from_signal(t, 0, (union signal_data){ .f = 1e19 }, SIGNAL_FLOAT, &v));
	assert_false(mms_from_signal(t, 0, (union signal_data){ .f = NAN }, SIGNAL_FLOAT, &v));
	assert_true(mms_from_signal(f, 0, integer(-7), SIGNAL_INTEGER, &v));
	assert_true(v.real == -7);
	assert_true(mms_from_signal(mms_type_find("boolean"), 0, (union signal_data){ .f = 0.5 },
				    SIGNAL_FLOAT, &v));
	assert_true(v.boolean);
}

/* Change is a change of what a message says: what float32 cannot tell apart is none. */
static void a_change_is_one_of_the_bytes_in_a_message(void **state)
{
	const struct mms_type *t = mms_type_find("float32");
	struct goose_value a, b;

	mms_from_signal(t, 0, (union signal_data){ .f = 1 }, SIGNAL_FLOAT, &a);
	mms_from_signal(t, 0, (union signal_data){ .f = 1 + 1e-12 }, SIGNAL_FLOAT, &b);
	assert_true(mms_equal(&a, &b));
	mms_from_signal(t, 0, (union signal_data){ .f = 1.5 }, SIGNAL_FLOAT, &b);
	assert_false(mms_equal(&a, &b));
	mms_from_signal(t, 0, (union signal_data){ .f = NAN }, SIGNAL_FLOAT, &a);
	b = a;
	assert_true(mms_equal(&a, &b));
}

static size_t bytes_of(const struct goose_value *v)
{
	const struct goose g = { .reference = { (const uint8_t *)"r", 1 },
				 .dataset = { (const uint8_t *)"d", 1 } };
	const struct apdu head = { 0 };
	uint8_t buffer[200];
	size_t len;

	assert_non_null(goose_encode(&head, &g, v, 1, buffer, sizeof(buffer), &len));
	return len;
}

static void no_value_takes_more_bytes_than_the_longest(void **state)
{
	static const char *const names[] = { "boolean", "int8", "int16", "int32", "int64", "int8u",
					     "int16u", "int32u", "bitstring", "float32", "float64" };
	struct prng random = { .state = 3 };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct mms_type *t = mms_type_find(names[i]);
		struct goose_value v, longest = mms_longest(t, 13);

		for (unsigned k = 0; k < 2000; k++) {
			int64_t value = (int64_t)prng_next(&random) >> (prng_next(&random) % 64);

			if (mms_from_signal(t, 13, integer(value), SIGNAL_INTEGER, &v))
				assert_true(bytes_of(&v) <= bytes_of(&longest));
		}
	}
}

static void times_are_nanoseconds_since_1970(void **state)
{
	const struct mms_type *t = mms_type_find("timestamp");
	struct goose_value v, w;
	union signal_data back;

	assert_true(mms_from_signal(t, 0, integer(INT64_C(1700000000123456789)), SIGNAL_INTEGER, &v));
	assert_true(v.type == GOOSE_UTC_TIME && v.time.seconds == 1700000000 && v.time.nanoseconds == 123456789);
	assert_true(mms_to_signal(t, &v, &back));
	assert_true(back.i == INT64_C(1700000000123456789));
	/* Of a signal with a fraction they are seconds. */
	assert_true(mms_from_signal(t, 0, (union signal_data){ .f = 1.5 }, SIGNAL_FLOAT, &w));
	assert_true(w.time.seconds == 1 && w.time.nanoseconds == 500000000);
	assert_true(mms_equal(&v, &v) && !mms_equal(&v, &w));
	assert_false(mms_from_signal(t, 0, integer(-1), SIGNAL_INTEGER, &v));
	assert_false(mms_from_signal(t, 0, integer(INT64_C(4294967296000000000)), SIGNAL_INTEGER, &v));
	assert_false(mms_from_signal(t, 0, (union signal_data){ .f = NAN }, SIGNAL_FLOAT, &v));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_nanoseconds_since_1970),
		cmocka_unit_test(the_limits_of_integers_hold),
		cmocka_unit_test(the_first_bit_of_a_string_is_the_lowest_one),
		cmocka_unit_test(other_types_are_refused),
		cmocka_unit_test(floats_become_integers_and_back_where_they_can),
		cmocka_unit_test(a_change_is_one_of_the_bytes_in_a_message),
		cmocka_unit_test(no_value_takes_more_bytes_than_the_longest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
