/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the line formats share: cutting a buffer into lines, one value to text
 * and back, times and offsets in decimal seconds without rounding.
 */
#ifndef GATEWAY_FORMAT_PART_TEXT_H
#define GATEWAY_FORMAT_PART_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "gateway/plugin/format.h"
#include "util/num.h"

/* A piece of the buffer, not terminated. */
struct text {
	const char *at, *end;
};

/* First member of a line format's private data. */
struct text_state {
	bool first_line_done; /* skip_first_line has been obeyed */
};

/*
 * Where the line at `at` ends: its delimiter or, if that is a newline, a carriage return
 * alone. NULL when the end has not come.
 */
const char *text_line_end(const struct format *f, const char *at, const char *end);

/*
 * The next line that holds a sample: from buf + *pos on, without its delimiter,
 * a carriage return and a byte-order mark; comments and blank lines are passed over. False when
 * only an incomplete line is left. *pos moves behind what was taken.
 */
bool text_next_line(struct format *f, const char *buf, size_t len, size_t *pos,
		    struct text *line);

/* Sets the format's error; returns -EBADMSG. */
int text_fail(struct format *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * The same about a piece of the input: "WHAT "piece" PROBLEM". Only the
 * beginning of a long piece is shown, and nothing unprintable.
 */
int text_fail_at(struct format *f, const char *what, struct text piece,
		 const char *problem);

/* Bytes that one real number takes at most. */
size_t text_real_max(const struct format *f);

/* One sample into [at, end); behind its last byte, or NULL when it does not fit.
 * `real_max` is text_real_max(). */
typedef char *(*text_line_fn)(const struct format *f, char *at, const char *end,
			      size_t real_max, const struct sample *s);

/* format_type.print of a line format. */
int text_print_lines(const struct format *f, text_line_fn print_line, char *buf,
		     size_t size, size_t *used, struct sample *const smps[],
		     unsigned cnt);

/* Fills one sample from its line; 0 or -EBADMSG after text_fail(). */
typedef int (*text_scan_fn)(struct format *f, struct text line, struct sample *s);

/* format_type.scan of a line format whose private data begin with text_state. */
int text_scan_lines(struct format *f, text_scan_fn scan_line, const char *buf,
		    size_t len, size_t *used, struct sample *smps[], unsigned cnt);

/* format_type.reset of such a format. */
void text_reset(struct format *f);

/* Makes a sample long enough for value `i`, zeros before it; -EBADMSG (with the
 * error) when it has no room. */
int text_reach_value(struct format *f, struct sample *s, unsigned i);

/* Bytes of a value and the separators around it. */
static inline size_t text_value_max(size_t real_max, enum signal_type type)
{
	return (type == SIGNAL_COMPLEX ? 2 * real_max + 2 : real_max) + 2;
}

/* Type of value `i` of a sample; floats where the list ends. */
static inline enum signal_type text_type(const struct signal_list *l, unsigned i)
{
	return l && i < l->count ? l->signals[i].type : SIGNAL_FLOAT;
}

/*
 * Index of the signal that is called `name`, or of what stands for it
 * ("signal7", "signal_7"; below 65536); -1 when there is none. `guess` is where
 * to look first.
 */
long text_find_signal(const struct signal_list *l, struct text name,
		      unsigned guess);

/* Is the field this name, apart from upper and lower case? `quoted`: two quotes in it are one. */
bool text_same_name(struct text field, bool quoted, const char *name);

/* After a sample: says once when all of its values were of other names. */
void text_tell_foreign(struct format *f, const struct sample *s);

char *text_print_value(const struct format *f, char *at, enum signal_type type,
		       const union signal_data *value);

/* Reads one whole piece; false when it is no value of that type. */
bool text_scan_value(struct text piece, enum signal_type type,
		     union signal_data *value);

/* What to say about a piece that is none: "is not a real number". */
const char *text_value_problem(enum signal_type type);

/* "1700000000.000000005", "-0.500000000"; at most 32 bytes. */
char *text_print_time(char *at, struct timespec t);
/* The difference in seconds with nine digits, sign always; at most 32 bytes. */
char *text_print_offset(char *at, struct timespec from, struct timespec to);

/*
 * Decimal seconds, also negative ones (before 1970); returns the position behind, NULL
 * when there are none or they are out of range. `loose` and `shift` as in
 * num_parse_seconds().
 */
const char *text_scan_time(struct text piece, bool loose, int shift, struct timespec *t);
/* A signed number of seconds (an exponent is allowed) added to `from`. */
const char *text_scan_offset(struct text piece, struct timespec from,
			     struct timespec *to);

/* snprintf()-like appending for headers: counts what would not fit. */
void text_append(char *buf, size_t size, size_t *used, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Appends name[unit] of each signal, each after `separator`. */
void text_append_signals(char *buf, size_t size, size_t *used, char separator,
			 const struct signal_list *signals);

#endif
