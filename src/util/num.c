/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Printing: the shortest decimal in the rounding interval of a double, by the
 * method of R. Giulietti, "The Schubfach way to render doubles" (2020): scale
 * the value and the two ends of its interval by one power of ten, rounded to
 * odd, then at most two candidates of 16 digits and two of 17 have to be
 * compared with integers.
 *
 * Parsing: up to 19 digits times a 128-bit power of ten; the product's error is
 * below one unit of its 128 leading bits, so the rounding is decided unless
 * they lie next to a tie. Such rare cases, subnormals and overflows go to
 * strtod_l(), which is exact.
 */
#include "util/num.h"

#include <locale.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "num_powers.h"
#include "util/container_of.h"

typedef unsigned __int128 u128;

#define SIGN_BIT (UINT64_C(1) << 63)
#define FRACTION_MASK ((UINT64_C(1) << 52) - 1)
#define HIDDEN_BIT (UINT64_C(1) << 52)
#define NUMBER_CHARS_MAX 1000

static const struct num_power *power_of_ten(int q)
{
	return &num_powers[q - NUM_POWER_MIN];
}

/* floor(log2(10^q)) and floor(log10(2^e)), exact in the ranges used here. */
static int log2_of_power(int q)
{
	return (q * 1741647) >> 19;
}

static int log10_of_two_power(int e)
{
	return (e * 1262611) >> 22;
}

/* The same for 3/4 * 2^e, where the interval below is half as wide. */
static int log10_of_three_quarters(int e)
{
	return (e * 1262611 - 524031) >> 22;
}

/*
 * power * x / 2^128, with the lowest bit set if the quotient is not whole. The tables are
 * rounded up, which causes a remainder of at most 1; that counts as none.
 */
static uint64_t scale_to_odd(const struct num_power *power, uint64_t x)
{
	uint64_t low = (uint64_t)(((u128)power->lo * x) >> 64);
	u128 sum = (u128)power->hi * x + low;

	return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

struct decimal {
	uint64_t digits;
	int exponent;
};

/* Shortest, then closest decimal of a finite positive double. */
static struct decimal shortest_decimal(uint64_t fraction, int biased)
{
	uint64_t c = biased ? fraction | HIDDEN_BIT : fraction;
	int e = (biased ? biased : 1) - 1075;
	bool narrow = fraction == 0 && biased > 1; /* power of two */
	uint64_t open = c & 1; /* for even c the ends belong to the interval */
	int k = narrow ? log10_of_three_quarters(e) : log10_of_two_power(e);
	int shift = e + log2_of_power(-k) + 1;
	const struct num_power *g = power_of_ten(-k);
	/* All in quarters, so that the interval's ends are whole. */
	uint64_t low = scale_to_odd(g, (4 * c - 2 + narrow) << shift) + open;
	uint64_t mid = scale_to_odd(g, (4 * c) << shift);
	uint64_t high = scale_to_odd(g, (4 * c + 2) << shift) - open;
	uint64_t s = mid / 4, tens = s / 10;
	bool below_in, above_in, up;

	if (s >= 10) { /* one digit less */
		below_in = low <= 40 * tens;
		above_in = 40 * tens + 40 <= high;
		if (below_in != above_in)
			return (struct decimal){ tens + above_in, k + 1 };
	}
	below_in = low <= 4 * s;
	above_in = 4 * s + 4 <= high;
	if (below_in != above_in)
		return (struct decimal){ s + above_in, k };
	up = mid > 4 * s + 2 || (mid == 4 * s + 2 && (s & 1));
	return (struct decimal){ s + up, k };
}

static const char digit_pairs[201] =
	"00010203040506070809101112131415161718192021222324"
	"25262728293031323334353637383940414243444546474849"
	"50515253545556575859606162636465666768697071727374"
	"75767778798081828384858687888990919293949596979899";

/* Exactly eight digits. */
static void put8(char *at, uint32_t v)
{
	uint32_t high = v / 10000, low = v % 10000;

	memcpy(at, digit_pairs + 2 * (high / 100), 2);
	memcpy(at + 2, digit_pairs + 2 * (high % 100), 2);
	memcpy(at + 4, digit_pairs + 2 * (low / 100), 2);
	memcpy(at + 6, digit_pairs + 2 * (low % 100), 2);
}

static unsigned count_digits(uint64_t v)
{
	static const uint64_t powers[] = {
		1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000,
		1000000000, UINT64_C(10000000000), UINT64_C(100000000000),
		UINT64_C(1000000000000), UINT64_C(10000000000000),
		UINT64_C(100000000000000), UINT64_C(1000000000000000),
		UINT64_C(10000000000000000), UINT64_C(100000000000000000),
		UINT64_C(1000000000000000000), UINT64_C(10000000000000000000),
	};
	unsigned guess;

	v |= 1; /* 0 has one digit, too; adding 1 to an even number adds no digit */
	/* 1233 / 4096 is log10(2), close enough for 64 bits. */
	guess = (64 - (unsigned)__builtin_clzll(v)) * 1233 >> 12;
	return guess + (v >= powers[guess]);
}

static char *put_digits(char *at, uint64_t v, unsigned count)
{
	char *end = at + count, *p = end;

	while (p - at >= 8) {
		p -= 8;
		put8(p, (uint32_t)(v % 100000000));
		v /= 100000000;
	}
	while (p - at >= 2) {
		p -= 2;
		memcpy(p, digit_pairs + 2 * (v % 100), 2);
		v /= 100;
	}
	if (p > at)
		*--p = (char)('0' + v);
	return end;
}

char *num_print_u64(char *at, uint64_t value)
{
	return put_digits(at, value, count_digits(value));
}

char *num_print_i64(char *at, int64_t value)
{
	if (value >= 0)
		return num_print_u64(at, (uint64_t)value);
	*at++ = '-';
	return num_print_u64(at, -(uint64_t)value);
}

char *num_print_nsec(char *at, uint32_t nsec)
{
	*at = (char)('0' + nsec / 100000000);
	put8(at + 1, nsec % 100000000);
	return at + 9;
}

static char *put_exponent(char *at, int exponent)
{
	*at++ = 'e';
	if (exponent < 0) {
		*at++ = '-';
		exponent = -exponent;
	}
	return num_print_u64(at, (uint64_t)exponent);
}

static char *put_decimal(char *at, struct decimal d)
{
	unsigned count;
	int point; /* digits before the point; may be negative */

	while (d.digits % 10000 == 0) {
		d.digits /= 10000;
		d.exponent += 4;
	}
	while (d.digits % 10 == 0) {
		d.digits /= 10;
		d.exponent++;
	}
	count = count_digits(d.digits);
	point = (int)count + d.exponent;
	if (point > 17 || point < -4) {
		/* All digits one place to the right, then pull the first out. */
		put_digits(at + 1, d.digits, count);
		at[0] = at[1];
		if (count > 1) {
			at[1] = '.';
			at += count + 1;
		} else {
			at++;
		}
		return put_exponent(at, point - 1);
	}
	if (point <= 0) {
		memcpy(at, "0.0000", 6);
		return put_digits(at + 2 - point, d.digits, count);
	}
	if ((unsigned)point >= count) {
		at = put_digits(at, d.digits, count);
		memset(at, '0', (size_t)d.exponent);
		at += d.exponent;
		memcpy(at, ".0", 2);
		return at + 2;
	}
	put_digits(at + 1, d.digits, count);
	memmove(at, at + 1, (size_t)point);
	at[point] = '.';
	return at + count + 1;
}

char *num_print_double(char *at, double value)
{
	uint64_t bits, fraction;
	int biased;

	memcpy(&bits, &value, sizeof(bits));
	fraction = bits & FRACTION_MASK;
	biased = (int)(bits >> 52 & 0x7ff);
	if (biased == 0x7ff && fraction) {
		memcpy(at, "nan", 3);
		return at + 3;
	}
	if (bits & SIGN_BIT) {
		*at++ = '-';
		bits &= ~SIGN_BIT;
	}
	if (biased == 0x7ff) {
		memcpy(at, "inf", 3);
		return at + 3;
	}
	if (bits == 0) {
		memcpy(at, "0.0", 3);
		return at + 3;
	}
	if (biased >= 1023 && biased <= 1023 + 52) { /* 1 <= |v| < 2^53 */
		uint64_t c = fraction | HIDDEN_BIT;
		unsigned below = (unsigned)(1023 + 52 - biased);

		if ((c & ((UINT64_C(1) << below) - 1)) == 0) {
			at = num_print_u64(at, c >> below);
			memcpy(at, ".0", 2);
			return at + 2;
		}
	}
	return put_decimal(at, shortest_decimal(fraction, biased));
}

static bool is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

const char *num_parse_u64(const char *at, const char *end, uint64_t *value)
{
	const char *p = at;
	uint64_t v = 0;

	for (; p < end && is_digit(*p); p++) {
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
			return NULL;
	}
	if (p == at)
		return NULL;
	*value = v;
	return p;
}

const char *num_parse_i64(const char *at, const char *end, int64_t *value)
{
	bool negative = at < end && *at == '-';
	const char *p = at + (at < end && (*at == '-' || *at == '+'));
	uint64_t v;

	p = num_parse_u64(p, end, &v);
	if (!p || v > (uint64_t)INT64_MAX + negative)
		return NULL;
	*value = (int64_t)(negative ? -v : v);
	return p;
}

const char *num_parse_fraction(const char *at, const char *end, uint32_t *nsec)
{
	uint32_t v = 0;
	unsigned digits = 0;
	const char *p = at;

	for (; p < end && is_digit(*p); p++) {
		if (digits < 9) {
			v = v * 10 + (uint32_t)(*p - '0');
			digits++;
		}
	}
	if (p == at)
		return NULL;
	for (; digits < 9; digits++)
		v *= 10;
	*nsec = v;
	return p;
}

static locale_t c_locale;

static void make_c_locale(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", NULL);
}

/* By strtod_l(), for numbers that multiply() cannot round with certainty. */
static const char *parse_exactly(const char *at, const char *end, double *value)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char text[NUMBER_CHARS_MAX + 1];
	size_t len = (size_t)(end - at);

	if (len > NUMBER_CHARS_MAX)
		return NULL;
	pthread_once(&once, make_c_locale);
	memcpy(text, at, len);
	text[len] = '\0';
	*value = c_locale ? strtod_l(text, NULL, c_locale) : strtod(text, NULL);
	return end;
}

/* w * 10^q; false: the rounding is uncertain. */
static bool multiply(uint64_t w, int q, double *value)
{
	static const double exact_powers[] = {
		1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
		1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
		1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
	};
	const struct num_power *g;
	unsigned zeros, shift;
	u128 product, rest, half;
	uint64_t bits;
	int exponent;

	if (w == 0) {
		*value = 0.0;
		return true;
	}
	/* Both factors are exact: so is the one rounding of the result. */
	if (w < HIDDEN_BIT * 2 && q >= -22 && q <= 22) {
		*value = q < 0 ? (double)w / exact_powers[-q]
			       : (double)w * exact_powers[q];
		return true;
	}
	if (q < NUM_POWER_MIN || q > 308)
		return false;
	g = power_of_ten(q);
	zeros = (unsigned)__builtin_clzll(w);
	w <<= zeros;
	product = (u128)g->hi * w + (uint64_t)(((u128)g->lo * w) >> 64);
	exponent = 63 - (int)zeros + log2_of_power(q);
	shift = 74;
	if (product >> 127) {
		exponent++;
		shift++;
	}
	if (exponent < -1022 || exponent > 1022)
		return false;
	half = (u128)1 << (shift - 1);
	rest = product & (2 * half - 1);
	if (rest - (half - 2) <= 4) /* wraps when below */
		return false;
	bits = (uint64_t)(product >> shift) + (rest > half);
	/* A carry out of the fraction increments the exponent, as required. */
	bits += ((uint64_t)(exponent + 1022) << 52);
	memcpy(value, &bits, sizeof(bits));
	return true;
}

static const char *parse_word(const char *at, const char *end, bool negative,
			      double *value)
{
	size_t len = (size_t)(end - at);
	double v;

	if (len >= 3 && !strncasecmp(at, "nan", 3)) {
		*value = __builtin_nan("");
		return at + 3;
	}
	if (len < 3 || strncasecmp(at, "inf", 3))
		return NULL;
	v = __builtin_inf();
	*value = negative ? -v : v;
	return at + (len >= 8 && !strncasecmp(at, "infinity", 8) ? 8 : 3);
}

const char *num_parse_exponent(const char *p, const char *end, int *q)
{
	const char *s = p + 1;
	bool negative;
	int v = 0;

	if (p >= end || (*p | 0x20) != 'e')
		return p;
	negative = s < end && *s == '-';
	s += s < end && (*s == '-' || *s == '+');
	if (s >= end || !is_digit(*s))
		return p;
	for (; s < end && is_digit(*s); s++) {
		if (v < 100000)
			v = v * 10 + (*s - '0');
	}
	*q += negative ? -v : v;
	return s;
}

const char *num_parse_double(const char *at, const char *end, double *value)
{
	bool negative = at < end && *at == '-';
	const char *start = at + (at < end && (*at == '-' || *at == '+'));
	const char *p = start;
	uint64_t w = 0;
	unsigned significant = 0; /* digits in w, leading zeros not counted */
	unsigned digits = 0, cut = 0;
	bool point = false;
	double v, above;
	int q = 0;

	for (; p < end; p++) {
		if (*p == '.' && !point) {
			point = true;
			continue;
		}
		if (!is_digit(*p))
			break;
		digits++;
		if (significant < 19) {
			w = w * 10 + (uint64_t)(*p - '0');
			significant += w != 0;
			q -= point;
		} else {
			cut += *p != '0';
			q += !point;
		}
		if (p - start > NUMBER_CHARS_MAX)
			return NULL;
	}
	if (!digits)
		return parse_word(start, end, negative, value);
	p = num_parse_exponent(p, end, &q);
	if (!multiply(w, q, &v) ||
	    (cut && (!multiply(w + 1, q, &above) || above != v))) {
		if (!parse_exactly(start, p, &v))
			return NULL;
	}
	*value = negative ? -v : v;
	return p;
}
