/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers to text and back, judged by the C library: strtod() says which double
 * a text means, printf("%.*e") how many digits are needed.
 */
#include "util/num.h"

#include <math.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "util/container_of.h"

static uint64_t random_state = 0x9e3779b97f4a7c15;

/* splitmix64 */
static uint64_t random_bits(void)
{
	uint64_t z = (random_state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static double from_bits(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static uint64_t to_bits(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static const char *print(double v)
{
	static char text[NUM_DOUBLE_MAX + 1];
	char *end = num_print_double(text, v);

	assert_true(end - text <= NUM_DOUBLE_MAX);
	*end = '\0';
	return text;
}

static double parse(const char *text)
{
	double v = -1;
	const char *end = text + strlen(text);

	if (num_parse_double(text, end, &v) != end)
		fail_msg("not read to its end: %s", text);
	return v;
}

/* Digits of the mantissa as printed, without the zeros around them. */
static unsigned significant_digits(const char *text, char digits[64])
{
	unsigned count = 0, used = 0;

	for (; *text && *text != 'e'; text++) {
		if (*text < '0' || *text > '9' || (*text == '0' && count == 0))
			continue;
		digits[count++] = *text;
		if (*text != '0')
			used = count;
	}
	digits[used] = '\0';
	return used;
}

static void check(double v)
{
	const char *text = print(v);
	uint64_t bits = to_bits(v);

	if (isnan(v)) {
		assert_string_equal(text, "nan");
		return;
	}
	if (to_bits(strtod(text, NULL)) != bits)
		fail_msg("%s means other bits than %a", text, v);
	if (to_bits(parse(text)) != bits)
		fail_msg("%s does not read back as %a", text, v);
}

static void check_shortest(double v)
{
	char ours[64], theirs[64], text[64];
	unsigned count = significant_digits(print(v), ours);

	if (!isfinite(v) || count <= 1)
		return;
	snprintf(text, sizeof(text), "%.*e", (int)count - 2, v);
	if (strtod(text, NULL) == v)
		fail_msg("%s has a digit too many, %s will do", print(v), text);
	/* printf finds the closest of that length. */
	snprintf(text, sizeof(text), "%.*e", (int)count - 1, v);
	significant_digits(text, theirs);
	if (strtod(text, NULL) == v && strcmp(ours, theirs))
		fail_msg("%s is not the closest, %s is", print(v), text);
}

static void random_bit_patterns_print_and_read_back_bit_equal(void **state)
{
	unsigned count = getenv("NUM_TEST_COUNT")
				 ? (unsigned)atol(getenv("NUM_TEST_COUNT"))
				 : 300000;

	for (unsigned i = 0; i < count; i++) {
		double v = from_bits(random_bits());

		check(v);
		if (i % 8 == 0)
			check_shortest(v);
	}
}

static void edges_of_binades_and_subnormals_read_back_bit_equal(void **state)
{
	for (uint64_t biased = 0; biased < 2047; biased++) {
		for (int64_t near = -3; near <= 3; near++) {
			double v = from_bits((biased << 52) + (uint64_t)near);

			check(v);
			check_shortest(v);
		}
	}
	for (int e = -330; e <= 308; e++) {
		char text[32];

		for (int digit = 1; digit <= 9; digit++) {
			snprintf(text, sizeof(text), "%de%d", digit, e);
			check(strtod(text, NULL));
			check_shortest(strtod(text, NULL));
		}
	}
}

static void ordinary_numbers_look_ordinary(void **state)
{
	static const struct {
		double value;
		const char *text;
	} cases[] = {
		{ 0.0, "0.0" },
		{ -0.0, "-0.0" },
		{ 1.0, "1.0" },
		{ -12.0, "-12.0" },
		{ 0.1, "0.1" },
		{ 0.5, "0.5" },
		{ 123.456, "123.456" },
		{ 1e-5, "0.00001" },
		{ 1.25e-6, "1.25e-6" },
		{ 1e16, "10000000000000000.0" },
		{ 123456789012345680.0, "1.2345678901234568e17" },
		{ 1e22, "1e22" },
		{ 5e-324, "5e-324" },
		{ 1.7976931348623157e308, "1.7976931348623157e308" },
		{ 9007199254740993.0, "9007199254740992.0" },
		{ 2e-20, "2e-20" },
		{ INFINITY, "inf" },
		{ -INFINITY, "-inf" },
		{ NAN, "nan" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		assert_string_equal(print(cases[i].value), cases[i].text);
}

static void numbers_of_any_length_are_rounded_correctly(void **state)
{
	char text[400];

	for (unsigned i = 0; i < 100000; i++) {
		unsigned digits = 1 + (unsigned)(random_bits() % 40);
		int exponent = (int)(random_bits() % 700) - 360;
		unsigned point = (unsigned)(random_bits() % (digits + 1));
		size_t len = 0;

		for (unsigned d = 0; d < digits; d++) {
			if (d == point)
				text[len++] = '.';
			text[len++] = (char)('0' + random_bits() % 10);
		}
		snprintf(text + len, sizeof(text) - len, "e%d", exponent);
		if (to_bits(parse(text)) != to_bits(strtod(text, NULL)))
			fail_msg("%s is read as %a, not %a", text, parse(text),
				 strtod(text, NULL));
	}
}

static void ties_go_to_the_even_neighbour(void **state)
{
	char text[1200];

	/* Exactly between two doubles, a hair above and a hair below. */
	for (unsigned i = 0; i < 20000; i++) {
		uint64_t c = (random_bits() & ((UINT64_C(1) << 53) - 1)) |
			     (UINT64_C(1) << 52);
		long double tie = (long double)c + 0.5L;
		int exponent = (int)(random_bits() % 60) - 30;

		tie = ldexpl(tie, exponent);
		snprintf(text, sizeof(text), "%.60Lf", tie);
		assert_int_equal(to_bits(parse(text)),
				 to_bits(strtod(text, NULL)));
		strcat(text, "1");
		assert_int_equal(to_bits(parse(text)),
				 to_bits(strtod(text, NULL)));
	}
	assert_true(parse("9007199254740993") == 9007199254740992.0);
	assert_true(parse("9007199254740993.0000000001") == 9007199254740994.0);
}

static void what_is_no_number_is_refused(void **state)
{
	static const char *const cases[] = { "", "-", "+", ".", "e5", "-e5",
					     "abc", "in", "na", "--1", " 1" };
	char *many = malloc(3000);
	double v = 42;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const char *end = cases[i] + strlen(cases[i]);

		assert_null(num_parse_double(cases[i], end, &v));
		assert_true(v == 42);
	}
	memset(many, '1', 3000);
	assert_null(num_parse_double(many, many + 3000, &v));
	free(many);
	/* The number ends where it ends. */
	assert_string_equal(num_parse_double("1.5;2", &"1.5;2"[0] + 5, &v) ? "" : "x", "");
	assert_true(isinf(parse("1e400")) && parse("-1e400") < 0);
	assert_true(parse("1e-400") == 0 && signbit(parse("-1e-400")));
	assert_true(isnan(parse("NaN")) && isinf(parse("-Infinity")));
	assert_true(parse("+.5") == 0.5 && parse("5.") == 5.0);
	assert_true(parse("1e99999999999") == INFINITY);
}

static void integers_keep_their_whole_range(void **state)
{
	char text[NUM_INT_MAX + 1];
	uint64_t u;
	int64_t i;

	for (unsigned shift = 0; shift < 64; shift++) {
		for (int n = 0; n < 200; n++) {
			uint64_t v = random_bits() >> shift;
			char *end = num_print_u64(text, v);
			char expected[32];

			*end = '\0';
			snprintf(expected, sizeof(expected), "%ju", (uintmax_t)v);
			assert_string_equal(text, expected);
			assert_ptr_equal(num_parse_u64(text, end, &u), end);
			assert_true(u == v);
			end = num_print_i64(text, (int64_t)v);
			assert_ptr_equal(num_parse_i64(text, end, &i), end);
			assert_true(i == (int64_t)v);
		}
	}
	for (uint64_t p = 1, n = 0; n < 20; n++, p *= 10) {
		char *end = num_print_u64(text, p - 1);

		assert_int_equal(end - text, n ? n : 1);
		end = num_print_u64(text, p);
		assert_int_equal(end - text, n + 1);
	}
	assert_null(num_parse_u64("18446744073709551616",
				  &"18446744073709551616"[0] + 20, &u));
	assert_null(num_parse_i64("9223372036854775808",
				  &"9223372036854775808"[0] + 19, &i));
	assert_non_null(num_parse_i64("-9223372036854775808",
				      &"-9223372036854775808"[0] + 20, &i));
	assert_true(i == INT64_MIN);
}

static void a_fraction_of_five_is_half_a_second(void **state)
{
	uint32_t nsec;

	assert_non_null(num_parse_fraction("5", &"5"[0] + 1, &nsec));
	assert_int_equal(nsec, 500000000);
	assert_non_null(num_parse_fraction("000000001", &"000000001"[0] + 9, &nsec));
	assert_int_equal(nsec, 1);
	assert_non_null(num_parse_fraction("1234567899", &"1234567899"[0] + 10, &nsec));
	assert_int_equal(nsec, 123456789);
	assert_null(num_parse_fraction("x", &"x"[0] + 1, &nsec));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_bit_patterns_print_and_read_back_bit_equal),
		cmocka_unit_test(edges_of_binades_and_subnormals_read_back_bit_equal),
		cmocka_unit_test(ordinary_numbers_look_ordinary),
		cmocka_unit_test(numbers_of_any_length_are_rounded_correctly),
		cmocka_unit_test(ties_go_to_the_even_neighbour),
		cmocka_unit_test(what_is_no_number_is_refused),
		cmocka_unit_test(integers_keep_their_whole_range),
		cmocka_unit_test(a_fraction_of_five_is_half_a_second),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
