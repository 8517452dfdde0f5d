/* SPDX-License-Identifier: BSD-2-Clause */
/* Times as decimal seconds, to text and back; see num.h. */
#include "util/num.h"

static int is_digit(char c)
{
	return c >= '0' && c <= '9';
}

char *num_print_seconds(char *at, int64_t sec, uint32_t nsec)
{
	if (sec < 0) {
		*at++ = '-';
		if (nsec) { /* -2 s and 0.3 s are -1.7 s */
			sec++;
			nsec = 1000000000 - nsec;
		}
	}
	at = num_print_u64(at, sec < 0 ? -(uint64_t)sec : (uint64_t)sec);
	*at++ = '.';
	return num_print_nsec(at, nsec);
}

/* Digits of a decimal number, and where its point is. */
struct digits {
	const char *at;
	long whole, count; /* digits before the written point; in all */
	long point;        /* as `whole`, after the exponent moved it */
};

static const char *parse_digits(const char *at, const char *end, int loose,
				struct digits *d)
{
	const char *p = at;
	int exponent = 0;

	while (p < end && is_digit(*p))
		p++;
	*d = (struct digits){ at, p - at, p - at, 0 };
	if (p == at && !loose)
		return NULL;
	if (p < end && *p == '.') {
		for (p++; p < end && is_digit(*p); p++)
			d->count++;
		if (d->count == d->whole && !loose)
			return NULL;
	}
	if (!d->count)
		return NULL;
	if (loose)
		p = num_parse_exponent(p, end, &exponent);
	d->point = d->whole + exponent;
	return p;
}

const char *num_parse_seconds(const char *at, const char *end, int loose, int shift,
			      struct num_seconds *v)
{
	static const uint32_t weights[] = { 100000000, 10000000, 1000000, 100000,
					    10000, 1000, 100, 10, 1 };
	struct num_seconds n = { .negative = at < end && *at == '-' };
	struct digits d;

	at = parse_digits(at + (at < end && (*at == '-' || *at == '+')), end, loose,
			  &d);
	if (!at)
		return NULL;
	d.point += shift;
	for (long i = 0; i < d.count && i - d.point <= 9; i++) {
		/* The digits behind the written point stand one byte further. */
		uint32_t digit = (uint32_t)(d.at[i + (i >= d.whole)] - '0');

		if (i - d.point == 9)
			n.nsec += digit >= 5;
		else if (i >= d.point)
			n.nsec += digit * weights[i - d.point];
		else if (__builtin_mul_overflow(n.sec, 10, &n.sec) ||
			 __builtin_add_overflow(n.sec, digit, &n.sec))
			return NULL;
	}
	for (long i = d.count; i < d.point && n.sec; i++)
		if (__builtin_mul_overflow(n.sec, 10, &n.sec))
			return NULL;
	if (n.nsec == 1000000000) {
		n.nsec = 0;
		if (!++n.sec)
			return NULL;
	}
	*v = n;
	return at;
}
