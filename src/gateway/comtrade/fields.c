/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines, fields and letters; see text.h. */
#include "gateway/comtrade/fields.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/comtrade/comtrade.h"
#include "util/num.h"

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\0' || c == 0x1a;
}

struct piece piece_trim(struct piece p)
{
	while (p.at < p.end && is_blank(*p.at))
		p.at++;
	while (p.at < p.end && is_blank(p.end[-1]))
		p.end--;
	return p;
}

bool piece_next_line(const char **at, const char *end, struct piece *line)
{
	const char *p = *at;

	if (p >= end)
		return false;
	while (p < end && *p != '\n' && *p != '\r')
		p++;
	*line = (struct piece){ *at, p };
	/* Some write CR CR LF. */
	while (p < end && *p == '\r')
		p++;
	if (p < end && *p == '\n')
		p++;
	*at = p;
	return true;
}

unsigned piece_split(struct piece line, struct piece *fields, unsigned max)
{
	unsigned count = 0;

	for (;;) {
		const char *comma = memchr(line.at, ',', piece_len(line));
		struct piece p = { line.at, comma ? comma : line.end };

		if (count < max)
			fields[count] = piece_trim(p);
		count++;
		if (!comma)
			return count;
		line.at = comma + 1;
	}
}

bool piece_to_double(struct piece p, double *v)
{
	return piece_len(p) > 0 && num_parse_double(p.at, p.end, v) == p.end;
}

bool piece_to_u64(struct piece p, uint64_t *v)
{
	return piece_len(p) > 0 && num_parse_u64(p.at, p.end, v) == p.end;
}

char *piece_dup(struct piece p)
{
	size_t len = piece_len(p);
	char *text = malloc(len + 1);

	if (!text)
		return NULL;
	for (size_t i = 0; i < len; i++)
		text[i] = (unsigned char)p.at[i] < 0x20 ? ' ' : p.at[i];
	text[len] = '\0';
	return text;
}

bool utf8_is_valid(const char *text, size_t len)
{
	const unsigned char *p = (const unsigned char *)text, *end = p + len;

	while (p < end) {
		unsigned more = *p < 0x80 ? 0 :
				*p >= 0xc2 && *p < 0xe0 ? 1 :
				*p >= 0xe0 && *p < 0xf0 ? 2 :
				*p >= 0xf0 && *p < 0xf5 ? 3 : 4;

		if (more == 4 || (size_t)(end - p) <= more)
			return false;
		/* Neither overlong nor a half of a pair, nor too large. */
		if ((*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] > 0x9f) ||
		    (*p == 0xf0 && p[1] < 0x90) || (*p == 0xf4 && p[1] > 0x8f))
			return false;
		for (p++; more; more--, p++)
			if ((*p & 0xc0) != 0x80)
				return false;
	}
	return true;
}

char *latin1_to_utf8(const char *text, size_t size, size_t *len)
{
	char *to = malloc(2 * size + 1), *at = to;

	if (!to)
		return NULL;
	for (size_t i = 0; i < size; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c < 0x80) {
			*at++ = (char)c;
		} else {
			*at++ = (char)(0xc0 | c >> 6);
			*at++ = (char)(0x80 | (c & 0x3f));
		}
	}
	*len = (size_t)(at - to);
	return to;
}

void utf8_to_latin1(char *text)
{
	const unsigned char *p = (const unsigned char *)text;
	char *to = text;

	while (*p) {
		if (*p < 0x80) {
			*to++ = (char)*p++;
			continue;
		}
		*to++ = (*p & 0xfe) == 0xc2 && p[1] ?
				(char)((*p & 3) << 6 | (p[1] & 0x3f)) : '?';
		for (p++; (*p & 0xc0) == 0x80; p++)
			;
	}
	*to = '\0';
}

int comtrade_fail(struct comtrade_error *err, unsigned line, const char *fmt, ...)
{
	va_list args;

	err->line = line;
	va_start(args, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, args);
	va_end(args);
	return -EBADMSG;
}

int comtrade_fail_field(struct comtrade_error *err, unsigned line,
			unsigned field, const char *name, struct piece p,
			const char *problem)
{
	char shown[24];
	size_t n = 0;

	for (; p.at < p.end && n < sizeof(shown) - 1; p.at++)
		shown[n++] = *p.at >= ' ' && *p.at < 0x7f ? *p.at : '?';
	shown[n] = '\0';
	return comtrade_fail(err, line, "field %u (%s): '%s'%s %s", field, name,
			     shown, p.at < p.end ? "..." : "", problem);
}
