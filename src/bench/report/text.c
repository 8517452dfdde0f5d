/* SPDX-License-Identifier: BSD-2-Clause */
/* Text from outside; see text.h. */
#include "bench/report/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "util/utf8.h"

#define REPLACEMENT "\xef\xbf\xbd"

/* Would it change what stands around it, or is it no character of a text? */
static bool is_unfit(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x200e && c <= 0x200f) ||
	       (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) ||
	       (c & 0xfffe) == 0xfffe;
}

/* Puts the next character of `s` into `out` (ends with NUL); returns the bytes taken. */
static size_t next_character(const char *s, char out[5])
{
	uint32_t code = 0;
	size_t n = utf8_length((const unsigned char *)s, &code);

	if (n == 1 && (*s == '\n' || *s == '\t' || *s == '\r')) {
		strcpy(out, " ");
		return 1;
	}
	if (!n || is_unfit(code)) {
		strcpy(out, REPLACEMENT);
		return n ? n : 1;
	}
	memcpy(out, s, n);
	out[n] = '\0';
	return n;
}

char *report_text_clean(const char *s)
{
	/* Nothing grows by more than a replacement for each byte. */
	char *clean = malloc(strlen(s) * (sizeof(REPLACEMENT) - 1) + 1), *to = clean;
	char c[5];

	if (!clean)
		return NULL;
	while (*s) {
		s += next_character(s, c);
		to = stpcpy(to, c);
	}
	*to = '\0';
	return clean;
}
