/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * villas.binary and villas.web: messages of VILLASnode, one sample each, back to
 * back: 16 bytes of header and 4 bytes per value, in network byte order
 * (villas.binary) or little-endian (villas.web).
 *
 *   byte 0      version 2 in bits 7..4, kind in bits 3..2 (0 data, 1 start,
 *               2 stop), bits 1..0 zero
 *   byte 1      source index
 *   bytes 2..3  number of values
 *   bytes 4..7  sequence number
 *   bytes 8..15 origin: seconds, nanoseconds
 *
 * The wire is exactly theirs, and so is what it loses: reals are single
 * precision, integers, sequence numbers and seconds 32 bits, no booleans, no
 * complex numbers. busbar.binary loses nothing.
 *
 * Early releases (2017) sent the bits of byte 0 in another order: version in bits
 * 3..0, kind in bits 5..4. No byte means something in both, so these are read,
 * too.
 */
#include "gateway/format/part/bytes.h"

#include "util/log.h"

#define HEAD_SIZE 16
#define VERSION 2
#define LENGTH_MAX 65535

enum kind {
	KIND_DATA,
	KIND_START,
	KIND_STOP,
};

struct villas_binary {
	int64_t source_index;
	bool validate_source_index;
};

static const struct config_key villas_keys[] = {
	{ "source_index", CONFIG_INT, offsetof(struct villas_binary, source_index),
	  "0", .max = 255,
	  .help = "Number of the source in each message" },
	{ "validate_source_index", CONFIG_BOOL,
	  offsetof(struct villas_binary, validate_source_index), "false",
	  .help = "Refuse messages with another source_index" },
};

/* Of the first byte; -1 when it begins no message. */
static inline int kind_of(unsigned char first)
{
	switch (first) {
	case VERSION << 4 | KIND_DATA << 2:
	case VERSION | KIND_DATA << 4: /* early releases */
		return KIND_DATA;
	case VERSION << 4 | KIND_START << 2:
	case VERSION | KIND_START << 4:
		return KIND_START;
	case VERSION << 4 | KIND_STOP << 2:
	case VERSION | KIND_STOP << 4:
		return KIND_STOP;
	default:
		return -1;
	}
}

/* Whether a header may stand here. */
static bool is_head(const char *at, bool swap)
{
	return kind_of((unsigned char)at[0]) >= 0 &&
	       bytes_get32(at + 12, swap) < 1000000000;
}

/* Bytes up to the next place that looks like a message, and like another one
 * behind it as far as can be seen. */
static size_t skip_to_head(const char *at, size_t len, bool swap)
{
	for (size_t i = 1; i + HEAD_SIZE <= len; i++) {
		size_t next;

		if (!is_head(at + i, swap))
			continue;
		next = i + HEAD_SIZE + 4 * (size_t)bytes_get16(at + i + 2, swap);
		if (next + HEAD_SIZE > len || is_head(at + next, swap))
			return i;
	}
	return len - HEAD_SIZE + 1;
}

static inline void take_values(const struct format *f, const char *at,
			       unsigned length, struct sample *s, bool swap)
{
	for (unsigned i = 0; i < length; i++) {
		uint32_t v = bytes_get32(at + 4 * (size_t)i, swap);

		if (text_type(f->signals, i) == SIGNAL_INTEGER)
			s->data[i].i = (int32_t)v;
		else
			s->data[i].f = (double)bytes_to_float(v);
	}
	s->length = length;
}

static inline int take_message(struct format *f, const char *at, size_t len,
			       size_t *size, struct sample *s, bool swap)
{
	const struct villas_binary *v = f->private_data;
	unsigned length;

	if (len < HEAD_SIZE)
		return BYTES_INCOMPLETE;
	if (unlikely(!is_head(at, swap))) {
		*size = f->message ? len : skip_to_head(at, len, swap);
		return text_fail(f, "no message of version 2 begins here (first byte 0x%02x); %zu bytes ignored",
				 (unsigned char)at[0], *size);
	}
	length = bytes_get16(at + 2, swap);
	*size = HEAD_SIZE + 4 * (size_t)length;
	if (len < *size)
		return BYTES_INCOMPLETE;
	if (kind_of((unsigned char)at[0]) != KIND_DATA)
		return BYTES_NOTHING;
	if (v->validate_source_index && (uint8_t)at[1] != v->source_index)
		return text_fail(f, "the source_index is %u, not %u",
				 (uint8_t)at[1], (unsigned)v->source_index);
	if (length > s->capacity)
		return bytes_fail_length(f, length, s);
	s->signals = f->signals->count ? f->signals : NULL;
	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
		   (length ? SAMPLE_HAS_DATA : 0);
	s->sequence = bytes_get32(at + 4, swap);
	s->origin = (struct timespec){
		.tv_sec = (time_t)bytes_get32(at + 8, swap),
		.tv_nsec = (long)bytes_get32(at + 12, swap),
	};
	take_values(f, at + HEAD_SIZE, length, s, swap);
	return BYTES_SAMPLE;
}

static int take_big(struct format *f, const char *at, size_t len, size_t *size,
		    struct sample *s)
{
	return take_message(f, at, len, size, s, !BYTES_HOST_IS_BIG);
}

static int take_little(struct format *f, const char *at, size_t len,
		       size_t *size, struct sample *s)
{
	return take_message(f, at, len, size, s, BYTES_HOST_IS_BIG);
}

static int binary_scan(struct format *f, const char *buf, size_t len,
		       size_t *used, struct sample *smps[], unsigned cnt)
{
	return bytes_scan_records(f, take_big, buf, len, used, smps, cnt);
}

static int web_scan(struct format *f, const char *buf, size_t len, size_t *used,
		    struct sample *smps[], unsigned cnt)
{
	return bytes_scan_records(f, take_little, buf, len, used, smps, cnt);
}

static inline void put_head(const struct format *f, char *at,
			    const struct sample *s, unsigned length, bool swap)
{
	const struct villas_binary *v = f->private_data;
	bool origin = f->ts_origin && s->flags & SAMPLE_HAS_ORIGIN;
	bool sequence = f->sequence && s->flags & SAMPLE_HAS_SEQUENCE;

	at[0] = (char)(VERSION << 4 | KIND_DATA << 2);
	at[1] = (char)v->source_index;
	bytes_put16(at + 2, (uint16_t)length, swap);
	bytes_put32(at + 4, sequence ? (uint32_t)s->sequence : 0, swap);
	bytes_put32(at + 8, origin ? (uint32_t)s->origin.tv_sec : 0, swap);
	bytes_put32(at + 12, origin ? sample_time_nsec(s->origin) : 0, swap);
}

/* 0, or -ENOTSUP for a type that has no place in a message. */
static inline int put_values(struct format *f, char *at, const struct sample *s,
			     unsigned length, bool swap)
{
	const struct signal_list *signals = bytes_signals(f, s);

	for (unsigned i = 0; i < length; i++) {
		uint32_t v;

		switch (text_type(signals, i)) {
		case SIGNAL_FLOAT:
			v = bytes_of_float((float)s->data[i].f);
			break;
		case SIGNAL_INTEGER:
			v = (uint32_t)s->data[i].i;
			break;
		default:
			return bytes_refuse(f, signals, i);
		}
		bytes_put32(at + 4 * (size_t)i, v, swap);
	}
	return 0;
}

static inline int put_messages(struct format *f, char *buf, size_t size,
			       size_t *used, struct sample *const smps[],
			       unsigned cnt, bool swap)
{
	size_t at = 0;
	unsigned i;
	int ret = 0;

	for (i = 0; i < cnt; i++) {
		unsigned length = bytes_length(f, smps[i]);
		size_t need = HEAD_SIZE + 4 * (size_t)length;

		if (unlikely(length > LENGTH_MAX)) {
			text_fail(f, "the sample has %u values, a message of the format '%s' holds %d (its length has 16 bits)",
				  length, f->type->name, LENGTH_MAX);
			ret = -E2BIG;
			break;
		}
		if (size - at < need)
			break;
		put_head(f, buf + at, smps[i], length, swap);
		ret = put_values(f, buf + at + HEAD_SIZE, smps[i], length, swap);
		if (ret)
			break;
		at += need;
	}
	*used = at;
	return i > 0 ? (int)i : ret;
}

static int binary_print(struct format *f, char *buf, size_t size, size_t *used,
			struct sample *const smps[], unsigned cnt)
{
	return put_messages(f, buf, size, used, smps, cnt, !BYTES_HOST_IS_BIG);
}

static int web_print(struct format *f, char *buf, size_t size, size_t *used,
		     struct sample *const smps[], unsigned cnt)
{
	return put_messages(f, buf, size, used, smps, cnt, BYTES_HOST_IS_BIG);
}

#define CARRIES                                                              \
	{                                                                    \
		.traits = FORMAT_SELF_DELIMITING | FORMAT_NEEDS_SIGNALS,     \
		.types = FORMAT_TYPE(SIGNAL_FLOAT) |                         \
			 FORMAT_TYPE(SIGNAL_INTEGER),                        \
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |           \
			 SAMPLE_HAS_DATA,                                    \
		.values_max = LENGTH_MAX, .real_bits = 32,                   \
		.integer_bits = 32, .sequence_bits = 32, .seconds_bits = 32, \
		.time_step_ns = 1,                                           \
	}

const struct format_type format_villas_binary = {
	.name = "villas.binary",
	.description = "Binary messages of VILLASnode, single precision",
	.binary = true,
	.carries = CARRIES,
	.size = sizeof(struct villas_binary),
	.keys = villas_keys,
	.key_count = ARRAY_SIZE(villas_keys),
	.print = binary_print,
	.scan = binary_scan,
};

const struct format_type format_villas_web = {
	.name = "villas.web",
	.description = "As villas.binary, little-endian, for WebSockets",
	.binary = true,
	.carries = CARRIES,
	.size = sizeof(struct villas_binary),
	.keys = villas_keys,
	.key_count = ARRAY_SIZE(villas_keys),
	.print = web_print,
	.scan = web_scan,
};
