/* SPDX-License-Identifier: BSD-2-Clause */
/* Values to rows of a data file, and the scale of channels. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "gateway/comtrade/comtrade.h"
#include "util/num.h"

#define STAMP_MISSING UINT32_MAX
/* Numbers of a row, with commas, and its end. */
#define ASCII_HEAD_MAX (2 * NUM_INT_MAX + 8)

static char *put_u32(char *at, uint32_t v)
{
	for (int i = 0; i < 4; i++, v >>= 8)
		*at++ = (char)(v & 0xff);
	return at;
}

static char *put_u16(char *at, uint16_t v)
{
	*at++ = (char)(v & 0xff);
	*at++ = (char)(v >> 8);
	return at;
}

bool comtrade_is_integer(const struct comtrade_cfg *c)
{
	return c->data == COMTRADE_BINARY || c->data == COMTRADE_BINARY32 ||
	       (c->data == COMTRADE_ASCII && c->revision < 2013);
}

/* The largest integer that is a value: one more, or its negative, may mean that
 * the value is missing. */
static double stored_max(const struct comtrade_cfg *c)
{
	switch (c->data) {
	case COMTRADE_BINARY:
		return INT16_MAX;
	case COMTRADE_BINARY32:
		return INT32_MAX;
	case COMTRADE_ASCII:
		return c->revision < 2013 ? 99998 : DBL_MAX;
	default:
		return FLT_MAX;
	}
}

void comtrade_analog_scale(struct comtrade_analog *a,
			   const struct comtrade_cfg *c, double low, double high)
{
	double most = stored_max(c);

	a->a = 1;
	a->b = 0;
	if (comtrade_is_integer(c)) {
		/* Halves: the whole may be larger than a double. */
		a->a = (high / 2 - low / 2) / most;
		a->b = high / 2 + low / 2;
	} else {
		most = 3.4028235e38; /* as the standard prints it */
	}
	a->min = -most;
	a->max = most;
}

/* What is to be stored; NaN stays. */
static double to_stored(const struct comtrade_cfg *c, unsigned i, double value,
			double most, uint64_t *clipped)
{
	double v = (value - c->analog[i].b) / c->analog[i].a;

	if (comtrade_is_integer(c))
		v = round(v);
	else if (isinf(v))
		return v;
	if (fabs(v) <= most || isnan(v))
		return v;
	/* Else 1e39 would become an infinite float. */
	++*clipped;
	return copysign(most, v);
}

static size_t encode_binary(const struct comtrade_cfg *c, char *buf, size_t size,
			    const struct comtrade_row *row,
			    const union signal_data *values, uint64_t *clipped)
{
	char *at = buf;
	uint32_t stamp = (uint32_t)row->stamp;
	double most = stored_max(c);

	if (size < comtrade_row_size(c))
		return 0;
	if (!row->has_stamp)
		stamp = STAMP_MISSING;
	else if (stamp == STAMP_MISSING)
		stamp--; /* one unit too early, but not missing */
	at = put_u32(at, (uint32_t)row->number);
	at = put_u32(at, stamp);
	for (unsigned i = 0; i < c->analog_count; i++) {
		double v = to_stored(c, i, values[i].f, most, clipped);
		float f = (float)v;
		uint32_t bits;

		if (c->data == COMTRADE_BINARY) {
			at = put_u16(at, (uint16_t)(isnan(v) ? INT16_MIN :
							       (int16_t)v));
			continue;
		}
		if (c->data == COMTRADE_BINARY32)
			bits = (uint32_t)(isnan(v) ? INT32_MIN : (int32_t)v);
		else
			memcpy(&bits, &f, sizeof(bits));
		at = put_u32(at, bits);
	}
	values += c->analog_count;
	for (unsigned i = 0; i < c->digital_count; i += 16) {
		unsigned word = 0;

		for (unsigned k = i; k < i + 16 && k < c->digital_count; k++)
			word |= (values[k].i != 0 ? 1u : 0u) << (k - i);
		at = put_u16(at, (uint16_t)word);
	}
	return (size_t)(at - buf);
}

static char *print_real(char *at, double v, int digits)
{
	if (isnan(v))
		return at;
	if (digits <= 0 || digits > 16)
		return num_print_double(at, v);
	/* With its point: 99999 alone would mean that the value is missing. */
	return at + snprintf(at, NUM_DOUBLE_MAX, "%#.*g", digits, v);
}

static size_t encode_ascii(const struct comtrade_cfg *c, char *buf, size_t size,
			   const struct comtrade_row *row,
			   const union signal_data *values, int digits,
			   uint64_t *clipped)
{
	double most = stored_max(c);
	char *at = buf;

	if (size < ASCII_HEAD_MAX + c->analog_count * (size_t)(NUM_DOUBLE_MAX + 1) +
			   c->digital_count * (size_t)2)
		return 0;
	at = num_print_u64(at, row->number);
	*at++ = ',';
	if (row->has_stamp)
		at = num_print_i64(at, row->stamp);
	for (unsigned i = 0; i < c->analog_count; i++) {
		double v = to_stored(c, i, values[i].f, most, clipped);

		*at++ = ',';
		if (!comtrade_is_integer(c))
			at = print_real(at, v, digits);
		else if (isnan(v))
			at += sprintf(at, "99999");
		else
			at = num_print_i64(at, (int64_t)v);
	}
	for (unsigned i = 0; i < c->digital_count; i++) {
		*at++ = ',';
		*at++ = values[c->analog_count + i].i ? '1' : '0';
	}
	*at++ = '\r';
	*at++ = '\n';
	return (size_t)(at - buf);
}

size_t comtrade_row_encode(const struct comtrade_cfg *c, char *buf, size_t size,
			   const struct comtrade_row *row,
			   const union signal_data *values, int digits,
			   uint64_t *clipped)
{
	if (c->data == COMTRADE_ASCII)
		return encode_ascii(c, buf, size, row, values, digits, clipped);
	return encode_binary(c, buf, size, row, values, clipped);
}
