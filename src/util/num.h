/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Numbers to text and back: exact, fast, and independent of the locale.
 *
 * num_print_double() writes the shortest decimal that reads back to the same
 * bits (and of these the closest one); num_parse_double() is correctly rounded.
 * Neither needs a terminated string. Nothing here allocates.
 *
 * Not exact are the payloads of NaNs: every NaN prints as "nan" and reads back
 * as the quiet one.
 */
#ifndef UTIL_NUM_H
#define UTIL_NUM_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that a printer may write; it does not terminate the text. */
#define NUM_DOUBLE_MAX 32
#define NUM_INT_MAX 20

/* All printers return the position behind the last byte. */

/*
 * "0.1", "-12.0", "1e-300", "nan", "-inf", "-0.0". Plain notation from 1e-5
 * to below 1e17, always with a point (so that readers see a real); beyond that
 * with an exponent.
 */
char *num_print_double(char *at, double value);
char *num_print_u64(char *at, uint64_t value);
char *num_print_i64(char *at, int64_t value);
/* Exactly nine digits; `nsec` below 1e9. */
char *num_print_nsec(char *at, uint32_t nsec);
/*
 * A time as decimal seconds, "-1.500000000" for -2 s and 500000000 ns: `nsec` (below
 * 1e9) counts forward from `sec`. At most 31 bytes.
 */
char *num_print_seconds(char *at, int64_t sec, uint32_t nsec);

/*
 * All parsers read the longest number at `at`, before `end`, and return the
 * position behind it; NULL (and nothing stored) when there is none or it does
 * not fit the type. No leading white space is skipped.
 */

/*
 * Optional sign, decimal digits with or without point, optional exponent; "nan"
 * and "inf" / "infinity" in any case. Too large becomes infinite, too small
 * becomes zero. More than 1000 characters are refused.
 */
const char *num_parse_double(const char *at, const char *end, double *value);
const char *num_parse_u64(const char *at, const char *end, uint64_t *value);
const char *num_parse_i64(const char *at, const char *end, int64_t *value);
/*
 * The digits behind the point of a time in seconds: "5" is 500000000 ns. More
 * than nine digits are cut.
 */
const char *num_parse_fraction(const char *at, const char *end, uint32_t *nsec);

/* An optional exponent, which is added to *exponent; returns `at` when there is none. A
 * lone "e" is none. */
const char *num_parse_exponent(const char *at, const char *end, int *exponent);

/* A number of seconds: its sign, and its magnitude to the nanosecond. */
struct num_seconds {
	int negative;
	uint64_t sec;
	uint32_t nsec;
};

/*
 * Decimal seconds with an optional sign, exact to the nanosecond; digits beyond are
 * rounded, halves away from zero. With `loose` there may be an exponent, and digits may
 * stand on one side of the point alone: "1.5e-3", ".5", "5.". The unit of the number is
 * 10^shift seconds.
 */
const char *num_parse_seconds(const char *at, const char *end, int loose, int shift,
			      struct num_seconds *v);

#endif
