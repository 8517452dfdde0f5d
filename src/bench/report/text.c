/* SPDX-License-Identifier: BSD-2-Clause */
/* Text from outside, and the colours of pages; see text.h. */
#include "bench/report/text.h"

#include <stdarg.h>
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

void report_text_html(FILE *out, const char *s)
{
	char c[5];

	while (s && *s) {
		s += next_character(s, c);
		switch (c[0]) {
		case '&': fputs("&amp;", out); break;
		case '<': fputs("&lt;", out); break;
		case '>': fputs("&gt;", out); break;
		case '"': fputs("&quot;", out); break;
		case '\'': fputs("&#39;", out); break;
		default: fputs(c, out);
		}
	}
}

void report_html(FILE *out, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	for (; *fmt; fmt++) {
		if (*fmt != '%') {
			putc(*fmt, out);
		} else if (*++fmt == 's') {
			report_text_html(out, va_arg(args, const char *));
		} else if (*fmt == 'd') {
			fprintf(out, "%d", va_arg(args, int));
		} else if (*fmt == 'z') {
			fprintf(out, "%zu", va_arg(args, size_t));
			fmt++;
		} else {
			putc('%', out);
		}
	}
	va_end(args);
}

/*
 * The hues of Okabe and Ito, which people with any kind of colour vision tell apart; darker
 * on a light page, so that thin lines keep a contrast of at least 3 to 1.
 */
#define LIGHT "--page:#ffffff;--box:#ffffff;--text:#1a1a1a;--muted:#5a5a5a;--grid:#d8d8d8;" \
	"--reference:#7a3e9d;--warn:#b3261e;--c1:#0067a8;--c2:#c04f00;--c3:#00835f;" \
	"--c4:#b0508a;--c5:#9a6700;--c6:#2f86b7;"
#define DARK "--page:#16181c;--box:#16181c;--text:#e8e8e8;--muted:#a8a8a8;--grid:#3c4048;" \
	"--reference:#c9a2f0;--warn:#ff8a80;--c1:#6cb8f0;--c2:#ff9d5c;--c3:#2fd0a0;" \
	"--c4:#e79cc6;--c5:#e6c14a;--c6:#9fdcff;"

void report_text_colours(FILE *out, const char *selector)
{
	fprintf(out, "%s{" LIGHT "}@media(prefers-color-scheme:dark){%s{" DARK "}}", selector,
		selector);
}
