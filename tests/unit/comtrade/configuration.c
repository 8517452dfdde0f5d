/* SPDX-License-Identifier: BSD-2-Clause */
/* Configuration files of COMTRADE: what is understood, what is refused, and how
 * it is said; the parts of single files; dates. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gateway/comtrade/comtrade.h"

#define HEAD_1999 "ST,DEV,1999\r\n3,2A,1D\r\n"
#define CHANNELS                                                    \
	"1,IA,A,Line 1,A,0.5,-1,0,-32767,32767,800,1,S\r\n"         \
	"2,UA,A,Line 1,kV,2,0,,-32767,32767,110,0.1,P\r\n"          \
	"1,TRIP,,,1\r\n"
#define TAIL "50\r\n1\r\n1000,3\r\n31/12/1999,23:59:59.5\r\n" \
	     "01/01/2000,00:00:00.000001\r\nBINARY\r\n1\r\n"

static struct comtrade_error err;

static struct comtrade_cfg *parse_bytes(const char *text, size_t len)
{
	struct comtrade_cfg *c;

	memset(&err, 0, sizeof(err));
	if (comtrade_cfg_parse(&c, text, len, 0, &err))
		return NULL;
	return c;
}

static struct comtrade_cfg *parse(const char *text)
{
	struct comtrade_cfg *c = parse_bytes(text, strlen(text));

	if (!c)
		fail_msg("line %u: %s", err.line, err.text);
	return c;
}

static void refuse(const char *text, unsigned line, const char *part)
{
	struct comtrade_cfg *c = parse_bytes(text, strlen(text));

	if (c) {
		comtrade_cfg_free(c);
		fail_msg("not refused: %s", part);
	}
	if (err.line != line || !strstr(err.text, part))
		fail_msg("line %u: '%s', expected line %u: '%s'", err.line,
			 err.text, line, part);
}

static void all_fields_of_1999_are_read(void **state)
{
	struct comtrade_cfg *c = parse(HEAD_1999 CHANNELS TAIL);

	assert_string_equal(c->station, "ST");
	assert_string_equal(c->device, "DEV");
	assert_int_equal(c->revision, 1999);
	assert_int_equal(c->analog_count, 2);
	assert_int_equal(c->digital_count, 1);
	assert_string_equal(c->analog[0].name, "IA");
	assert_string_equal(c->analog[0].phase, "A");
	assert_string_equal(c->analog[0].component, "Line 1");
	assert_string_equal(c->analog[1].unit, "kV");
	assert_true(c->analog[0].a == 0.5 && c->analog[0].b == -1);
	assert_true(c->analog[1].primary == 110 && c->analog[1].secondary == 0.1);
	assert_int_equal(c->analog[0].side, 'S');
	assert_int_equal(c->analog[1].side, 'P');
	assert_true(c->digital[0].normal);
	assert_true(c->line_hz == 50);
	assert_int_equal(c->rate_count, 1);
	assert_true(c->rates[0].hz == 1000 && c->rates[0].end == 3);
	assert_true(c->start.known && !c->start.nanoseconds);
	assert_int_equal(c->start.sec, 946684799);
	assert_int_equal(c->start.nsec, 500000000);
	assert_int_equal(c->trigger.sec, 946684800);
	assert_int_equal(c->data, COMTRADE_BINARY);
	assert_true(c->time_multiplier == 1);
	comtrade_cfg_free(c);
}

static void the_first_revision_has_less_and_month_first(void **state)
{
	struct comtrade_cfg *c = parse(
		"ST,DEV\n2,1A,1D\n1,IA,A,,A,1,0,0,-9,9\n2,TRIP,1\n60\n1\n"
		"600,10\n12/31/91,23:59:59.000001\n12/31/91,23:59:59.5\nASCII\n");

	assert_int_equal(c->revision, 1991);
	assert_true(c->digital[0].normal);
	assert_true(c->time_multiplier == 1);
	assert_int_equal(c->analog[0].side, 0);
	assert_int_equal(c->start.sec, 694223999);
	assert_int_equal(c->start.nsec, 1000);
	comtrade_cfg_free(c);
}

static void zones_are_read_in_the_forms_that_recorders_write(void **state)
{
	static const struct {
		const char *text;
		bool good;
		int32_t seconds;
	} cases[] = {
		{ "-5h30", true, -19800 }, { "+5:30", true, 19800 },
		{ "+5.5", true, 19800 },   { "-3.75", true, -13500 },
		{ "0", true, 0 },	   { "x", false, 0 },
		{ "5.", false, 0 },	   { "5.5h", false, 0 },
		{ "Z", true, 0 },	   { "utc", true, 0 },
		{ "UTC+1", true, 3600 },   { "GMT-05:30", true, -19800 },
		{ "+0530", true, 19800 },  { "-5h", true, -18000 },
		{ "+10h30m", true, 37800 }, { "+25", false, 0 },
		{ "CET", false, 0 },	   { "+5:", false, 0 },
		{ "UTC+", false, 0 },	   { "", false, 0 },
		{ "+0560", false, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *text = cases[i].text;
		int32_t seconds = 0;

		assert_int_equal(comtrade_zone_parse(text, text + strlen(text),
						     &seconds), cases[i].good);
		assert_int_equal(seconds, cases[i].seconds);
	}
}

static void a_zone_that_nobody_can_read_is_noted(void **state)
{
	static const char *const zones[] = { "+5 hours", "x", "", "+9", "CET",
					     "99", "?", "Europe/Berlin", "X", "UTC" };
	char text[400];

	for (size_t i = 0; i < ARRAY_SIZE(zones); i++) {
		struct comtrade_cfg *c;

		snprintf(text, sizeof(text), "ST,DEV,2013\n1,0A,1D\n1,TRIP,,,0\n\n0\n0,2\n"
			 ",\n,\nASCII\n1\n%s,x\nB,3\n", zones[i]);
		c = parse(text);
		assert_int_equal(c->zone_unread, i == 0 || (i >= 4 && i <= 7));
		assert_int_equal(c->has_zone, i == 3 || i == 9);
		comtrade_cfg_free(c);
	}
}

/* A revision that is no year: the year of the dates says how they are written. */
static void a_revision_that_is_no_year_is_taken_by_its_dates(void **state)
{
	static const struct { const char *revision, *date; unsigned taken; bool noted; int64_t sec; } cases[] = {
		{ "0", "02/03/2020", 1999, true, 1583107200 },
		{ "0", "02/03/20", 1991, true, 1580688000 },
		{ "abc", "02/03/2020", 1999, true, 1583107200 },
		{ "abc", "02/03/20", 1991, true, 1580688000 },
		{ "-1", "02/03/2020", 1999, true, 1583107200 },
		{ "20013", "02/03/2020", 1999, true, 1583107200 },
		{ "99", "02/03/2020", 1999, false, 1583107200 },
		{ "13", "02/03/2020", 2013, false, 1583107200 },
		{ "91", "02/03/20", 1991, false, 1580688000 },
		{ "2001", "02/03/2020", 2001, false, 1583107200 },
	};
	char text[400];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct comtrade_cfg *c;

		snprintf(text, sizeof(text), "ST,DEV,%s\n1,0A,1D\n1,TRIP,,,0\n\n0\n0,2\n"
			 "%s,00:00:00.0\n,\nASCII\n1\n", cases[i].revision, cases[i].date);
		c = parse(text);
		assert_int_equal(c->revision, cases[i].taken);
		assert_int_equal(c->revision_unread != NULL, cases[i].noted);
		assert_true(c->start.sec == cases[i].sec);
		comtrade_cfg_free(c);
	}
}

static void zone_and_quality_of_2013_are_read(void **state)
{
	struct comtrade_cfg *c = parse(
		"ST,DEV,2013\n1,0A,1D\n1,TRIP,,,0\n\n0\n0,2\n"
		"01/02/2013,00:00:00.123456789\n01/02/2013,00:00:00.2\nfloat32\n"
		"2.5\n-5h30,x\nB,3\n");

	assert_true(c->has_zone);
	assert_int_equal(c->zone_s, -19800);
	assert_true(c->start.nanoseconds);
	assert_int_equal(c->start.nsec, 123456789);
	assert_int_equal(c->data, COMTRADE_FLOAT32);
	assert_true(c->time_multiplier == 2.5);
	assert_string_equal(c->quality, "B");
	assert_string_equal(c->leap, "3");
	/* UTC is five and a half hours ahead. */
	assert_int_equal(comtrade_time_ns(c, &c->start),
			 INT64_C(1359676800123456789) + INT64_C(19800000000000));
	/* No rates: one line, with 0 Hz. */
	assert_int_equal(c->rate_count, 1);
	assert_true(c->rates[0].hz == 0 && c->line_hz == 0);
	comtrade_cfg_free(c);
}

static void text_that_is_not_utf8_is_latin1(void **state)
{
	struct comtrade_cfg *c = parse("Esta\xe7\xe3o,D,1999\n1,0A,1D\n1,\xfc,,,0\n"
				       "50\n1\n1,1\n,\n,\nASCII\n1\n");

	assert_string_equal(c->station, "Esta\xc3\xa7\xc3\xa3o");
	assert_string_equal(c->digital[0].name, "\xc3\xbc");
	assert_false(c->start.known);
	comtrade_cfg_free(c);
	c = parse("\xef\xbb\xbfM\xc3\xbcnchen,D,2013\n1,0A,1D\n1,x,,,0\n50\n1\n1,1\n"
		  "01/01/2020,0:0:0\n01/01/2020,0:0:0\nASCII\n1\n");
	assert_string_equal(c->station, "M\xc3\xbcnchen");
	assert_int_equal(c->start.sec, 1577836800);
	comtrade_cfg_free(c);
}

static void what_devices_do_to_the_standard_is_understood(void **state)
{
	/* Blanks, lower-case letters, a year that never was one, CR CR LF,
	 * the end mark, days where months belong, no trigger. */
	struct comtrade_cfg *c = parse(
		" A B , C ,2001\r\r\n 2, 1a, 1d\r\r\n 1 , I , , , A , 1e-3 , 0 \r\r\n"
		"1,x\r\r\n50.0\r\r\n1\r\r\n1000, 12.0\r\r\n"
		"12/31/2001,23:00:00\r\r\nnever\r\r\nbinary \r\r\n\x1a\x1a");

	assert_int_equal(c->revision, 2001);
	assert_string_equal(c->station, "A B");
	assert_string_equal(c->analog[0].name, "I");
	assert_true(c->analog[0].a == 1e-3);
	assert_true(c->analog[0].primary == 1 && c->analog[0].secondary == 1);
	assert_int_equal(c->rates[0].end, 12);
	assert_int_equal(c->start.sec, 1009839600);
	assert_false(c->trigger.known);
	assert_true(c->time_multiplier == 1);
	comtrade_cfg_free(c);
}

static void errors_name_line_and_field(void **state)
{
	refuse("", 0, "ends before its first line");
	refuse("ST,DEV,1999\n", 1, "ends before the numbers of channels");
	refuse("ST,DEV,1999\n3,2B,1D\n", 2, "field 2 (##A)");
	refuse("ST,DEV,1999\n3,2A\n", 2, "field 3 (##D)");
	refuse("ST,DEV,1999\n0,0A,0D\n", 2, "0 channels");
	refuse("ST,DEV,1999\n999999,999999A,0D\n", 2, "more than 65536");
	refuse("ST,DEV,1999\n60000,60000A,0D\n1,x\n", 2, "lines for");
	refuse(HEAD_1999 "1,IA,A,,A,zero,0,0,1,1\n1,2,3,4,5,6,7,8\n1,2,3,4,5\n", 3,
	       "field 6 (a): 'zero' is not a number");
	refuse(HEAD_1999 "1,IA,A,,A\n" CHANNELS, 3, "5 fields");
	refuse(HEAD_1999 CHANNELS "50\n1\nx,3\n", 8, "field 1 (samp): 'x'");
	refuse(HEAD_1999 CHANNELS "50\n1\n1000,-3\n", 8, "field 2 (endsamp): '-3'");
	refuse(HEAD_1999 CHANNELS "50\n65000\n1000,3\n", 7, "field 1 (nrates)");
	refuse(HEAD_1999 CHANNELS "50\n1\n1000,3\n32/13/1999,0:0:0\n", 9,
	       "is not a time such as 31/12/1999");
	refuse(HEAD_1999 CHANNELS "50\n1\n1000,3\n31/02/2020,0:0:0\n", 9,
	       "is not a time such as 31/12/1999");
	refuse(HEAD_1999 CHANNELS "50\n1\n1000,3\n29/02/2100,0:0:0\n", 9,
	       "is not a time such as 31/12/1999");
	refuse(HEAD_1999 CHANNELS "50\n1\n1000,3\n,\n,\nBINARY64\n", 11,
	       "is none of ASCII");
	refuse(HEAD_1999 CHANNELS "50\n1\n1000,3\n,\n,\nASCII\n-1\n", 12,
	       "field 1 (timemult)");
}

static void printed_configurations_read_back_equal(void **state)
{
	static const char *const texts[] = {
		HEAD_1999 CHANNELS TAIL,
		"ST\xc3\xbc,DEV,2013\r\n1,1A,0D\r\n"
		"1,I,,,\xc2\xb5" "A,0.1,1e-300,0,-3.4028234663852886e38,1,1,1,P\r\n"
		"16.7\r\n2\r\n0.1,5\r\n20000,4294967296\r\n"
		"29/02/2024,12:00:00.000000001\r\n01/01/1960,00:00:00.999999999\r\n"
		"FLOAT32\r\n1000\r\n+5h45,+5h45\r\n0,0\r\n",
	};
	char buf[2][2048];

	for (size_t i = 0; i < 2; i++) {
		struct comtrade_cfg *c = parse(texts[i]);
		size_t len = comtrade_cfg_print(c, buf[0], sizeof(buf[0])), again;

		/* What would be printed is counted without a buffer. */
		assert_int_equal(comtrade_cfg_print(c, NULL, 0), len);
		comtrade_cfg_free(c);
		c = parse_bytes(buf[0], len);
		assert_non_null(c);
		again = comtrade_cfg_print(c, buf[1], sizeof(buf[1]));
		assert_int_equal(again, len);
		assert_memory_equal(buf[0], buf[1], len);
		assert_true(c->rates[0].hz == (i ? 0.1 : 1000));
		comtrade_cfg_free(c);
	}
	assert_non_null(strstr(buf[1], "\r\n29/02/2024,12:00:00.000000001\r\n"
				       "01/01/1960,00:00:00.999999999\r\n"));
	assert_non_null(strstr(buf[1], "\r\n+5h45,+5h45\r\n0,0\r\n"));
}

static void ratios_make_primary_and_secondary_values(void **state)
{
	struct comtrade_cfg *c = parse(HEAD_1999 CHANNELS TAIL);

	/* IA is a secondary value of a transformer 800:1, UA a primary one. */
	comtrade_cfg_convert(c, COMTRADE_PRIMARY);
	assert_true(c->analog[0].a == 400 && c->analog[0].b == -800);
	assert_true(c->analog[1].a == 2);
	comtrade_cfg_convert(c, COMTRADE_SECONDARY);
	assert_true(c->analog[0].a == 0.5 && c->analog[0].b == -1);
	assert_true(c->analog[1].a == 2 * (1 / 1100.));
	comtrade_cfg_free(c);
}

static void parts_of_single_files_are_found(void **state)
{
	static const char text[] = "--- file type: CFG ---\r\nabc\r\n"
				   "--- file type: INF ---\r\n--- file type: HDR ---\r\n"
				   "for people\r\n--- file type: DAT FLOAT32: 12 ---\r\nX";
	static const char odd[] = "--- file type  CFG ---\nabc\n-- File Type DAT ---\nX";
	struct comtrade_cff p;
	size_t len = strlen(text);

	assert_int_equal(comtrade_cff_find(text, len, &p, &err), 1);
	assert_memory_equal(text + p.cfg_start, "abc\r\n---", 8);
	assert_int_equal(p.cfg_end - p.cfg_start, 5);
	assert_int_equal(p.data, COMTRADE_FLOAT32);
	assert_true(p.has_size && p.dat_size == 12);
	assert_int_equal(text[p.dat_start], 'X');
	/* However little has come, nothing is wrong with it. */
	for (size_t n = 0; n < len - 1; n++)
		assert_int_equal(comtrade_cff_find(text, n, &p, &err), 0);
	assert_int_equal(comtrade_cff_find(odd, strlen(odd), &p, &err), 1);
	assert_int_equal(odd[p.dat_start], 'X');
	assert_true(p.data == -1 && !p.has_size);
	assert_int_equal(comtrade_cff_find("a,b\nc", 5, &p, &err), -EBADMSG);
	assert_int_equal(err.line, 1);
	assert_int_equal(comtrade_cff_find("--- file type: DAT ---\n", 23, &p, &err),
			 -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_fields_of_1999_are_read),
		cmocka_unit_test(the_first_revision_has_less_and_month_first),
		cmocka_unit_test(zones_are_read_in_the_forms_that_recorders_write),
		cmocka_unit_test(a_zone_that_nobody_can_read_is_noted),
		cmocka_unit_test(a_revision_that_is_no_year_is_taken_by_its_dates),
		cmocka_unit_test(zone_and_quality_of_2013_are_read),
		cmocka_unit_test(text_that_is_not_utf8_is_latin1),
		cmocka_unit_test(what_devices_do_to_the_standard_is_understood),
		cmocka_unit_test(errors_name_line_and_field),
		cmocka_unit_test(printed_configurations_read_back_equal),
		cmocka_unit_test(ratios_make_primary_and_secondary_values),
		cmocka_unit_test(parts_of_single_files_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL) ? 1 : 0;
}
