/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The basic encoding rules of ASN.1 (ITU-T X.690), as far as messages of IEC 61850 use them: tags
 * of one byte, definite lengths. Reading never goes beyond the bytes that it was given, and
 * copies nothing. Writing goes from the end of the buffer to its beginning, so that each length
 * is known when it is written.
 *
 * Pure functions, of any thread.
 */
#ifndef WIRE_GRID_BER_H
#define WIRE_GRID_BER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What is left to be read. */
struct ber {
	const uint8_t *at;
	size_t len;
};

struct ber_item {
	uint8_t tag;
	struct ber value; /* its contents; of a constructed item they can be read on */
};

/* Takes the next item. 1; 0: nothing is left; -EPROTO: what is left is no item: a tag of several
 * bytes, an indefinite length, or a length that goes beyond the end. */
int ber_next(struct ber *b, struct ber_item *item);

/* The contents of an item as a number; false: no bytes, or more than the type has. INTEGER is
 * signed; an unsigned number may have a leading zero byte. */
bool ber_unsigned(const struct ber *value, uint64_t *out);
bool ber_signed(const struct ber *value, int64_t *out);

/* The bytes written so far are at[0] to end[-1]. */
struct ber_writer {
	uint8_t *begin, *at, *end;
	bool full; /* something found no room; nothing is valid then */
};

void ber_begin(struct ber_writer *w, void *buffer, size_t size);
static inline size_t ber_written(const struct ber_writer *w)
{
	return (size_t)(w->end - w->at);
}

/* Each puts something in front of what was written before. */
void ber_bytes(struct ber_writer *w, const void *data, size_t len);
/* Tag and length around the last bytes: those since ber_written() was `before`. */
void ber_wrap(struct ber_writer *w, uint8_t tag, size_t before);
void ber_item_bytes(struct ber_writer *w, uint8_t tag, const void *data, size_t len);
/* A number in as few bytes as INTEGER allows. */
void ber_item_unsigned(struct ber_writer *w, uint8_t tag, uint64_t value);
void ber_item_signed(struct ber_writer *w, uint8_t tag, int64_t value);

#endif
