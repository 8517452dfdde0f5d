/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of a data file to values. */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "gateway/comtrade/comtrade.h"
#include "gateway/comtrade/fields.h"
#include "util/num.h"

#define STAMP_MISSING UINT32_MAX
#define MISSING_16 INT16_MIN
#define MISSING_32 INT32_MIN
/* A row of text that is longer than this per channel is none. */
#define FIELD_BYTES_MAX 64

static uint32_t get_u32(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;

	return b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 |
	       (uint32_t)b[3] << 24;
}

static uint16_t get_u16(const char *p)
{
	const unsigned char *b = (const unsigned char *)p;

	return (uint16_t)(b[0] | b[1] << 8);
}

size_t comtrade_row_size(const struct comtrade_cfg *c)
{
	size_t analog = c->data == COMTRADE_BINARY ? 2 : 4;

	if (c->data == COMTRADE_ASCII)
		return 0;
	return 8 + analog * c->analog_count + 2 * ((c->digital_count + 15) / 16);
}

static double stored_value(const struct comtrade_cfg *c, const char *p)
{
	/* NAN is a float: it must not make one of the integer. */
	const double missing = NAN;
	uint32_t bits;
	int32_t i;
	float f;

	switch (c->data) {
	case COMTRADE_BINARY:
		i = (int16_t)get_u16(p);
		return i == MISSING_16 ? missing : i;
	case COMTRADE_BINARY32:
		i = (int32_t)get_u32(p);
		return i == MISSING_32 ? missing : i;
	default:
		bits = get_u32(p);
		memcpy(&f, &bits, sizeof(f));
		return f;
	}
}

/* Without an offset the sign of a zero is kept. */
static double to_value(const struct comtrade_analog *a, double stored)
{
	return a->b == 0 ? a->a * stored : a->a * stored + a->b;
}

static void decode_binary(const struct comtrade_cfg *c, const char *at,
			  struct comtrade_row *row, union signal_data *values)
{
	size_t size = c->data == COMTRADE_BINARY ? 2 : 4;
	uint32_t stamp = get_u32(at + 4);

	*row = (struct comtrade_row){
		.has_number = true,
		.number = get_u32(at),
		.wraps = true,
		.has_stamp = stamp != STAMP_MISSING,
		.stamp = stamp,
	};
	at += 8;
	for (unsigned i = 0; i < c->analog_count; i++, at += size)
		values[i].f = to_value(&c->analog[i], stored_value(c, at));
	values += c->analog_count;
	for (unsigned i = 0; i < c->digital_count; i++)
		values[i].i = get_u16(at + i / 16 * 2) >> i % 16 & 1;
}

/* Nines that fill the field, as recorders mark what they have not. */
static bool is_missing(struct piece p)
{
	size_t len;

	if (p.at < p.end && *p.at == '+')
		p.at++;
	len = piece_len(p);
	return len == 0 || ((len == 5 || len == 6) &&
			    !memcmp(p.at, "999999", len));
}

static int parse_stamp(struct piece p, struct comtrade_row *row)
{
	double v;

	if (piece_len(p) == 0)
		return 0;
	row->has_stamp = true;
	if (*p.at == '+')
		p.at++;
	if (num_parse_i64(p.at, p.end, &row->stamp) == p.end)
		return 0;
	/* Seconds since anything, in nanoseconds, are within this. */
	if (!piece_to_double(p, &v) || !(fabs(v) < 9e18))
		return -EBADMSG;
	row->stamp = (int64_t)floor(v);
	row->fraction = v - floor(v);
	return 0;
}

struct row_text {
	struct piece rest;
	bool more;              /* a comma came: there is one more field */
};

/* The next field of a row; empty behind its end. */
static struct piece next_field(struct row_text *t)
{
	const char *comma = memchr(t->rest.at, ',', piece_len(t->rest));
	struct piece p = { t->rest.at, comma ? comma : t->rest.end };

	t->more = comma != NULL;
	t->rest.at = comma ? comma + 1 : t->rest.end;
	return piece_trim(p);
}

static int decode_head(struct row_text *line, struct comtrade_row *row,
		       struct comtrade_error *err)
{
	struct piece p = next_field(line);

	*row = (struct comtrade_row){ .has_number = piece_len(p) > 0 };
	if (row->has_number && !piece_to_u64(p, &row->number))
		return comtrade_fail_field(err, 0, 1, "n", p,
					   "is not the number of a sample");
	p = next_field(line);
	if (parse_stamp(p, row))
		return comtrade_fail_field(err, 0, 2, "timestamp", p,
					   "is not a time stamp");
	return 0;
}

static int decode_line(const struct comtrade_cfg *c, struct piece line,
		       struct comtrade_row *row, union signal_data *values,
		       struct comtrade_error *err)
{
	unsigned count = comtrade_cfg_values(c);
	struct row_text t = { line, true };
	int ret = decode_head(&t, row, err);
	struct piece p;
	double v;

	for (unsigned i = 0; !ret && i < count; i++) {
		const char *name = i < c->analog_count ? c->analog[i].name :
					c->digital[i - c->analog_count].name;

		if (!t.more)
			return comtrade_fail(err, 0,
				"the row ends before field %u (%.40s) of %u",
				i + 3, name, count + 2);
		p = next_field(&t);
		if (i >= c->analog_count) {
			values[i].i = 0;
			if (piece_len(p) == 0)
				continue;
			if (!piece_to_double(p, &v) || (v != 0 && v != 1))
				return comtrade_fail_field(err, 0, i + 3,
						name, p, "is neither 0 nor 1");
			values[i].i = v != 0;
			continue;
		}
		values[i].f = NAN;
		if (is_missing(p))
			continue;
		if (!piece_to_double(p, &v))
			return comtrade_fail_field(err, 0, i + 3, name, p,
						   "is not a number");
		values[i].f = to_value(&c->analog[i], v);
	}
	if (!ret && piece_len(piece_trim(t.rest)))
		return comtrade_fail(err, 0, "the row has more than %u fields",
				     count + 2);
	return ret;
}

/* LF, or CR without LF; NULL when the end has not come. */
static const char *line_end(const char *at, const char *end)
{
	const char *lf = memchr(at, '\n', (size_t)(end - at));
	const char *cr = memchr(at, '\r', (size_t)((lf ? lf : end) - at));

	/* After a CR at the end of the buffer an LF may still come. */
	return cr && cr + 1 != (lf ? lf : end) ? cr : lf;
}

static int decode_ascii(const struct comtrade_cfg *c, const char *buf,
			size_t len, size_t *used, struct comtrade_row *row,
			union signal_data *values, struct comtrade_error *err)
{
	const char *at = buf, *end = buf + len;
	size_t most = (size_t)FIELD_BYTES_MAX * (comtrade_cfg_values(c) + 2);
	struct piece line;

	*used = 0;
	for (;;) {
		if (at < end && *at == 0x1a) {
			*used = (size_t)(at - buf);
			return -ENODATA;
		}
		line = (struct piece){ at, line_end(at, end) };
		if (!line.end && (size_t)(end - at) <= most)
			return 0;
		if (!line.end) {
			*used = len;
			return comtrade_fail(err, 0,
					     "no row is longer than %zu bytes", most);
		}
		at = line.end + 1;
		*used = (size_t)(at - buf);
		line = piece_trim(line);
		if (piece_len(line) >= 3 && !memcmp(line.at, "\xef\xbb\xbf", 3))
			line.at += 3; /* a byte-order mark */
		if (piece_len(line) == 0)
			continue; /* a blank line */
		if (piece_len(line) > 1 && !memcmp(line.at, "--", 2) &&
		    piece_len(line) > 2 && strchr("- fF", line.at[2]))
			return -ENODATA; /* one more part of a single file */
		return decode_line(c, line, row, values, err) ? -EBADMSG : 1;
	}
}

int comtrade_row_decode(const struct comtrade_cfg *c, const char *buf,
			size_t len, size_t *used, struct comtrade_row *row,
			union signal_data *values, struct comtrade_error *err)
{
	size_t size = comtrade_row_size(c);

	if (c->data == COMTRADE_ASCII)
		return decode_ascii(c, buf, len, used, row, values, err);
	*used = 0;
	if (len < size)
		return 0;
	decode_binary(c, buf, row, values);
	*used = size;
	return 1;
}
