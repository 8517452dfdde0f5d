/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Objects out of JSON text; see json_common.h. Each object at the top or within
 * a top-level array is cut out by its braces and given to jansson: a file of any
 * length, one object per line or one array over all of it, is read in pieces.
 */
#include "gateway/format/part/json_common.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "gateway/sample/time.h"

/* Characters between objects: blanks, and the parts of arrays. */
static bool is_between(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == ',' ||
	       c == '[' || c == ']';
}

/* Skips the text between objects, byte-order marks included. */
static const char *skip_between(const char *at, const char *end)
{
	for (;;) {
		while (at < end && is_between(*at))
			at++;
		if (end - at < 3 || memcmp(at, "\xef\xbb\xbf", 3))
			return at;
		at += 3;
	}
}

/* Behind the quote that ends a string; NULL when it does not end here. */
static const char *string_end(const char *p, const char *end)
{
	while (p < end) {
		if (*p == '"')
			return p + 1;
		p += *p == '\\' ? 2 : 1;
	}
	return NULL;
}

enum object_end {
	OBJECT_WHOLE,
	OBJECT_OPEN, /* its end has not come yet */
	OBJECT_LOST, /* another one begins before it ends */
};

/* Where a line begins with an object, behind `at`; NULL when none does. */
static const char *line_of_object(const char *at, const char *end)
{
	const char *p = at + 1;

	for (; p < end && (p = memchr(p, '\n', (size_t)(end - p))); p++)
		if (p + 1 < end && p[1] == '{')
			return p + 1;
	return NULL;
}

/*
 * The object at `at`, which is '{'. Nested objects never begin a line without
 * being indented, nor do strings hold an end of line: where such a line comes
 * the rest of this object is lost.
 */
static enum object_end object_end(const char *at, const char *end,
				  const char **behind)
{
	unsigned depth = 0;
	const char *p = at;

	while (p < end) {
		switch (*p++) {
		case '"':
			p = string_end(p, end);
			if (!p)
				goto open;
			break;
		case '{':
			depth++;
			break;
		case '}':
			if (--depth == 0) {
				*behind = p;
				return OBJECT_WHOLE;
			}
			break;
		case '\n':
			if (p < end && *p == '{') {
				*behind = p;
				return OBJECT_LOST;
			}
			break;
		}
	}
open:
	/* A quote too many turns text and strings around: look at lines, too. */
	p = line_of_object(at, end);
	if (p)
		*behind = p;
	return p ? OBJECT_LOST : OBJECT_OPEN;
}

static int take_object(struct format *f, json_quick_fn quick, json_take_fn take,
		       const char *at, size_t len, struct sample *s)
{
	json_error_t err;
	json_t *object;
	int ret;

	if (quick && quick(f, (struct text){ at, at + len }, s))
		return 0;
	object = json_large_load(at, len, &err);
	if (!object)
		return text_fail(f, "not JSON: %s", err.text);
	s->signals = f->signals->count ? f->signals : NULL;
	s->flags = 0;
	s->length = 0;
	ret = take(f, object, s);
	if (!ret && s->length)
		s->flags |= SAMPLE_HAS_DATA;
	text_tell_foreign(f, s);
	json_decref(object);
	return ret;
}

/* Passes over what is no object: up to the next one, or the end of the line. */
static const char *skip_garbage(const char *at, const char *end)
{
	while (at < end && *at != '{' && *at != '\n')
		at++;
	return at;
}

int json_scan_samples(struct format *f, json_quick_fn quick, json_take_fn take,
		      const char *buf, size_t len, size_t *used,
		      struct sample *smps[], unsigned cnt)
{
	const char *at = buf, *end = buf + len, *behind;
	unsigned i = 0;
	int ret = 0;

	while (i < cnt) {
		const char *begin;

		at = begin = skip_between(at, end);
		if (at == end || (!f->message && end - at < 3 &&
				  !memcmp(at, "\xef\xbb", (size_t)(end - at))))
			break;
		if (*at != '{') {
			behind = skip_garbage(at, end);
			ret = text_fail_at(f, "text", (struct text){ at, behind },
					   "is no JSON object");
			goto bad;
		}
		switch (object_end(at, end, &behind)) {
		case OBJECT_OPEN:
			if (!f->message)
				goto out;
			behind = end;
			ret = text_fail(f, "the message ends within an object");
			break;
		case OBJECT_LOST:
			ret = text_fail(f, "an object does not end before another one begins");
			break;
		case OBJECT_WHOLE:
			ret = take_object(f, quick, take, at,
					  (size_t)(behind - at), smps[i]);
			if (unlikely(ret) && line_of_object(at, behind))
				behind = line_of_object(at, behind);
			break;
		}
		if (ret)
			goto bad;
		at = behind;
		i++;
		continue;
bad:
		if (i > 0) { /* the next call meets it again */
			at = begin;
			break;
		}
		*used = (size_t)(behind - buf);
		return ret;
	}
out:
	*used = (size_t)(at - buf);
	return (int)i;
}

/* Values. */

static bool take_real(const json_t *v, double *out)
{
	const char *text;

	if (json_is_number(v)) {
		*out = json_number_value(v);
		return true;
	}
	if (json_is_null(v)) {
		*out = NAN;
		return true;
	}
	if (unlikely(json_large_real(v, out)))
		return true;
	text = json_string_value(v);
	return text && !(*text >= '0' && *text <= '9') &&
	       num_parse_double(text, text + strlen(text), out) ==
		       text + strlen(text);
}

static bool take_integer(const json_t *v, int64_t *out)
{
	double real = json_real_value(v);

	if (json_is_integer(v)) {
		*out = json_integer_value(v);
		return true;
	}
	if (!json_is_real(v) || real != floor(real) || !(fabs(real) < 0x1p63))
		return false;
	*out = (int64_t)real;
	return true;
}

static bool take_boolean(const json_t *v, int64_t *out)
{
	*out = json_is_true(v) ||
	       (json_is_integer(v) && json_integer_value(v) == 1);
	return *out || json_is_false(v) ||
	       (json_is_integer(v) && json_integer_value(v) == 0);
}

static bool take_complex(const json_t *v, union signal_data *out)
{
	double re, im = 0;

	if (json_is_object(v)) {
		const json_t *imag = json_object_get(v, "imag");

		if (!take_real(json_object_get(v, "real"), &re) ||
		    (imag && !take_real(imag, &im)))
			return false;
	} else if (!take_real(v, &re)) {
		return false;
	}
	out->z.re = (float)re;
	out->z.im = (float)im;
	return true;
}

int json_take_value(struct format *f, const json_t *v, unsigned i,
		    struct sample *s)
{
	static const char *const wanted[] = {
		[SIGNAL_FLOAT] = "a number",
		[SIGNAL_INTEGER] = "an integer of 64 bits",
		[SIGNAL_BOOLEAN] = "true, false, 0 or 1",
		[SIGNAL_COMPLEX] = "an object with real and imag",
	};
	enum signal_type type = text_type(f->signals, i);
	union signal_data d;
	bool good = false;
	int ret;

	switch (type) {
	case SIGNAL_FLOAT:
		good = take_real(v, &d.f);
		break;
	case SIGNAL_INTEGER:
		good = take_integer(v, &d.i);
		break;
	case SIGNAL_BOOLEAN:
		good = take_boolean(v, &d.i);
		break;
	case SIGNAL_COMPLEX:
		good = take_complex(v, &d);
		break;
	}
	if (!good)
		return text_fail(f, "value %u is not %s", i, wanted[type]);
	ret = text_reach_value(f, s, i);
	if (!ret)
		s->data[i] = d;
	return ret;
}

int json_take_pair(struct format *f, const char *key, const json_t *v,
		   unsigned n, struct sample *s)
{
	const struct text name = { key, key + strlen(key) };
	long i = f->signals->count ? text_find_signal(f->signals, name, n) :
				     (long)n;

	/* Other programs may add keys that we do not use. */
	f->foreign |= i < 0;
	return i < 0 ? 0 : json_take_value(f, v, (unsigned)i, s);
}

int json_take_u64(struct format *f, const json_t *v, const char *what,
		  uint64_t *out)
{
	if (unlikely(json_large_u64(v, out)))
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		return text_fail(f, "%s is not a positive integer of 64 bits", what);
	*out = (uint64_t)json_integer_value(v);
	return 0;
}

int json_take_ms(struct format *f, const json_t *v, const char *what,
		 struct timespec *t)
{
	double real = json_number_value(v);
	struct timespec whole = { .tv_sec = (time_t)floor(fmax(-1e12, fmin(real / 1e3, 1e12))) };
	json_int_t ms = json_integer_value(v);

	if (json_is_integer(v)) {
		t->tv_sec = (time_t)(ms / 1000 - (ms % 1000 < 0));
		t->tv_nsec = (long)((ms % 1000 + 1000) % 1000 * 1000000);
		return 0;
	}
	if (!json_is_real(v) || !(fabs(real) < 1e15))
		return text_fail(f, "%s is no number of milliseconds", what);
	/* The nanoseconds are rounded, and may make a whole second. */
	real = (real - floor(real / 1e3) * 1e3) * 1e6;
	*t = sample_time_add_ns(whole, llround(real));
	return 0;
}

int64_t json_ms_of(struct timespec t)
{
	int64_t ms;

	if (__builtin_mul_overflow(t.tv_sec, 1000, &ms) ||
	    __builtin_add_overflow(ms, sample_time_nsec(t) / 1000000, &ms))
		return t.tv_sec < 0 ? INT64_MIN : INT64_MAX;
	return ms;
}
