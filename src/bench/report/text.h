/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text that comes from outside (names in files, file names), so that it stays text in a page. Bytes
 * that are not UTF-8, control characters and characters that turn the direction of writing become
 * U+FFFD; white space becomes a blank.
 */
#ifndef BENCH_REPORT_TEXT_H
#define BENCH_REPORT_TEXT_H

#include <stdio.h>

/* The text in that form; malloc()ed. NULL without memory. */
char *report_text_clean(const char *s);

/* As the text of an element of HTML, or the value of an attribute in double quotes. NULL: nothing. */
void report_text_html(FILE *out, const char *s);

/* printf() of HTML in which each %s is escaped. Only %s, %d, %zu and %%. */
void report_html(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The custom properties of colours for light and dark, as CSS. `selector`: where they hold. */
void report_text_colours(FILE *out, const char *selector);

#endif
