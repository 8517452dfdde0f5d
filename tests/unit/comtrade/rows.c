/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of COMTRADE data, there and back, and their times. */
#include <errno.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/comtrade/comtrade.h"

#define ANALOG 3
#define DIGITAL 18 /* more than one word */

static struct comtrade_analog analog[ANALOG];
static struct comtrade_digital digital[DIGITAL];
static struct comtrade_rate rates[3];
static struct comtrade_cfg cfg;
static struct comtrade_error err;

static void make_cfg(enum comtrade_data data, unsigned revision)
{
	cfg = (struct comtrade_cfg){
		.revision = revision,
		.data = data,
		.analog_count = ANALOG,
		.digital_count = DIGITAL,
		.analog = analog,
		.digital = digital,
		.rates = rates,
		.rate_count = 1,
		.time_multiplier = 1,
	};
	memset(rates, 0, sizeof(rates));
	for (unsigned i = 0; i < ANALOG; i++) {
		analog[i].name = (char *)"a";
		comtrade_analog_scale(&analog[i], &cfg, -100, 300);
	}
	for (unsigned i = 0; i < DIGITAL; i++)
		digital[i].name = (char *)"d";
}

static uint64_t clipped;

/* Writes a row and reads it back into `got`; returns its bytes. */
static size_t round_trip(const double values[ANALOG], unsigned long bits,
			 int64_t stamp, struct comtrade_row *back,
			 union signal_data got[ANALOG + DIGITAL])
{
	struct comtrade_row row = { .has_number = true, .number = 7,
				    .has_stamp = stamp >= 0, .stamp = stamp };
	union signal_data v[ANALOG + DIGITAL];
	char buf[512];
	size_t len, used;

	for (unsigned i = 0; i < ANALOG; i++)
		v[i].f = values[i];
	for (unsigned i = 0; i < DIGITAL; i++)
		v[ANALOG + i].i = bits >> i & 1;
	clipped = 0;
	len = comtrade_row_encode(&cfg, buf, sizeof(buf), &row, v, 0, &clipped);
	assert_true(len > 0);
	assert_int_equal(comtrade_row_decode(&cfg, buf, len, &used, back, got,
					     &err), 1);
	assert_int_equal(used, len);
	assert_int_equal(back->number, 7);
	assert_int_equal(back->has_stamp, stamp >= 0);
	if (stamp >= 0)
		assert_int_equal(back->stamp, stamp);
	for (unsigned i = 0; i < DIGITAL; i++)
		assert_int_equal(got[ANALOG + i].i, bits >> i & 1);
	return len;
}

static void integers_read_back_within_half_a_step(void **state)
{
	static const struct {
		enum comtrade_data data;
		unsigned revision;
		double steps;
	} kinds[] = {
		{ COMTRADE_BINARY, 1999, 65534 },
		{ COMTRADE_BINARY, 2013, 65534 },
		{ COMTRADE_BINARY32, 2013, 4294967294. },
		{ COMTRADE_ASCII, 1999, 199996 },
	};
	union signal_data got[ANALOG + DIGITAL];
	struct comtrade_row row;

	for (size_t k = 0; k < sizeof(kinds) / sizeof(kinds[0]); k++) {
		double half = 400 / kinds[k].steps / 2 + 1e-12;

		make_cfg(kinds[k].data, kinds[k].revision);
		for (double x = -100; x <= 300; x += 0.7331) {
			const double values[] = { x, -100, 300 };

			round_trip(values, 0x2aaab, 12, &row, got);
			for (unsigned i = 0; i < ANALOG; i++)
				if (!(fabs(got[i].f - values[i]) <= half))
					fail_msg("kind %zu: %.17g reads back as %.17g", k,
						 values[i], got[i].f);
			assert_int_equal(clipped, 0);
		}
	}
}

static void values_beyond_the_range_are_cut_and_counted(void **state)
{
	const double values[] = { -1e9, 300.1, INFINITY };
	union signal_data got[ANALOG + DIGITAL];
	struct comtrade_row row;

	make_cfg(COMTRADE_BINARY, 1999);
	round_trip(values, 0, 0, &row, got);
	assert_int_equal(clipped, 3);
	assert_true(fabs(got[0].f + 100) < 1e-9 && fabs(got[1].f - 300) < 1e-9 &&
		    fabs(got[2].f - 300) < 1e-9);
	make_cfg(COMTRADE_FLOAT32, 2013);
	round_trip((const double[]){ 1e39, -INFINITY, 0 }, 0, 0, &row, got);
	assert_int_equal(clipped, 1);
	assert_true(got[0].f == (double)FLT_MAX && got[1].f == -INFINITY);
}

static void reals_read_back_to_the_same_bits(void **state)
{
	static const double doubles[][ANALOG] = {
		{ 0.1, -1e-300, 1.7976931348623157e308 },
		{ -0.0, 99999, 999999 },
		{ M_PI, 4e-324, -123456789012345678. },
	};
	union signal_data got[ANALOG + DIGITAL];
	struct comtrade_row row;

	for (size_t k = 0; k < 3; k++) {
		make_cfg(COMTRADE_ASCII, 2013);
		round_trip(doubles[k], 1, INT64_C(86400000000000), &row, got);
		for (unsigned i = 0; i < ANALOG; i++)
			assert_memory_equal(&got[i].f, &doubles[k][i], 8);
	}
	make_cfg(COMTRADE_FLOAT32, 2013);
	for (uint32_t bits = 1; bits < 0x7f000000; bits += 0xabcdef) {
		float f;
		double values[] = { 0, -0.0, 1 };

		memcpy(&f, &bits, 4);
		values[0] = (double)f;
		round_trip(values, 0x3ffff, 4294967294, &row, got);
		for (unsigned i = 0; i < ANALOG; i++)
			assert_memory_equal(&got[i].f, &values[i], 8);
	}
}

static void missing_values_and_stamps_stay_missing(void **state)
{
	const double values[] = { NAN, 5, NAN };
	static const enum comtrade_data types[] = {
		COMTRADE_ASCII, COMTRADE_BINARY, COMTRADE_BINARY32,
		COMTRADE_FLOAT32,
	};
	union signal_data got[ANALOG + DIGITAL];
	struct comtrade_row row;

	for (size_t k = 0; k < 5; k++) {
		make_cfg(types[k % 4], k < 4 ? 2013 : 1999);
		round_trip(values, 0, -1, &row, got);
		assert_true(isnan(got[0].f) && !isnan(got[1].f) &&
			    isnan(got[2].f));
	}
}

static int decode(const char *text, struct comtrade_row *row,
		  union signal_data *got)
{
	size_t used;

	return comtrade_row_decode(&cfg, text, strlen(text), &used, row, got, &err);
}

static void odd_rows_of_text_are_read(void **state)
{
	union signal_data got[3];
	struct comtrade_row row;

	make_cfg(COMTRADE_ASCII, 1999);
	cfg.analog_count = 2;
	cfg.digital_count = 1;
	assert_int_equal(decode("\r\n  0000012 , -77500, +000025 ,-000001, 1\r\n",
				&row, got), 1);
	assert_int_equal(row.number, 12);
	assert_int_equal(row.stamp, -77500);
	assert_true(got[0].f == analog[0].a * 25 + analog[0].b);
	assert_int_equal(got[2].i, 1);
	assert_int_equal(decode("3,,99999,,\n", &row, got), 1);
	assert_true(!row.has_stamp && isnan(got[0].f) && isnan(got[1].f));
	assert_int_equal(got[2].i, 0);
	assert_int_equal(decode("3,833.25,1,2,0,\n", &row, got), 1);
	assert_true(row.stamp == 833 && row.fraction == 0.25);
	assert_int_equal(decode("3,1,2", &row, got), 0);
	assert_int_equal(decode("\r\n\x1a" "3,1,2,3,0\n", &row, got), -ENODATA);
	assert_int_equal(decode("--- file type: HDR ---\n", &row, got), -ENODATA);
}

static void bad_rows_of_text_say_which_field(void **state)
{
	union signal_data got[3];
	struct comtrade_row row;

	make_cfg(COMTRADE_ASCII, 1999);
	cfg.analog_count = 2;
	cfg.digital_count = 1;
	analog[1].name = (char *)"IB";
	assert_int_equal(decode("3,0,5\n", &row, got), -EBADMSG);
	assert_string_equal(err.text, "the row ends before field 4 (IB) of 5");
	assert_int_equal(decode("3,0,5,x,0\n", &row, got), -EBADMSG);
	assert_string_equal(err.text, "field 4 (IB): 'x' is not a number");
	assert_int_equal(decode("3,0,5,6,2\n", &row, got), -EBADMSG);
	assert_string_equal(err.text, "field 5 (d): '2' is neither 0 nor 1");
	assert_int_equal(decode("3,0,5,6,1,7\n", &row, got), -EBADMSG);
	assert_int_equal(decode("-3,0,5,6,1\n", &row, got), -EBADMSG);
	assert_int_equal(decode("3,noon,5,6,1\n", &row, got), -EBADMSG);
}

/* Times of rows with these stamps (-1: missing), as a binary file has them. */
static void assert_times(const int64_t *stamps, const int64_t *times, size_t count)
{
	struct comtrade_clock k;
	int64_t ns;

	comtrade_clock_init(&k, &cfg, COMTRADE_CLOCK_AUTO);
	for (size_t i = 0; i < count; i++) {
		const struct comtrade_row row = {
			.wraps = true,
			.has_stamp = stamps[i] >= 0,
			.stamp = stamps[i],
		};

		assert_true(comtrade_clock_next(&k, &row, &ns));
		if (ns != times[i])
			fail_msg("row %zu is at %jd, not %jd", i, (intmax_t)ns,
				 (intmax_t)times[i]);
	}
}

#define TIMES(...) (const int64_t[]){ __VA_ARGS__ }

static void stamps_of_32_bits_go_on_behind_their_end(void **state)
{
	make_cfg(COMTRADE_BINARY, 1999);
	rates[0].hz = 0;
	assert_times(TIMES(0, 2000000000, 4000000000, 1705032704),
		     TIMES(0, 2000000000000, 4000000000000, 6000000000000), 4);
	/* Jumps back by little are that; negative ones begin before the trigger. */
	assert_times(TIMES(4294889796, 4294967294, 500, 300),
		     TIMES(-77500000, -2000, 500000, 300000), 4);
}

static void rates_fill_in_for_missing_stamps(void **state)
{
	make_cfg(COMTRADE_BINARY, 1999);
	rates[0] = (struct comtrade_rate){ 1000, 3 };
	assert_times(TIMES(-1, -1, -1, -1), TIMES(0, 1000000, 2000000, 3000000), 4);
	/* From the last stamp on. */
	assert_times(TIMES(500, 1600, -1, 4000),
		     TIMES(500000, 1600000, 2600000, 4000000), 4);
	cfg.rate_count = 2;
	rates[1] = (struct comtrade_rate){ 100, 5 };
	assert_times(TIMES(-1, -1, -1, -1, -1, -1),
		     TIMES(0, 1000000, 2000000, 12000000, 22000000, 32000000), 6);
}

/* Stamps of a steady rate, cut to what a recorder keeps of them. */
static void stamps_that_wrap_give_way_to_the_rate(void **state)
{
	static const double hz[] = { 1000, 4000, 800, 1200, 15360, 30720, 50, 25, 16, 10, 4 };
	static const int64_t wraps[] = { 65536, 32768, 100000, 1000000 };

	for (size_t i = 0; i < 2 * ARRAY_SIZE(hz) * ARRAY_SIZE(wraps); i++) {
		double rate = hz[i / 2 % ARRAY_SIZE(hz)];
		int64_t wrap = wraps[i / 2 / ARRAY_SIZE(hz)], ns;
		unsigned rows = (unsigned)(4.3 * rate);
		struct comtrade_clock k;

		make_cfg(COMTRADE_BINARY, 1999);
		rates[0] = (struct comtrade_rate){ rate, rows };
		comtrade_clock_init(&k, &cfg, COMTRADE_CLOCK_AUTO);
		for (unsigned n = 0; n < rows; n++) {
			const struct comtrade_row row = {
				.wraps = i % 2,
				.has_stamp = true,
				.stamp = (int64_t)(n * 1e6 / rate) % wrap,
			};

			assert_true(comtrade_clock_next(&k, &row, &ns));
			if (fabs((double)ns - n * 1e9 / rate) > 1000)
				fail_msg("%g Hz, wraps at %jd: row %u is at %jd", rate,
					 (intmax_t)wrap, n, (intmax_t)ns);
			/* Told with the first row that is wrong, and both values. */
			if (k.by_rate && k.odd.row == n + 1) {
				assert_true(k.odd.stamp_ns == row.stamp * 1000);
				assert_true(llabs(k.odd.rate_ns - ns) <= 1000);
			}
		}
		assert_int_equal(k.by_rate, (rows - 1) * 1e6 / rate >= (double)wrap);
	}
}

static void stamps_of_another_unit_give_way_to_the_rate(void **state)
{
	static const double units[] = { 1e-6, 1e-3, 0.1, 0.25, 2, 10, 1000 };

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		struct comtrade_clock k;
		int64_t ns;

		make_cfg(COMTRADE_BINARY, 1999);
		rates[0] = (struct comtrade_rate){ 1000, 50 };
		comtrade_clock_init(&k, &cfg, COMTRADE_CLOCK_AUTO);
		for (unsigned n = 0; n < 50; n++) {
			const struct comtrade_row row = {
				.has_stamp = true,
				.stamp = (int64_t)(n * 1000 * units[i]),
			};

			assert_true(comtrade_clock_next(&k, &row, &ns));
			assert_true(ns == n * INT64_C(1000000));
		}
		assert_int_equal(k.odd.row, 2);
	}
}

/* Gaps, stamps of a coarse unit, a trembling clock, jumps between two rates. */
static void stamps_that_agree_with_the_rate_are_kept(void **state)
{
	struct comtrade_clock k;
	int64_t ns;

	make_cfg(COMTRADE_BINARY, 1999);
	rates[0] = (struct comtrade_rate){ 1000, 4 };
	assert_times(TIMES(0, 1000, 900000, 901000, 902000, 5000000),
		     TIMES(0, 1000000, 900000000, 901000000, 902000000, 5000000000), 6);
	assert_times(TIMES(0, 990, 2020, 2980, 4030), TIMES(0, 990000, 2020000, 2980000, 4030000), 5);
	cfg.rate_count = 2;
	rates[1] = (struct comtrade_rate){ 1000, 8 };
	assert_times(TIMES(50000, 51000, 52000, 53000, 7000, 8000, 9000),
		     TIMES(50000000, 51000000, 52000000, 53000000, 7000000, 8000000, 9000000), 7);
	/* A unit of 1 ms, steps of 0.65 ms. */
	make_cfg(COMTRADE_BINARY, 1999);
	rates[0] = (struct comtrade_rate){ 1536, 1000 };
	cfg.time_multiplier = 1000;
	comtrade_clock_init(&k, &cfg, COMTRADE_CLOCK_AUTO);
	for (unsigned n = 0; n < 1000; n++) {
		const struct comtrade_row row = {
			.has_stamp = true,
			.stamp = (int64_t)(n * 1000 / 1536.0 + 0.5),
		};

		assert_true(comtrade_clock_next(&k, &row, &ns));
		assert_true(ns == row.stamp * 1000000);
	}
}

static void neither_stamp_nor_rate_is_no_time(void **state)
{
	const struct comtrade_row row = { .wraps = true };
	struct comtrade_clock k;
	int64_t ns;

	make_cfg(COMTRADE_BINARY, 1999);
	comtrade_clock_init(&k, &cfg, COMTRADE_CLOCK_AUTO);
	assert_false(comtrade_clock_next(&k, &row, &ns));
}

static void units_of_stamps_follow_digits_and_multiplier(void **state)
{
	make_cfg(COMTRADE_BINARY32, 2013);
	cfg.start.nanoseconds = true;
	assert_times(TIMES(0, 833333), TIMES(0, 833333), 2);
	cfg.time_multiplier = 1000;
	assert_times(TIMES(0, 833), TIMES(0, 833000), 2);
	cfg.time_multiplier = 0.00756699591875076;
	cfg.start.nanoseconds = false;
	assert_times(TIMES(0, 110083), TIMES(0, 832998), 2);
}

static void a_recording_finds_its_rate_or_has_none(void **state)
{
	struct comtrade_recorder r;
	struct comtrade_row row;

	make_cfg(COMTRADE_FLOAT32, 2013);
	comtrade_recorder_init(&r, &cfg, 1000000000123456789, 1000);
	for (int64_t i = 0; i < 3000; i++) /* 30 kHz, cut to nanoseconds */
		row = comtrade_recorder_next(&r, 1000000000123456789 +
							 i * 100000 / 3);
	comtrade_recorder_settle(&r);
	assert_int_equal(row.number, 3000);
	assert_int_equal(row.stamp, 99967);
	assert_true(rates[0].hz == 30000 && rates[0].end == 3000);
	assert_int_equal(cfg.start.nsec, 123456789);
	/* One late row, and there is no rate any more. */
	comtrade_recorder_next(&r, 1000000000123456789 + 100002000);
	comtrade_recorder_settle(&r);
	assert_true(rates[0].hz == 0 && rates[0].end == 3001);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_read_back_within_half_a_step),
		cmocka_unit_test(values_beyond_the_range_are_cut_and_counted),
		cmocka_unit_test(reals_read_back_to_the_same_bits),
		cmocka_unit_test(missing_values_and_stamps_stay_missing),
		cmocka_unit_test(odd_rows_of_text_are_read),
		cmocka_unit_test(bad_rows_of_text_say_which_field),
		cmocka_unit_test(stamps_of_32_bits_go_on_behind_their_end),
		cmocka_unit_test(rates_fill_in_for_missing_stamps),
		cmocka_unit_test(stamps_that_wrap_give_way_to_the_rate),
		cmocka_unit_test(stamps_of_another_unit_give_way_to_the_rate),
		cmocka_unit_test(stamps_that_agree_with_the_rate_are_kept),
		cmocka_unit_test(neither_stamp_nor_rate_is_no_time),
		cmocka_unit_test(units_of_stamps_follow_digits_and_multiplier),
		cmocka_unit_test(a_recording_finds_its_rate_or_has_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
