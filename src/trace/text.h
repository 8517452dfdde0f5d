/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of bounded length, appended to piece by piece. */
#ifndef TRACE_TEXT_H
#define TRACE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_MAX 3000

struct text {
	size_t length;
	bool item;   /* the list has an item already: a separator is needed */
	char at[TEXT_MAX];
};

static inline void text_clear(struct text *t)
{
	t->length = 0;
	t->item = false;
	t->at[0] = '\0';
}

/* Text that does not fit is dropped; the end of a full text shows that. */
__attribute__((format(printf, 2, 3))) void text_add(struct text *t,
						    const char *format, ...);
/* The same, as an item of a list: "a, b". */
__attribute__((format(printf, 2, 3))) void text_item(struct text *t,
						     const char *format, ...);
/* Begins an item of a list, after the separator `between` if it is not the first. */
void text_next(struct text *t, const char *between);

/* A name for each value, or for each bit. */
struct text_name {
	uint64_t value;
	const char *name;
};

/* The name, or `prefix` and the number. */
void text_value(struct text *t, const struct text_name *names, size_t count,
		const char *prefix, uint64_t value);
/* A|B|0x40, or 0. */
void text_bits(struct text *t, const struct text_name *names, size_t count,
	       uint64_t bits);

#endif
