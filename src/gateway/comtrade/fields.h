/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines and fields of COMTRADE's text files; for this folder alone. */
#ifndef GATEWAY_COMTRADE_FIELDS_H
#define GATEWAY_COMTRADE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct comtrade_error;

/* A piece of text, not terminated. */
struct piece {
	const char *at, *end;
};

static inline size_t piece_len(struct piece p)
{
	return (size_t)(p.end - p.at);
}

/* Without blanks around it; also without the end mark 0x1A. */
struct piece piece_trim(struct piece p);

/*
 * The line at *at, without its end: LF, CR LF, or CR alone. False at the end of
 * the text.
 */
bool piece_next_line(const char **at, const char *end, struct piece *line);

/* Cuts at commas, trims; returns how many there are (only `max` are stored). */
unsigned piece_split(struct piece line, struct piece *fields, unsigned max);

/* All of it; false when it is something else. */
bool piece_to_double(struct piece p, double *v);
bool piece_to_u64(struct piece p, uint64_t *v);

/* Allocated; control characters become blanks. NULL on no memory. */
char *piece_dup(struct piece p);

bool utf8_is_valid(const char *text, size_t len);
/* ISO 8859-1 to UTF-8; allocated, *len is set. NULL on no memory. */
char *latin1_to_utf8(const char *text, size_t size, size_t *len);
/* In place, what has no such letter becomes '?'. */
void utf8_to_latin1(char *text);

/* Fills the error; returns -EBADMSG. */
int comtrade_fail(struct comtrade_error *err, unsigned line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same about a field: "field 6 (a): 'x' PROBLEM". */
int comtrade_fail_field(struct comtrade_error *err, unsigned line,
			unsigned field, const char *name, struct piece p,
			const char *problem);

#endif
