/* SPDX-License-Identifier: BSD-2-Clause */
/* Values of signals become values of information objects, and come back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>

#include "gateway/node/iec60870-5-104/points.h"
#include "util/container_of.h"
#include "util/prng.h"

static struct point point_of(enum iec104_kind kind)
{
	return (struct point){ .info = iec104_type_of(kind, false), .address = 7 };
}

/* What becomes of a real number, and what comes back of it. */
static void values_are_limited_with_their_quality(void **state)
{
	static const struct {
		enum iec104_kind kind;
		double in;
		int32_t value;
		uint8_t quality;
		double back;
	} cases[] = {
		{ IEC104_SINGLE, 0, 0, 0, 0 },
		{ IEC104_SINGLE, 0.5, 1, 0, 1 },
		{ IEC104_SINGLE, NAN, 0, IEC104_INVALID, 0 },
		{ IEC104_DOUBLE, 2, 2, 0, 2 },
		{ IEC104_DOUBLE, 4, 0, IEC104_INVALID, 0 },
		{ IEC104_DOUBLE, -1, 0, IEC104_INVALID, 0 },
		{ IEC104_STEP, -64, -64, 0, -64 },
		{ IEC104_STEP, 64, 63, IEC104_OVERFLOW, 63 },
		{ IEC104_BITS, 4294967295.0, -1, 0, 4294967295.0 },
		{ IEC104_BITS, 4294967296.0, 0, IEC104_OVERFLOW, 0 },
		{ IEC104_NORMALIZED, -1, -32768, 0, -1 },
		{ IEC104_NORMALIZED, 1, 32767, 0, 32767 / 32768.0 },
		{ IEC104_NORMALIZED, 0.5, 16384, 0, 0.5 },
		{ IEC104_NORMALIZED, 1.01, 32767, IEC104_OVERFLOW, 32767 / 32768.0 },
		{ IEC104_NORMALIZED, -INFINITY, -32768, IEC104_OVERFLOW, -1 },
		{ IEC104_SCALED, 32767, 32767, 0, 32767 },
		{ IEC104_SCALED, -32769, -32768, IEC104_OVERFLOW, -32768 },
		{ IEC104_SCALED, 2.6, 3, 0, 3 },
		{ IEC104_COUNTER, -5, -5, 0, -5 },
		{ IEC104_COUNTER, 4294967301.0, 5, IEC104_COUNTER_CARRY, 5 },
		{ IEC104_SINGLE_COMMAND, 1, 1, 0, 1 },
		{ IEC104_DOUBLE_COMMAND, 1, 1, 0, 1 },
		{ IEC104_DOUBLE_COMMAND, 0, 0, IEC104_INVALID, 0 },
		{ IEC104_DOUBLE_COMMAND, 3, 3, IEC104_INVALID, 3 },
		{ IEC104_STEP_COMMAND, 2, 2, 0, 2 },
		{ IEC104_SCALED_SETPOINT, 1e9, 32767, IEC104_OVERFLOW, 32767 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct point p = point_of(cases[i].kind);
		struct iec104_object o;
		bool good = point_to_object(&p, SIGNAL_FLOAT, (union signal_data){ .f = cases[i].in },
					    &o);

		assert_int_equal(o.value, cases[i].value);
		assert_int_equal(o.quality, cases[i].quality);
		assert_int_equal(good, !cases[i].quality);
		assert_int_equal(o.address, 7);
		assert_true(point_from_object(cases[i].kind, &o, SIGNAL_FLOAT).f == cases[i].back);
	}
}

static void short_floats_keep_what_a_float_has(void **state)
{
	static const struct {
		double in;
		float out;
		uint8_t quality;
	} cases[] = {
		{ 1.5, 1.5f, 0 }, { -1e30, -1e30f, 0 }, { INFINITY, INFINITY, 0 },
		{ 1e300, INFINITY, IEC104_OVERFLOW }, { NAN, 0, IEC104_INVALID },
	};
	const struct point p = point_of(IEC104_SHORT);
	struct iec104_object o;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		point_to_object(&p, SIGNAL_FLOAT, (union signal_data){ .f = cases[i].in }, &o);
		assert_true(o.real == cases[i].out && o.quality == cases[i].quality);
	}
}

static void booleans_are_off_and_on(void **state)
{
	static const enum iec104_kind kinds[] = { IEC104_DOUBLE, IEC104_DOUBLE_COMMAND,
						  IEC104_STEP_COMMAND };
	struct iec104_object o;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const struct point p = point_of(kinds[i]);

		for (int on = 0; on < 2; on++) {
			assert_true(point_to_object(&p, SIGNAL_BOOLEAN,
						    (union signal_data){ .i = on }, &o));
			assert_int_equal(o.value, 1 + on);
			assert_int_equal(point_from_object(kinds[i], &o, SIGNAL_BOOLEAN).i, on);
		}
	}
}

/* Integers of all types of signals that an object holds come back as they were. */
static void what_an_object_holds_comes_back(void **state)
{
	static const struct {
		enum iec104_kind kind;
		int64_t low, high;
	} kinds[] = {
		{ IEC104_STEP, -64, 63 }, { IEC104_SCALED, INT16_MIN, INT16_MAX },
		{ IEC104_BITS, 0, UINT32_MAX }, { IEC104_COUNTER, INT32_MIN, INT32_MAX },
		{ IEC104_SHORT, -(1 << 24), 1 << 24 },
	};
	struct prng random = prng_from(1);

	for (unsigned i = 0; i < 10000; i++) {
		size_t k = prng_below(&random, ARRAY_SIZE(kinds));
		int64_t value = kinds[k].low + (int64_t)prng_below(&random, (uint64_t)(kinds[k].high -
										       kinds[k].low + 1));
		const struct point p = point_of(kinds[k].kind);
		struct iec104_object o;

		assert_true(point_to_object(&p, SIGNAL_INTEGER, (union signal_data){ .i = value }, &o));
		assert_true(point_from_object(kinds[k].kind, &o, SIGNAL_INTEGER).i == value);
		assert_true(point_to_object(&p, SIGNAL_FLOAT, (union signal_data){ .f = (double)value },
					    &o));
		assert_true(point_from_object(kinds[k].kind, &o, SIGNAL_FLOAT).f == (double)value);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_limited_with_their_quality),
		cmocka_unit_test(short_floats_keep_what_a_float_has),
		cmocka_unit_test(booleans_are_off_and_on),
		cmocka_unit_test(what_an_object_holds_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
