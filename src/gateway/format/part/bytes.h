/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the binary formats share: numbers in either byte order, and the loop
 * that takes records out of a stream or a message.
 */
#ifndef GATEWAY_FORMAT_PART_BYTES_H
#define GATEWAY_FORMAT_PART_BYTES_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "gateway/plugin/format.h"
#include "gateway/format/part/text.h"
#include "gateway/sample/time.h"

#define BYTES_HOST_IS_BIG (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

/* `swap`: the order of the bytes is not this machine's. */
#define BYTES_GETTER(bits)                                              \
	static inline uint##bits##_t bytes_get##bits(const char *at,    \
						     bool swap)         \
	{                                                               \
		uint##bits##_t v;                                       \
									\
		memcpy(&v, at, sizeof(v));                              \
		return swap ? __builtin_bswap##bits(v) : v;             \
	}
#define BYTES_PUTTER(bits)                                              \
	static inline void bytes_put##bits(char *at, uint##bits##_t v,  \
					   bool swap)                   \
	{                                                               \
		if (swap)                                               \
			v = __builtin_bswap##bits(v);                   \
		memcpy(at, &v, sizeof(v));                              \
	}

BYTES_GETTER(16)
BYTES_GETTER(32)
BYTES_GETTER(64)
BYTES_PUTTER(16)
BYTES_PUTTER(32)
BYTES_PUTTER(64)

static inline uint32_t bytes_of_float(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline float bytes_to_float(uint32_t bits)
{
	float v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

static inline uint64_t bytes_of_double(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return bits;
}

static inline double bytes_to_double(uint64_t bits)
{
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

/* What a format found at a place of the input. */
enum bytes_found {
	BYTES_INCOMPLETE, /* its end has not come yet */
	BYTES_SAMPLE,
	BYTES_NOTHING,    /* a whole record that is no sample */
};

/*
 * Takes one record from at[0..len), len > 0. Sets *size to the bytes it takes;
 * -EBADMSG (format_error() is set) with *size > 0, the bytes to pass over.
 */
typedef int (*bytes_record_fn)(struct format *f, const char *at, size_t len,
			       size_t *size, struct sample *s);

/* The message ends within a sample; returns -EBADMSG. */
int bytes_fail_short(struct format *f, size_t len);

/* A sample has more values than there is room for; returns -EBADMSG. */
int bytes_fail_length(struct format *f, uint64_t length, const struct sample *s);

/* format_type.scan by records; inline so that `take` is, too. */
static inline __attribute__((always_inline)) int
bytes_scan_records(struct format *f, bytes_record_fn take, const char *buf,
		   size_t len, size_t *used, struct sample *smps[], unsigned cnt)
{
	size_t pos = 0, size;
	unsigned i = 0;
	int ret = BYTES_NOTHING;

	while (i < cnt && pos < len) {
		size = 0;
		ret = take(f, buf + pos, len - pos, &size, smps[i]);
		if (ret == BYTES_INCOMPLETE && f->message) {
			ret = bytes_fail_short(f, len - pos);
			size = len - pos;
		}
		if (ret <= 0)
			break;
		pos += size;
		i += ret == BYTES_SAMPLE;
	}
	*used = pos;
	if (ret >= 0 || i > 0)
		return (int)i; /* the next call meets a bad record again */
	*used = pos + size;
	return ret;
}

/* The signals of a sample that is to be printed; may be NULL. */
static inline const struct signal_list *bytes_signals(const struct format *f,
						      const struct sample *s)
{
	return s->signals ? s->signals : f->signals;
}

/* Values that are to be printed of a sample. */
static inline unsigned bytes_length(const struct format *f,
				    const struct sample *s)
{
	return f->data ? s->length : 0;
}

/* print() meets a value of a type that the format cannot hold: sets the error,
 * returns -ENOTSUP. */
int bytes_refuse(struct format *f, const struct signal_list *signals, unsigned i);

#endif
