/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The usual form of the format json, read without a tree: known keys, each once,
 * numbers that are exactly JSON's. It only ever says "this is it" or "I do not
 * know": whatever is unusual, wrong included, is left to the full reader, which
 * also has the words for it. So nothing is accepted here that it would not accept
 * with the same values (formats/wire compares them).
 */
#include "gateway/format/part/json_common.h"

#include <string.h>

struct cursor {
	const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' ||
				  *c->at == '\t' || *c->at == '\r'))
		c->at++;
}

/* Takes one character that must come next. */
static bool take(struct cursor *c, char wanted)
{
	skip_blanks(c);
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static bool take_text(struct cursor *c, const char *text, size_t len)
{
	skip_blanks(c);
	if ((size_t)(c->end - c->at) < len || memcmp(c->at, text, len))
		return false;
	c->at += len;
	return true;
}

#define TAKE(c, literal) take_text(c, literal, sizeof(literal) - 1)
#define TAKE_KEY(c, name) (TAKE(c, "\"" name "\"") && take(c, ':'))

static bool skip_digits(struct cursor *c)
{
	const char *begin = c->at;

	while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
		c->at++;
	return c->at > begin;
}

/* A number in JSON's grammar; *whole says whether it has the form of an integer. */
static bool take_number(struct cursor *c, struct text *number, bool *whole)
{
	const char *first;

	skip_blanks(c);
	number->at = c->at;
	c->at += c->at < c->end && *c->at == '-';
	first = c->at;
	if (!skip_digits(c) || (*first == '0' && c->at > first + 1))
		return false;
	*whole = true;
	if (c->at < c->end && *c->at == '.') {
		c->at++;
		*whole = false;
		if (!skip_digits(c))
			return false;
	}
	if (c->at < c->end && (*c->at | 0x20) == 'e') {
		c->at++;
		c->at += c->at < c->end && (*c->at == '-' || *c->at == '+');
		*whole = false;
		if (!skip_digits(c))
			return false;
	}
	number->end = c->at;
	return true;
}

static bool take_i64(struct cursor *c, int64_t *v)
{
	struct text number;
	bool whole;

	return take_number(c, &number, &whole) && whole &&
	       num_parse_i64(number.at, number.end, v) == number.end;
}

static bool take_u64(struct cursor *c, uint64_t *v)
{
	struct text number;
	bool whole;

	return take_number(c, &number, &whole) && whole &&
	       num_parse_u64(number.at, number.end, v) == number.end;
}

static bool take_real(struct cursor *c, double *v)
{
	struct text number;
	int64_t integer;
	bool whole;

	if (!take_number(c, &number, &whole))
		return false;
	if (whole && num_parse_i64(number.at, number.end, &integer) == number.end) {
		*v = (double)integer;
		return true;
	}
	return num_parse_double(number.at, number.end, v) == number.end;
}

static bool take_value(struct cursor *c, enum signal_type type,
		       union signal_data *d)
{
	double re, im;

	switch (type) {
	case SIGNAL_FLOAT:
		return take_real(c, &d->f);
	case SIGNAL_INTEGER:
		return take_i64(c, &d->i);
	case SIGNAL_BOOLEAN:
		d->i = TAKE(c, "true");
		return d->i || TAKE(c, "false");
	case SIGNAL_COMPLEX:
		if (!take(c, '{') || !TAKE_KEY(c, "real") || !take_real(c, &re) ||
		    !take(c, ',') || !TAKE_KEY(c, "imag") || !take_real(c, &im) ||
		    !take(c, '}'))
			return false;
		d->z.re = (float)re;
		d->z.im = (float)im;
		return true;
	}
	return false;
}

static bool take_data(struct cursor *c, const struct format *f, struct sample *s)
{
	if (!take(c, '['))
		return false;
	if (take(c, ']'))
		return true;
	do {
		if (s->length == s->capacity ||
		    !take_value(c, text_type(f->signals, s->length),
				&s->data[s->length]))
			return false;
		s->length++;
	} while (take(c, ','));
	return take(c, ']');
}

static bool take_time(struct cursor *c, struct timespec *t)
{
	int64_t sec, nsec;

	if (!take(c, '[') || !take_i64(c, &sec) || !take(c, ',') ||
	    !take_i64(c, &nsec) || !take(c, ']') || nsec < 0 || nsec >= 1000000000)
		return false;
	*t = (struct timespec){ .tv_sec = (time_t)sec, .tv_nsec = (long)nsec };
	return true;
}

static bool take_times(struct cursor *c, struct sample *s)
{
	if (!take(c, '{'))
		return false;
	if (take(c, '}'))
		return true;
	do {
		if (!(s->flags & SAMPLE_HAS_ORIGIN) && TAKE_KEY(c, "origin")) {
			s->flags |= SAMPLE_HAS_ORIGIN;
			if (!take_time(c, &s->origin))
				return false;
		} else if (!(s->flags & SAMPLE_HAS_RECEIVED) &&
			   TAKE_KEY(c, "received")) {
			s->flags |= SAMPLE_HAS_RECEIVED;
			if (!take_time(c, &s->received))
				return false;
		} else {
			return false;
		}
	} while (take(c, ','));
	return take(c, '}');
}

bool json_take_quick(struct format *f, struct text object, struct sample *s)
{
	struct cursor c = { object.at, object.end };
	bool ts = false, data = false;

	s->flags = 0;
	s->length = 0;
	if (!take(&c, '{'))
		return false;
	do {
		if (!ts && TAKE_KEY(&c, "ts")) {
			ts = true;
			if (!take_times(&c, s))
				return false;
		} else if (!(s->flags & SAMPLE_HAS_SEQUENCE) &&
			   TAKE_KEY(&c, "sequence")) {
			if (!take_u64(&c, &s->sequence))
				return false;
			s->flags |= SAMPLE_HAS_SEQUENCE;
		} else if (!data && TAKE_KEY(&c, "data")) {
			data = true;
			if (!take_data(&c, f, s))
				return false;
		} else {
			return false;
		}
	} while (take(&c, ','));
	s->flags |= s->length ? SAMPLE_HAS_DATA : 0;
	s->signals = f->signals->count ? f->signals : NULL;
	return (data || s->flags) && take(&c, '}') && c.at == c.end;
}
