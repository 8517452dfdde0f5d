/* SPDX-License-Identifier: BSD-2-Clause */
/* Pieces of a line of a topology file. See scan.h. */
#include "fabric/topology/scan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fabric/topology/topology.h"
#include "util/container_of.h"
#include "util/hex.h"
#include "util/plain_text.h"

int topology_scan_refuse(const struct topology_scan *s, const char *format, ...)
{
	size_t have;
	va_list args;
	int n;

	if (!s->why_bytes)
		return -EINVAL;
	n = snprintf(s->why, s->why_bytes, "%s:%u: ", s->file, s->line);
	have = n < 0 ? 0 : MIN((size_t)n, s->why_bytes - 1);
	va_start(args, format);
	vsnprintf(s->why + have, s->why_bytes - have, format, args);
	va_end(args);
	plain_text(s->why);
	return -EINVAL;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

void topology_scan_blanks(struct topology_scan *s)
{
	while (s->at < s->end && is_blank(*s->at))
		s->at++;
}

bool topology_scan_char(struct topology_scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

bool topology_scan_word(struct topology_scan *s, struct topology_word *word)
{
	topology_scan_blanks(s);
	word->at = s->at;
	while (s->at < s->end && !is_blank(*s->at) && *s->at != '#')
		s->at++;
	word->bytes = (size_t)(s->at - word->at);
	return word->bytes > 0;
}

bool topology_word_is(const struct topology_word *word, const char *text)
{
	return strlen(text) == word->bytes && !memcmp(text, word->at, word->bytes);
}

const char *topology_word_text(const struct topology_word *word, char *text, size_t size)
{
	size_t bytes = MIN(word->bytes, size - 1);

	for (size_t i = 0; i < bytes; i++)
		text[i] = word->at[i] ? word->at[i] : '?';
	text[bytes] = '\0';
	return plain_text(text);
}

int topology_scan_quoted(struct topology_scan *s, const char *what, char *text, size_t size)
{
	const char *start, *close;
	size_t bytes;

	topology_scan_blanks(s);
	if (!topology_scan_char(s, '"'))
		return topology_scan_refuse(s, "%s is missing: it stands in quotation marks", what);
	start = s->at;
	close = memchr(start, '"', (size_t)(s->end - start));
	if (!close)
		return topology_scan_refuse(s, "%s has no closing quotation mark", what);
	bytes = (size_t)(close - start);
	if (!bytes || bytes >= size)
		return topology_scan_refuse(s, "%s has %zu bytes, right are 1 to %zu", what, bytes, size - 1);
	memcpy(text, start, bytes);
	text[bytes] = '\0';
	if (strlen(text) != bytes)
		return topology_scan_refuse(s, "%s contains a NUL byte", what);
	s->at = close + 1;
	return 0;
}

/* Digits of a base; more than `max` is refused. */
static int scan_digits(struct topology_scan *s, const char *what, unsigned base, uint64_t max, uint64_t *value)
{
	const char *start = s->at;
	uint64_t sum = 0;

	for (; s->at < s->end; s->at++) {
		int digit = hex_digit(*s->at);

		if (digit < 0 || (unsigned)digit >= base)
			break;
		if ((unsigned)digit > max || sum > (max - (unsigned)digit) / base)
			return topology_scan_refuse(s, "%s is larger than %llu", what, (unsigned long long)max);
		sum = sum * base + (unsigned)digit;
	}
	if (s->at == start)
		return topology_scan_refuse(s, "%s is not a number", what);
	*value = sum;
	return 0;
}

static bool scan_0x(struct topology_scan *s)
{
	if (s->end - s->at < 2 || s->at[0] != '0' || (s->at[1] != 'x' && s->at[1] != 'X'))
		return false;
	s->at += 2;
	return true;
}

int topology_scan_number(struct topology_scan *s, const char *what, uint64_t max, uint64_t *value)
{
	bool hex;

	topology_scan_blanks(s);
	hex = scan_0x(s);
	return scan_digits(s, what, hex ? 16 : 10, max, value);
}

int topology_scan_guid(struct topology_scan *s, const char *what, uint64_t *guid)
{
	topology_scan_blanks(s);
	scan_0x(s);
	return scan_digits(s, what, 16, UINT64_MAX, guid);
}

int topology_scan_port(struct topology_scan *s, uint8_t *port)
{
	uint64_t value;
	int err;

	topology_scan_blanks(s);
	if (!topology_scan_char(s, '['))
		return topology_scan_refuse(s, "a port is missing: it stands in brackets, [1]");
	err = topology_scan_number(s, "the number of a port", TOPOLOGY_PORTS_MAX, &value);
	if (err)
		return err;
	topology_scan_blanks(s);
	if (!topology_scan_char(s, ']'))
		return topology_scan_refuse(s, "the number of a port has no closing bracket");
	if (!value)
		return topology_scan_refuse(s, "port 0 of a switch has no cable, ports count from 1");
	*port = (uint8_t)value;
	/* ibnetdiscover --grouping adds the number on the front of a chassis: "[ext 5]". */
	if (s->end - s->at > 5 && !memcmp(s->at, "[ext ", 5))
		while (s->at < s->end && *s->at++ != ']')
			;
	return 0;
}
