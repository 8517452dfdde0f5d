/* SPDX-License-Identifier: BSD-2-Clause */
/* Escaping of text from outside; see text.h. */
#include "bench/report/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS "\xe2\x80\xa6"

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

static void quote(FILE *out, const char *s, unsigned width_max, bool formats)
{
	unsigned width = 0;
	char c[5];

	putc('\'', out);
	while (s && *s) {
		s += next_character(s, c);
		if (width_max && ++width == width_max && *s) {
			fputs(ELLIPSIS, out);
			break;
		}
		/* In single quotes gnuplot knows no escapes but the doubled quote. */
		if (c[0] == '\'' || (formats && c[0] == '%'))
			putc(c[0], out);
		fputs(c, out);
	}
	putc('\'', out);
}

void report_text_gnuplot(FILE *out, const char *s, unsigned width_max)
{
	quote(out, s, width_max, false);
}

void report_text_tic(FILE *out, const char *s, unsigned width_max)
{
	quote(out, s, width_max, true);
}

static int decimals(double value)
{
	double a = fabs(value);

	return a >= 99.95 ? 0 : a >= 9.995 ? 1 : a >= 0.9995 ? 2 : a >= 0.0995 ? 3 :
	       a >= 0.00995 ? 4 : 5;
}

const char *report_text_number(char *buf, double value)
{
	if (!isfinite(value))
		strcpy(buf, "-");
	else if (value == 0)
		strcpy(buf, "0");
	else if (value == rint(value) && fabs(value) < 1e9)
		snprintf(buf, 32, "%.0f", value);
	else if (fabs(value) >= 1e6 || fabs(value) < 1e-5)
		snprintf(buf, 32, "%.3g", value);
	else
		snprintf(buf, 32, "%.*f", decimals(value), value);
	return buf;
}

const char *report_text_time(char *buf, double ns)
{
	static const struct { double scale; const char *unit; } units[] = {
		{ 1e9, "s" }, { 1e6, "ms" }, { 1e3, "\xc2\xb5s" },
	};

	if (!isfinite(ns)) {
		strcpy(buf, "-");
		return buf;
	}
	for (size_t i = 0; i < 3; i++) {
		double value = ns / units[i].scale;

		if (fabs(value) >= 0.9995) {
			snprintf(buf, 32, "%.*f %s", decimals(value), value, units[i].unit);
			return buf;
		}
	}
	snprintf(buf, 32, "%.*f ns", ns == rint(ns) ? 0 : decimals(ns), ns);
	return buf;
}
