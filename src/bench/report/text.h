/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Text that comes from outside (names in files, file names), so that it stays text in a page. Bytes
 * that are not UTF-8, control characters and characters that turn the direction of writing become
 * U+FFFD; white space becomes a blank.
 */
#ifndef BENCH_REPORT_TEXT_H
#define BENCH_REPORT_TEXT_H

/* The text in that form; malloc()ed. NULL without memory. */
char *report_text_clean(const char *s);

#endif
