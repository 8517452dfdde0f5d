/* SPDX-License-Identifier: BSD-2-Clause */
/* Numbers in the byte order of a capture file, and the error that ends its reading. */
#ifndef WIRE_CAPTURE_NUMBERS_H
#define WIRE_CAPTURE_NUMBERS_H

#include "wire/bytes.h"
#include "wire/capture/reader.h"

static inline uint16_t capture_16(const struct capture_reader *r, const uint8_t *from)
{
	return r->big ? get_16(from) : (uint16_t)(from[1] << 8 | from[0]);
}

static inline uint32_t capture_32(const struct capture_reader *r, const uint8_t *from)
{
	uint32_t v = get_32(from);

	return r->big ? v : __builtin_bswap32(v);
}

static inline uint64_t capture_64(const struct capture_reader *r, const uint8_t *from)
{
	uint64_t v = get_64(from);

	return r->big ? v : __builtin_bswap64(v);
}

static inline enum capture_status capture_more(struct capture_reader *r, size_t wanted)
{
	r->wanted = wanted;
	return CAPTURE_MORE;
}

/* `at`: bytes behind the start of the record. */
static inline enum capture_status capture_corrupt(struct capture_reader *r, uint64_t at,
						  const char *field, uint64_t value, const char *why)
{
	r->error = (struct capture_error){
		.offset = r->offset + at, .field = field, .value = value, .why = why };
	return CAPTURE_CORRUPT;
}

#endif
