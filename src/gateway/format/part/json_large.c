/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * JSON objects with numbers that jansson refuses: integers of more than 64 bits with
 * their sign, and reals beyond the largest double. Where jansson finds one, the text is
 * read again with such numbers as marked strings, from which json_large_real() and
 * json_large_u64() take the value.
 */
#include "gateway/format/part/json_common.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* In front of such a number. JSON text can hold this character only as an escape. */
#define MARK '\001'
#define MARK_ESCAPED "\\u0001"

static bool is_number_char(char c)
{
	return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' ||
	       (c | 0x20) == 'e';
}

static bool is_large(const char *at, const char *end)
{
	int64_t integer;
	double real;

	if (num_parse_double(at, end, &real) != end)
		return false; /* no number: jansson says why */
	if (memchr(at, '.', (size_t)(end - at)) || memchr(at, 'e', (size_t)(end - at)) ||
	    memchr(at, 'E', (size_t)(end - at)))
		return !isfinite(real);
	return num_parse_i64(at, end, &integer) != end;
}

/* Returns the position behind the string that begins at `at`, or the end. */
static const char *behind_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		at += *at == '\\' && at + 1 < end;
	return at < end ? at + 1 : end;
}

/* `out` has room for 4 * len bytes: the shortest such number has 5 characters. */
static size_t mark_large(const char *at, size_t len, char *out)
{
	const char *end = at + len, *next;
	char *to = out;

	for (; at < end; at = next) {
		bool large = false;

		next = at + 1;
		if (*at == '"')
			next = behind_string(at, end);
		else if (*at == '-' || (*at >= '0' && *at <= '9')) {
			while (next < end && is_number_char(*next))
				next++;
			large = is_large(at, next);
		}
		if (large) {
			memcpy(to, "\"" MARK_ESCAPED, 1 + strlen(MARK_ESCAPED));
			to += 1 + strlen(MARK_ESCAPED);
		}
		memcpy(to, at, (size_t)(next - at));
		to += next - at;
		if (large)
			*to++ = '"';
	}
	return (size_t)(to - out);
}

json_t *json_large_load(const char *at, size_t len, json_error_t *err)
{
	json_t *object = json_loadb(at, len, 0, err);
	char *text;

	if (likely(object) || json_error_code(err) != json_error_numeric_overflow)
		return object;
	text = malloc(4 * len);
	if (text)
		object = json_loadb(text, mark_large(at, len, text), 0, err);
	free(text);
	return object;
}

/* The digits of a marked number; NULL when it is none. */
static const char *large_text(const json_t *v)
{
	const char *text = json_string_value(v);

	return text && *text == MARK ? text + 1 : NULL;
}

bool json_large_real(const json_t *v, double *out)
{
	const char *text = large_text(v);

	return text && num_parse_double(text, text + strlen(text), out);
}

bool json_large_u64(const json_t *v, uint64_t *out)
{
	const char *text = large_text(v);

	return text && num_parse_u64(text, text + strlen(text), out) ==
			       text + strlen(text);
}
