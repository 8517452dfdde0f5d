/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes text that comes from outside (names in files, file names) into HTML and into
 * commands of gnuplot, so that it stays text there. Bytes that are not UTF-8, control
 * characters and characters that turn the direction of writing become U+FFFD; white space
 * becomes a blank.
 */
#ifndef BENCH_REPORT_TEXT_H
#define BENCH_REPORT_TEXT_H

#include <stdint.h>
#include <stdio.h>

/* As the text of an element or the value of an attribute in double quotes. NULL: nothing. */
void report_text_html(FILE *out, const char *s);

/* printf() of HTML in which each %s is escaped. Only %s, %d, %zu and %%. */
void report_html(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A string in single quotes, in which gnuplot replaces nothing. At most `width_max`
 * characters, the last one then an ellipsis; 0: any number. */
void report_text_gnuplot(FILE *out, const char *s, unsigned width_max);

/* The same for a label of a tic, in which gnuplot replaces formats (%). */
void report_text_tic(FILE *out, const char *s, unsigned width_max);

/* "1.27 µs", "40 ns", "12.5 ms": three digits that count. `buf` of at least 32 bytes, which
 * is returned. NAN and values below the smallest: "-". */
const char *report_text_time(char *buf, double ns);

/* Three digits that count, and no exponent below a million: "0.0125", "1270". */
const char *report_text_number(char *buf, double value);

#endif
