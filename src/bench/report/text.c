/* SPDX-License-Identifier: BSD-2-Clause */
/* Text from outside; see text.h. */
#include "bench/report/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"

/* Bytes of the valid character at `s`; 0: there is none. */
static size_t utf8_length(const unsigned char *s, uint32_t *code)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n = s[0] < 0x80 ? 1 : s[0] >= 0xf8 ? 0 : s[0] >= 0xf0 ? 4 :
		   s[0] >= 0xe0 ? 3 : s[0] >= 0xc0 ? 2 : 0;

	if (!n)
		return 0;
	*code = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*code = *code << 6 | (s[i] & 0x3f);
	}
	if (*code < least[n] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000))
		return 0;
	return n;
}

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
