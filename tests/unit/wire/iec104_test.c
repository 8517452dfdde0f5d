/* SPDX-License-Identifier: BSD-2-Clause */
/* IEC 60870-5-104: frames, ASDUs and times, against known bytes and by way of all types. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "iec104_random.h"
#include "util/container_of.h"
#include "wire/grid/iec104.h"

static void frames_have_the_bytes_of_the_standard(void **state)
{
	static const struct {
		struct iec104_frame frame;
		uint8_t bytes[8];
		size_t len;
	} cases[] = {
		{ { IEC104_U, .function = IEC104_STARTDT_ACT }, { 0x68, 4, 0x07, 0, 0, 0 }, 6 },
		{ { IEC104_U, .function = IEC104_STARTDT_CON }, { 0x68, 4, 0x0b, 0, 0, 0 }, 6 },
		{ { IEC104_U, .function = IEC104_STOPDT_ACT }, { 0x68, 4, 0x13, 0, 0, 0 }, 6 },
		{ { IEC104_U, .function = IEC104_STOPDT_CON }, { 0x68, 4, 0x23, 0, 0, 0 }, 6 },
		{ { IEC104_U, .function = IEC104_TESTFR_ACT }, { 0x68, 4, 0x43, 0, 0, 0 }, 6 },
		{ { IEC104_U, .function = IEC104_TESTFR_CON }, { 0x68, 4, 0x83, 0, 0, 0 }, 6 },
		{ { IEC104_S, .receive = 5 }, { 0x68, 4, 1, 0, 0x0a, 0 }, 6 },
		{ { IEC104_S, .receive = 32767 }, { 0x68, 4, 1, 0, 0xfe, 0xff }, 6 },
		{ { IEC104_I, .send = 128, .receive = 1, .asdu = (const uint8_t *)"ab", .asdu_len = 2 },
		  { 0x68, 6, 0, 1, 2, 0, 'a', 'b' }, 8 },
	};
	uint8_t bytes[IEC104_APDU_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *why = NULL;
		struct iec104_frame f;

		assert_int_equal(iec104_frame_encode(&cases[i].frame, bytes), cases[i].len);
		assert_memory_equal(bytes, cases[i].bytes, cases[i].len);
		for (size_t len = 0; len < cases[i].len; len++)
			assert_int_equal(iec104_frame_decode(bytes, len, &f, &why), 0);
		assert_int_equal(iec104_frame_decode(bytes, sizeof(bytes), &f, &why), cases[i].len);
		assert_int_equal(f.format, cases[i].frame.format);
		assert_int_equal(f.send, cases[i].frame.send);
		assert_int_equal(f.receive, cases[i].frame.receive);
		assert_int_equal(f.function, cases[i].frame.function);
		assert_int_equal(f.asdu_len, cases[i].frame.asdu_len);
	}
}

static void frames_that_cannot_be_are_refused(void **state)
{
	static const uint8_t cases[][6] = {
		{ 0x69, 4, 7, 0, 0, 0 },    /* another start */
		{ 0x68, 3, 7, 0, 0, 0 },    /* shorter than its control field */
		{ 0x68, 254, 0, 0, 0, 0 },  /* longer than a frame may be */
		{ 0x68, 4, 0, 0, 0, 0 },    /* I without an ASDU */
		{ 0x68, 4, 3, 0, 0, 0 },    /* U without a function */
		{ 0x68, 4, 0x0f, 0, 0, 0 }, /* U with two */
		{ 0x68, 4, 7, 1, 0, 0 },    /* U with bits that are 0 */
		{ 0x68, 4, 7, 0, 2, 0 },
		{ 0x68, 4, 5, 0, 0, 0 },    /* S likewise */
		{ 0x68, 4, 1, 0, 1, 0 },    /* the lowest bit of N(R) is 0 */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		uint8_t bytes[300] = { 0 };
		const char *why = NULL;
		struct iec104_frame f;

		memcpy(bytes, cases[i], 6);
		assert_true(iec104_frame_decode(bytes, sizeof(bytes), &f, &why) < 0);
		assert_non_null(why);
	}
}

static void asdus_have_known_bytes(void **state)
{
	/* A measured value of -5.5 with quality "not topical", at the first moment of leap day 2024. */
	static const uint8_t measured[] = { 36, 1, 3, 0, 0x41, 0xa0, 0x10, 0x21, 0x40,
					    0, 0, 0xb0, 0xc0, 0x40, 0, 0, 0, 0, 0x9d, 2, 24 };
	/* Two points of a sequence from 1000, the second one on and blocked. */
	static const uint8_t points[] = { 1, 0x82, 20, 7, 1, 0, 0xe8, 3, 0, 0, 0x11 };
	/* Select: set-point -1 in normalized form, refused. */
	static const uint8_t command[] = { 48, 1, 0x47, 0, 2, 0, 1, 0, 0, 0, 0x80, 0x80 };
	static const int64_t leap_day = INT64_C(1709164800) * 1000000000;
	struct iec104_object o[2], back;
	uint8_t bytes[IEC104_ASDU_MAX];
	struct iec104_asdu a;
	int64_t ns;

	o[0] = (struct iec104_object){ .address = 0x402110, .real = -5.5f,
				       .quality = IEC104_NOT_TOPICAL,
				       .time = iec104_time_from_ns(leap_day) };
	a = (struct iec104_asdu){ .type = IEC104_M_ME_TF, .cause = IEC104_SPONTANEOUS,
				  .station = 41025, .count = 1 };
	assert_int_equal(iec104_asdu_encode(&a, o, bytes), sizeof(measured));
	assert_memory_equal(bytes, measured, sizeof(measured));
	assert_null(iec104_asdu_decode(bytes, sizeof(measured), &a));
	iec104_object_decode(&a, 0, &back);
	assert_true(back.real == -5.5f && back.address == 0x402110);
	assert_true(iec104_time_to_ns(&back.time, &ns) && ns == leap_day);

	o[0] = (struct iec104_object){ .address = 1000 };
	o[1] = (struct iec104_object){ .address = 1001, .value = 1, .quality = IEC104_BLOCKED };
	a = (struct iec104_asdu){ .type = IEC104_M_SP_NA, .cause = IEC104_INTERROGATED,
				  .originator = 7, .station = 1, .count = 2, .sequence = true };
	assert_int_equal(iec104_asdu_encode(&a, o, bytes), sizeof(points));
	assert_memory_equal(bytes, points, sizeof(points));
	o[1].address = 1002;
	assert_int_equal(iec104_asdu_encode(&a, o, bytes), 0);

	o[0] = (struct iec104_object){ .address = 1, .value = -32768, .select = true };
	a = (struct iec104_asdu){ .type = IEC104_C_SE_NA, .cause = IEC104_ACTIVATION, .station = 2,
				  .count = 1 };
	assert_int_equal(iec104_asdu_encode(&a, o, bytes), sizeof(command));
	iec104_asdu_answer(bytes, IEC104_ACTIVATION_CON, true);
	assert_memory_equal(bytes, command, sizeof(command));
}

static void every_type_comes_back(void **state)
{
	struct prng random = prng_from(1);
	unsigned seen[256] = { 0 };

	for (unsigned run = 0; run < 20000; run++) {
		struct iec104_object sent[IEC104_OBJECTS_MAX], o;
		uint8_t bytes[IEC104_ASDU_MAX], again[IEC104_ASDU_MAX];
		struct iec104_asdu a, b;
		size_t len;

		iec104_random_asdu(&random, &a, sent);
		len = iec104_asdu_encode(&a, sent, bytes);
		assert_true(len >= IEC104_ASDU_HEADER && len <= IEC104_ASDU_MAX);
		assert_null(iec104_asdu_decode(bytes, len, &b));
		assert_true(a.type == b.type && a.cause == b.cause && a.count == b.count &&
			    a.originator == b.originator && a.station == b.station &&
			    a.sequence == b.sequence && a.negative == b.negative &&
			    a.test == b.test);
		for (unsigned i = 0; i < a.count; i++) {
			iec104_object_decode(&b, i, &o);
			assert_true(iec104_same(&sent[i], &o));
			sent[i] = o;
		}
		assert_int_equal(iec104_asdu_encode(&b, sent, again), len);
		assert_memory_equal(bytes, again, len);
		/* One byte more or less does not fit the number of objects. */
		assert_non_null(iec104_asdu_decode(bytes, len - 1, &b));
		seen[a.type]++;
	}
	for (unsigned type = 0; type < 256; type++)
		assert_true(!!seen[type] == !!iec104_type_find(type));
}

static void asdus_that_contradict_themselves_are_refused(void **state)
{
	static const struct {
		uint8_t bytes[12];
		size_t len;
	} cases[] = {
		{ { 1, 1, 3, 0, 1 }, 5 },                        /* no header */
		{ { 1, 0, 3, 0, 1, 0 }, 6 },                     /* no object */
		{ { 1, 2, 3, 0, 1, 0, 1, 0, 0, 0 }, 10 },        /* one object too few */
		{ { 1, 1, 3, 0, 1, 0, 1, 0, 0, 0, 0 }, 11 },     /* a byte too many */
		{ { 45, 2, 6, 0, 1, 0, 1, 0, 0, 1 }, 10 },       /* two commands */
		{ { 100, 0x81, 6, 0, 1, 0, 0, 0, 0, 20 }, 10 },  /* a sequence of commands */
		{ { 1, 0x82, 3, 0, 1, 0, 0xff, 0xff, 0xff, 0, 0 }, 11 }, /* beyond the addresses */
	};
	struct iec104_asdu a;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_non_null(iec104_asdu_decode(cases[i].bytes, cases[i].len, &a));
	/* A type that is not known is no fault of the ASDU. */
	assert_null(iec104_asdu_decode((const uint8_t *)"\x7f\x01\x03\0\1\0xyz", 9, &a));
	assert_null(a.info);
}

static void times_are_those_of_the_calendar(void **state)
{
	struct prng random = prng_from(2);

	for (unsigned i = 0; i < 20000; i++) {
		/* From 2000 to 2099. */
		int64_t ms = INT64_C(946684800000) + (int64_t)prng_below(&random, 3155760000000);
		time_t seconds = ms / 1000;
		struct iec104_time t = iec104_time_from_ns(ms * 1000000 + 999999), back;
		uint8_t bytes[IEC104_TIME_BYTES];
		struct tm tm;
		int64_t ns;

		gmtime_r(&seconds, &tm);
		assert_int_equal(t.year, tm.tm_year - 100);
		assert_int_equal(t.month, tm.tm_mon + 1);
		assert_int_equal(t.day, tm.tm_mday);
		assert_int_equal(t.weekday % 7, tm.tm_wday);
		assert_int_equal(t.hour, tm.tm_hour);
		assert_int_equal(t.minute, tm.tm_min);
		assert_int_equal(t.millisecond, tm.tm_sec * 1000 + ms % 1000);
		iec104_time_encode(&t, bytes);
		iec104_time_decode(bytes, &back);
		assert_true(iec104_time_to_ns(&back, &ns) && ns == ms * 1000000);
	}
	assert_true(iec104_time_from_ns(0).invalid);
	assert_true(iec104_time_from_ns(INT64_C(4102444800) * 1000000000).invalid);
	assert_true(iec104_time_from_ns(INT64_MIN).invalid);
	assert_false(iec104_time_to_ns(&(struct iec104_time){ .day = 29, .month = 2, .year = 23 },
				       &(int64_t){ 0 }));
	assert_false(iec104_time_to_ns(&(struct iec104_time){ .day = 1, .month = 1, .hour = 24 },
				       &(int64_t){ 0 }));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_have_the_bytes_of_the_standard),
		cmocka_unit_test(frames_that_cannot_be_are_refused),
		cmocka_unit_test(asdus_have_known_bytes),
		cmocka_unit_test(every_type_comes_back),
		cmocka_unit_test(asdus_that_contradict_themselves_are_refused),
		cmocka_unit_test(times_are_those_of_the_calendar),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
