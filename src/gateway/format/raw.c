/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * raw and gtnet: values one behind the other, nothing else. Every value takes
 * `bits` bits, complex ones twice that. With `fake` the first three numbers are
 * sequence number, seconds and nanoseconds as integers of the same width. gtnet
 * is what RTDS GTNET cards speak: 32 bits, big-endian.
 *
 * Nothing tells where a sample ends: a message is one, in a file or stream each
 * has as many values as the node has signals.
 */
#include "gateway/format/part/bytes.h"

#define FAKE_NUMBERS 3

struct raw {
	int64_t bits;
	const char *endianess, *endianness;
	bool fake;

	unsigned width; /* bytes of a number */
	bool swap;
};

static const struct config_key raw_keys[] = {
	{ "bits", CONFIG_INT, offsetof(struct raw, bits), "32", .min = 8,
	  .max = 64, .help = "Width of each number: 8, 16, 32 or 64" },
	{ "endianess", CONFIG_STRING, offsetof(struct raw, endianess),
	  .help = "Order of the bytes, little or big" },
	{ "endianness", CONFIG_STRING, offsetof(struct raw, endianness),
	  .help = "The same, spelled as in dictionaries" },
	{ "fake", CONFIG_BOOL, offsetof(struct raw, fake), "false",
	  .help = "The first three numbers are sequence, seconds and nanoseconds" },
};

static int64_t get_signed(const char *at, unsigned width, bool swap)
{
	switch (width) {
	case 1:
		return (int8_t)at[0];
	case 2:
		return (int16_t)bytes_get16(at, swap);
	case 4:
		return (int32_t)bytes_get32(at, swap);
	default:
		return (int64_t)bytes_get64(at, swap);
	}
}

static uint64_t get_unsigned(const char *at, unsigned width, bool swap)
{
	uint64_t v = (uint64_t)get_signed(at, width, swap);

	return width == 8 ? v : v & ((UINT64_C(1) << 8 * width) - 1);
}

static void put_integer(char *at, uint64_t v, unsigned width, bool swap)
{
	switch (width) {
	case 1:
		at[0] = (char)v;
		break;
	case 2:
		bytes_put16(at, (uint16_t)v, swap);
		break;
	case 4:
		bytes_put32(at, (uint32_t)v, swap);
		break;
	default:
		bytes_put64(at, v, swap);
	}
}

/* init() has seen to it that reals are 4 or 8 bytes wide. */
static double get_real(const char *at, unsigned width, bool swap)
{
	return width == 4 ? (double)bytes_to_float(bytes_get32(at, swap)) :
			    bytes_to_double(bytes_get64(at, swap));
}

static void put_real(char *at, double v, unsigned width, bool swap)
{
	if (width == 4)
		bytes_put32(at, bytes_of_float((float)v), swap);
	else
		bytes_put64(at, bytes_of_double(v), swap);
}

static unsigned slots_of(enum signal_type type)
{
	return type == SIGNAL_COMPLEX ? 2 : 1;
}

static void get_value(const struct raw *r, const char *at, enum signal_type type,
		      union signal_data *value)
{
	switch (type) {
	case SIGNAL_FLOAT:
		value->f = get_real(at, r->width, r->swap);
		break;
	case SIGNAL_INTEGER:
		value->i = get_signed(at, r->width, r->swap);
		break;
	case SIGNAL_BOOLEAN:
		value->i = get_signed(at, r->width, r->swap) != 0;
		break;
	case SIGNAL_COMPLEX:
		value->z.re = (float)get_real(at, r->width, r->swap);
		value->z.im = (float)get_real(at + r->width, r->width, r->swap);
		break;
	}
}

static void put_value(const struct raw *r, char *at, enum signal_type type,
		      const union signal_data *value)
{
	switch (type) {
	case SIGNAL_FLOAT:
		put_real(at, value->f, r->width, r->swap);
		break;
	case SIGNAL_INTEGER:
		put_integer(at, (uint64_t)value->i, r->width, r->swap);
		break;
	case SIGNAL_BOOLEAN:
		put_integer(at, value->i != 0, r->width, r->swap);
		break;
	case SIGNAL_COMPLEX:
		put_real(at, (double)value->z.re, r->width, r->swap);
		put_real(at + r->width, (double)value->z.im, r->width, r->swap);
		break;
	}
}

static int take_fake(struct format *f, const char *at, struct sample *s)
{
	const struct raw *r = f->private_data;
	uint64_t nsec = get_unsigned(at + 2 * r->width, r->width, r->swap);

	s->flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN;
	s->sequence = get_unsigned(at, r->width, r->swap);
	s->origin.tv_sec = (time_t)get_unsigned(at + r->width, r->width, r->swap);
	s->origin.tv_nsec = (long)nsec;
	if (nsec < 1000000000)
		return 0;
	return text_fail(f, "the third number, %ju, cannot be nanoseconds",
			 (uintmax_t)nsec);
}

/* Bytes of a sample in a stream, 0 when there are no signals to tell. */
static size_t stream_size(const struct format *f)
{
	const struct raw *r = f->private_data;
	size_t slots = r->fake ? FAKE_NUMBERS : 0;

	for (unsigned i = 0; i < f->signals->count; i++)
		slots += slots_of(f->signals->signals[i].type);
	return f->signals->count ? slots * r->width : 0;
}

static int take_sample(struct format *f, const char *at, size_t len, size_t *size,
		       struct sample *s)
{
	const struct raw *r = f->private_data;
	const char *end;
	unsigned n = 0;
	int ret;

	*size = f->message ? len : stream_size(f);
	if (!*size) {
		*size = len;
		return text_fail(f, "nothing in '%s' tells how many values a sample has; give the node its signals",
				 f->type->name);
	}
	if (len < *size)
		return BYTES_INCOMPLETE;
	if (*size % r->width || (r->fake && *size < FAKE_NUMBERS * r->width))
		return text_fail(f, "%zu bytes are no sample of numbers of %u bits%s",
				 *size, 8 * r->width, r->fake ?
				 " that begins with sequence and time" : "");
	end = at + *size;
	s->flags = 0;
	s->signals = f->signals->count ? f->signals : NULL;
	if (r->fake) {
		ret = take_fake(f, at, s);
		if (ret)
			return ret;
		at += FAKE_NUMBERS * (size_t)r->width;
	}
	while (at < end) {
		enum signal_type type = text_type(f->signals, n);
		size_t bytes = slots_of(type) * (size_t)r->width;

		if (unlikely(!(f->types & FORMAT_TYPE(type))))
			return text_fail(f, "value %u is %s, which %u bits cannot hold; give the node its signals",
					 n, signal_type_name(type), 8 * r->width);
		if ((size_t)(end - at) < bytes)
			return text_fail(f, "the message ends within complex value %u", n);
		if (n == s->capacity)
			return bytes_fail_length(f, n + (uint64_t)(end - at) / bytes, s);
		get_value(r, at, type, &s->data[n++]);
		at += bytes;
	}
	s->length = n;
	s->flags |= n ? SAMPLE_HAS_DATA : 0;
	return BYTES_SAMPLE;
}

static int raw_scan(struct format *f, const char *buf, size_t len, size_t *used,
		    struct sample *smps[], unsigned cnt)
{
	return bytes_scan_records(f, take_sample, buf, len, used, smps, cnt);
}

static char *put_fake(const struct format *f, char *at, const struct sample *s)
{
	const struct raw *r = f->private_data;
	bool origin = f->ts_origin && s->flags & SAMPLE_HAS_ORIGIN;
	bool sequence = f->sequence && s->flags & SAMPLE_HAS_SEQUENCE;

	put_integer(at, sequence ? s->sequence : 0, r->width, r->swap);
	at += r->width;
	put_integer(at, origin ? (uint64_t)s->origin.tv_sec : 0, r->width, r->swap);
	at += r->width;
	put_integer(at, origin ? sample_time_nsec(s->origin) : 0, r->width, r->swap);
	return at + r->width;
}

/* Behind the sample, NULL when it does not fit; *err for a type refused. */
static char *put_sample(struct format *f, char *at, const char *end,
			const struct sample *s, int *err)
{
	const struct raw *r = f->private_data;
	const struct signal_list *signals = bytes_signals(f, s);
	unsigned length = bytes_length(f, s);

	if (r->fake) {
		if ((size_t)(end - at) < FAKE_NUMBERS * (size_t)r->width)
			return NULL;
		at = put_fake(f, at, s);
	}
	for (unsigned i = 0; i < length; i++) {
		enum signal_type type = text_type(signals, i);
		size_t bytes = slots_of(type) * (size_t)r->width;

		if (unlikely(!(f->types & FORMAT_TYPE(type)))) {
			*err = bytes_refuse(f, signals, i);
			return NULL;
		}
		if ((size_t)(end - at) < bytes)
			return NULL;
		put_value(r, at, type, &s->data[i]);
		at += bytes;
	}
	return at;
}

static int raw_print(struct format *f, char *buf, size_t size, size_t *used,
		     struct sample *const smps[], unsigned cnt)
{
	char *at = buf, *next;
	unsigned i;
	int err = 0;

	cnt = f->message ? MIN(cnt, 1u) : cnt;
	for (i = 0; i < cnt; i++) {
		next = put_sample(f, at, buf + size, smps[i], &err);
		if (!next)
			break;
		at = next;
	}
	*used = (size_t)(at - buf);
	return i > 0 ? (int)i : err;
}

/* 1 for big, 0 for little, -EINVAL after saying what is wrong. */
static int parse_order(struct format *f, const char *fallback)
{
	const struct raw *r = f->private_data;
	const char *order = r->endianess ? r->endianess :
			    r->endianness ? r->endianness : fallback;

	if (r->endianess && r->endianness && strcmp(r->endianess, r->endianness)) {
		text_fail(f, "endianess is \"%.20s\" and endianness \"%.20s\": give one of them",
			  r->endianess, r->endianness);
		return -EINVAL;
	}
	if (!strcmp(order, "little"))
		return 0;
	if (!strcmp(order, "big"))
		return 1;
	text_fail(f, "endianess \"%.40s\" is neither little nor big", order);
	return -EINVAL;
}

static int init_with(struct format *f, const char *fallback)
{
	struct raw *r = f->private_data;
	int big = parse_order(f, fallback);

	if (big < 0)
		return big;
	if (r->bits & (r->bits - 1)) {
		text_fail(f, "bits = %jd: numbers are 8, 16, 32 or 64 bits wide",
			  (intmax_t)r->bits);
		return -EINVAL;
	}
	r->width = (unsigned)r->bits / 8;
	r->swap = r->width > 1 && big != BYTES_HOST_IS_BIG;
	if (r->width < 4) /* no such reals */
		f->types &= ~(FORMAT_TYPE(SIGNAL_FLOAT) |
			      FORMAT_TYPE(SIGNAL_COMPLEX));
	return 0;
}

static int raw_init(struct format *f)
{
	return init_with(f, "little");
}

static int gtnet_init(struct format *f)
{
	return init_with(f, "big");
}

#define CARRIES                                                           \
	{                                                                 \
		.traits = FORMAT_NEEDS_SIGNALS | FORMAT_ONE_PER_MESSAGE,  \
		.types = FORMAT_ALL_TYPES, .flags = SAMPLE_HAS_DATA,      \
		.real_bits = 32, .integer_bits = 32,                      \
	}

const struct format_type format_raw = {
	.name = "raw",
	.description = "Bare binary values",
	.binary = true,
	.carries = CARRIES,
	.size = sizeof(struct raw),
	.keys = raw_keys,
	.key_count = ARRAY_SIZE(raw_keys),
	.init = raw_init,
	.print = raw_print,
	.scan = raw_scan,
};

const struct format_type format_gtnet = {
	.name = "gtnet",
	.description = "Bare binary values of 32 bits, big-endian (RTDS GTNET)",
	.binary = true,
	.carries = CARRIES,
	.size = sizeof(struct raw),
	.keys = raw_keys,
	.key_count = ARRAY_SIZE(raw_keys),
	.init = gtnet_init,
	.print = raw_print,
	.scan = raw_scan,
};
