/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * protobuf: messages of VILLASnode's schema (proto2, package villas.node):
 *
 *   Message   { repeated Sample samples = 1 }
 *   Sample    { required Type type = 1 (DATA 1, START 2, STOP 3)
 *               uint64 sequence = 2; Timestamp ts_origin = 3, ts_received = 4
 *               bool new_frame = 5; repeated Value values = 100 }
 *   Timestamp { uint32 sec = 1, nsec = 2 }
 *   Value     { oneof double f = 1, int64 i = 2, bool b = 3, Complex z = 4 }
 *   Complex   { float real = 1, imag = 2 }
 *
 * Seconds are written as 64 bits, which a reader of that schema cuts to 32: a time
 * before 1970 or after 2106 comes back only here.
 *
 * Coded by hand: libraries that build such messages allocate each value, which
 * the data path must not, and the wire is simple. As a message is nothing but
 * its fields, one behind the other, a file of many messages is one message too:
 * samples are taken from it one by one.
 */
#include "gateway/format/part/proto_wire.h"

/* More than the largest sample: a length beyond is damage. */
#define SAMPLE_BYTES_MAX (4u << 20)

#define TAG(field, wire) ((field) << 3 | (wire))

enum tag {
	TAG_SAMPLES = TAG(1, PROTO_BYTES),
	TAG_TYPE = TAG(1, PROTO_VARINT),
	TAG_SEQUENCE = TAG(2, PROTO_VARINT),
	TAG_ORIGIN = TAG(3, PROTO_BYTES),
	TAG_RECEIVED = TAG(4, PROTO_BYTES),
	TAG_NEW_FRAME = TAG(5, PROTO_VARINT),
	TAG_VALUES = TAG(100, PROTO_BYTES),
	TAG_SEC = TAG(1, PROTO_VARINT),
	TAG_NSEC = TAG(2, PROTO_VARINT),
	TAG_F = TAG(1, PROTO_64),
	TAG_I = TAG(2, PROTO_VARINT),
	TAG_B = TAG(3, PROTO_VARINT),
	TAG_Z = TAG(4, PROTO_BYTES),
	TAG_REAL = TAG(1, PROTO_32),
	TAG_IMAG = TAG(2, PROTO_32),
};

enum sample_kind {
	KIND_DATA = 1,
	KIND_START = 2,
	KIND_STOP = 3,
};

/* Writing. */

static unsigned varint_size(uint64_t v)
{
	return (unsigned)(70 - __builtin_clzll(v | 1)) / 7;
}

static char *put_varint(char *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (char)(v | 0x80);
	*at++ = (char)v;
	return at;
}

static unsigned time_size(struct timespec t)
{
	return 2 + varint_size((uint64_t)t.tv_sec) + varint_size(sample_time_nsec(t));
}

static char *put_time(char *at, unsigned tag, struct timespec t)
{
	*at++ = (char)tag;
	*at++ = (char)time_size(t);
	*at++ = TAG_SEC;
	at = put_varint(at, (uint64_t)t.tv_sec);
	*at++ = TAG_NSEC;
	return put_varint(at, sample_time_nsec(t));
}

/* Bytes of a Value, without its tag and length. */
static unsigned value_size(enum signal_type type, const union signal_data *v)
{
	switch (type) {
	case SIGNAL_FLOAT:
		return 1 + 8;
	case SIGNAL_INTEGER:
		return 1 + varint_size((uint64_t)v->i);
	case SIGNAL_BOOLEAN:
		return 1 + 1;
	case SIGNAL_COMPLEX:
		return 2 + 2 * (1 + 4);
	}
	return 0;
}

static char *put_value(char *at, enum signal_type type, const union signal_data *v)
{
	at[0] = (char)(TAG_VALUES & 0x7f) | (char)0x80;
	at[1] = TAG_VALUES >> 7;
	at[2] = (char)value_size(type, v);
	at += 3;
	switch (type) {
	case SIGNAL_FLOAT:
		*at++ = TAG_F;
		bytes_put64(at, v->bits, PROTO_SWAP);
		return at + 8;
	case SIGNAL_INTEGER:
		*at++ = TAG_I;
		return put_varint(at, (uint64_t)v->i);
	case SIGNAL_BOOLEAN:
		*at++ = TAG_B;
		*at++ = v->i != 0;
		return at;
	case SIGNAL_COMPLEX:
		*at++ = TAG_Z;
		*at++ = 2 * (1 + 4);
		*at++ = TAG_REAL;
		bytes_put32(at, bytes_of_float(v->z.re), PROTO_SWAP);
		at[4] = TAG_IMAG;
		bytes_put32(at + 5, bytes_of_float(v->z.im), PROTO_SWAP);
		return at + 9;
	}
	return at;
}

/* The fields that go out, and the bytes of the Sample. */
static size_t sample_size(const struct format *f, const struct sample *s,
			  uint32_t *fields)
{
	const struct signal_list *signals = bytes_signals(f, s);
	unsigned length = bytes_length(f, s);
	size_t size = 2;

	*fields = s->flags & (SAMPLE_NEW_FRAME |
			      (f->sequence ? SAMPLE_HAS_SEQUENCE : 0) |
			      (f->ts_origin ? SAMPLE_HAS_ORIGIN : 0) |
			      (f->ts_received ? SAMPLE_HAS_RECEIVED : 0));
	if (*fields & SAMPLE_HAS_SEQUENCE)
		size += 1 + varint_size(s->sequence);
	if (*fields & SAMPLE_HAS_ORIGIN)
		size += 2 + time_size(s->origin);
	if (*fields & SAMPLE_HAS_RECEIVED)
		size += 2 + time_size(s->received);
	if (*fields & SAMPLE_NEW_FRAME)
		size += 2;
	for (unsigned i = 0; i < length; i++)
		size += 3 + value_size(text_type(signals, i), &s->data[i]);
	return size;
}

static char *put_sample(const struct format *f, char *at, const struct sample *s,
			uint32_t fields, size_t size)
{
	const struct signal_list *signals = bytes_signals(f, s);
	unsigned length = bytes_length(f, s);

	*at++ = TAG_SAMPLES;
	at = put_varint(at, size);
	*at++ = TAG_TYPE;
	*at++ = KIND_DATA;
	if (fields & SAMPLE_HAS_SEQUENCE) {
		*at++ = TAG_SEQUENCE;
		at = put_varint(at, s->sequence);
	}
	if (fields & SAMPLE_HAS_ORIGIN)
		at = put_time(at, TAG_ORIGIN, s->origin);
	if (fields & SAMPLE_HAS_RECEIVED)
		at = put_time(at, TAG_RECEIVED, s->received);
	if (fields & SAMPLE_NEW_FRAME) {
		*at++ = TAG_NEW_FRAME;
		*at++ = 1;
	}
	for (unsigned i = 0; i < length; i++)
		at = put_value(at, text_type(signals, i), &s->data[i]);
	return at;
}

static int protobuf_print(struct format *f, char *buf, size_t size, size_t *used,
			  struct sample *const smps[], unsigned cnt)
{
	char *at = buf;
	unsigned i;

	*used = 0;
	for (i = 0; i < cnt; i++) {
		uint32_t fields;
		size_t bytes = sample_size(f, smps[i], &fields);

		if (bytes > SAMPLE_BYTES_MAX && i == 0) {
			text_fail(f, "the sample takes %zu bytes, %u are the most",
				  bytes, SAMPLE_BYTES_MAX);
			return -E2BIG;
		}
		if (bytes > SAMPLE_BYTES_MAX ||
		    (size_t)(buf + size - at) < 1 + varint_size(bytes) + bytes)
			break;
		at = put_sample(f, at, smps[i], fields, bytes);
	}
	*used = (size_t)(at - buf);
	return (int)i;
}

/* Reading. */

static bool take_time(const struct proto_field *message, struct timespec *t)
{
	const char *at = message->at;
	uint64_t sec = 0, nsec = 0;
	struct proto_field field;

	while (at < message->end) {
		at = proto_take_field(at, message->end, &field);
		if (!at)
			return false;
		if (field.tag == TAG_SEC)
			sec = field.number;
		else if (field.tag == TAG_NSEC)
			nsec = field.number;
	}
	*t = (struct timespec){ .tv_sec = (time_t)sec, .tv_nsec = (long)nsec };
	return nsec < 1000000000;
}

static bool take_complex(const struct proto_field *message, union signal_data *v)
{
	const char *at = message->at;
	struct proto_field field;

	v->z.re = v->z.im = 0;
	while (at < message->end) {
		at = proto_take_field(at, message->end, &field);
		if (!at)
			return false;
		if (field.tag == TAG_REAL)
			v->z.re = bytes_to_float((uint32_t)field.number);
		else if (field.tag == TAG_IMAG)
			v->z.im = bytes_to_float((uint32_t)field.number);
	}
	return true;
}

/* Type of the value; -1 when there is none in it. */
static int take_number(const struct proto_field *message, union signal_data *v)
{
	const char *at = message->at;
	struct proto_field field;
	int type = -1;

	/* Nearly all are of this kind. */
	if (likely(message->end - at == 9 && at[0] == TAG_F)) {
		v->bits = bytes_get64(at + 1, PROTO_SWAP);
		return SIGNAL_FLOAT;
	}
	while (at < message->end) {
		at = proto_take_field(at, message->end, &field);
		if (!at)
			return -1;
		switch (field.tag) {
		case TAG_F:
			v->bits = field.number;
			type = SIGNAL_FLOAT;
			break;
		case TAG_I:
			v->i = (int64_t)field.number;
			type = SIGNAL_INTEGER;
			break;
		case TAG_B:
			v->i = field.number != 0;
			type = SIGNAL_BOOLEAN;
			break;
		case TAG_Z:
			if (!take_complex(&field, v))
				return -1;
			type = SIGNAL_COMPLEX;
			break;
		}
	}
	return type;
}

static int take_value(struct format *f, const struct proto_field *message,
		      struct sample *s)
{
	enum signal_type want = text_type(f->signals, s->length);
	union signal_data v;
	int type = take_number(message, &v);

	if (type < 0)
		return text_fail(f, "value %u is malformed", s->length);
	if (s->length == s->capacity)
		return bytes_fail_length(f, s->length + UINT64_C(1), s);
	if (unlikely((enum signal_type)type != want)) {
		/* A value that another type can hold exactly gets that type. */
		if (want == SIGNAL_FLOAT && type != SIGNAL_COMPLEX)
			v.f = (double)v.i;
		else if (want != SIGNAL_INTEGER || type != SIGNAL_BOOLEAN)
			return text_fail(f, "value %u is %s, the signal is %s",
					 s->length, signal_type_name((enum signal_type)type),
					 signal_type_name(want));
	}
	s->data[s->length++] = v;
	return 0;
}

static int take_part(struct format *f, const struct proto_field *field,
		     struct sample *s, uint64_t *kind)
{
	switch (field->tag) {
	case TAG_TYPE:
		*kind = field->number;
		break;
	case TAG_SEQUENCE:
		s->sequence = field->number;
		s->flags |= SAMPLE_HAS_SEQUENCE;
		break;
	case TAG_ORIGIN:
		if (!take_time(field, &s->origin))
			return text_fail(f, "the origin timestamp is malformed");
		s->flags |= SAMPLE_HAS_ORIGIN;
		break;
	case TAG_RECEIVED:
		if (!take_time(field, &s->received))
			return text_fail(f, "the receive timestamp is malformed");
		s->flags |= SAMPLE_HAS_RECEIVED;
		break;
	case TAG_NEW_FRAME:
		s->flags |= field->number ? SAMPLE_NEW_FRAME : 0;
		break;
	case TAG_VALUES:
		return take_value(f, field, s);
	}
	return 0;
}

static int take_sample(struct format *f, const struct proto_field *message,
		       struct sample *s)
{
	const char *at = message->at;
	uint64_t kind = KIND_DATA;
	struct proto_field field;
	int ret;

	s->signals = f->signals->count ? f->signals : NULL;
	s->flags = 0;
	s->length = 0;
	while (at < message->end) {
		at = proto_take_field(at, message->end, &field);
		if (!at)
			return text_fail(f, "a field of the sample is malformed");
		ret = take_part(f, &field, s, &kind);
		if (ret)
			return ret;
	}
	s->flags |= s->length ? SAMPLE_HAS_DATA : 0;
	return kind == KIND_DATA ? BYTES_SAMPLE : BYTES_NOTHING;
}

/* Does a sample begin here? It is recognised by its tag, a length and its type, even if its end has
 * not come. */
static bool looks_like_sample(const char *at, const char *end)
{
	const char *inner;
	uint64_t size;

	if (*at != TAG_SAMPLES)
		return false;
	inner = proto_take_varint(at + 1, end, &size);
	if (!inner || inner + 2 > end)
		return inner || end - at < 11; /* more to come will tell */
	return size <= SAMPLE_BYTES_MAX && inner[0] == TAG_TYPE &&
	       inner[1] >= KIND_DATA && inner[1] <= KIND_STOP;
}

/* Returns the number of bytes up to the next place that looks like a sample. */
static size_t skip_to_sample(const char *at, size_t len)
{
	const char *p = at + 1, *end = at + len;

	while (p < end && (p = memchr(p, TAG_SAMPLES, (size_t)(end - p)))) {
		if (looks_like_sample(p, end))
			return (size_t)(p - at);
		p++;
	}
	return len;
}

/* Unknown fields of a stream: longer ones, or more of them in a row, are damage. */
#define UNKNOWN_BYTES_MAX 65536
#define UNKNOWN_FIELDS_MAX 16

/* Whether a field that is cut at `end` may be whole when more has come: its tag and, if
 * they are there, its length are possible. */
static bool may_go_on(const char *at, const char *end)
{
	uint64_t tag, size;

	at = proto_take_varint(at, end, &tag);
	if (!at || !proto_is_number(tag))
		return !at;
	switch (tag & 7) {
	case PROTO_VARINT:
		return end - at < 10;
	case PROTO_BYTES:
		at = proto_take_varint(at, end, &size);
		return !at || size <= UNKNOWN_BYTES_MAX;
	case PROTO_64:
	case PROTO_32:
	case PROTO_GROUP:
		return true;
	default:
		return false;
	}
}


/* A sample may begin with any field, also an unknown one. */
static bool may_be_sample(const char *at, const char *end)
{
	uint64_t size, tag;

	if (*at != TAG_SAMPLES)
		return false;
	at = proto_take_varint(at + 1, end, &size);
	if (!at || !size || size > SAMPLE_BYTES_MAX)
		return !at || !size; /* more to come will tell */
	at = proto_take_varint(at, end, &tag);
	return !at || (proto_is_number(tag) && (tag & 7) <= PROTO_32 &&
		       (tag & 7) != PROTO_GROUP_END);
}

/*
 * Whether an unknown field of the Message begins here: then *size is what it takes. In a
 * stream it must be followed by a sample, the end, or more such fields; else garbage
 * would pass as fields. BYTES_INCOMPLETE: more bytes will tell.
 */
static int take_unknown(const struct format *f, const char *at, size_t len, size_t *size)
{
	const char *p = at, *end = at + len, *next;
	struct proto_field t;

	for (unsigned n = 0; n < UNKNOWN_FIELDS_MAX && p < end && *p != TAG_SAMPLES; n++) {
		next = proto_take_field(p, end, &t);
		if (!next)
			/* Its end may not have come; nothing else is shorter than that. */
			return f->message || len > UNKNOWN_BYTES_MAX || !may_go_on(p, end) ?
				       -EBADMSG : BYTES_INCOMPLETE;
		if (!*size)
			*size = (size_t)(next - at);
		if (f->message)
			return BYTES_NOTHING;
		p = next;
	}
	return p == end || may_be_sample(p, end) ? BYTES_NOTHING : -EBADMSG;
}

static int take_record(struct format *f, const char *at, size_t len, size_t *size,
		       struct sample *s)
{
	const char *end = at + len, *next;
	struct proto_field field;
	uint64_t tag, bytes;
	int ret;

	next = proto_take_varint(at, end, &tag);
	if (!next && len < 10)
		return BYTES_INCOMPLETE;
	if (unlikely(!next))
		goto bad;
	if (unlikely(tag != TAG_SAMPLES)) {
		ret = take_unknown(f, at, len, size);
		if (ret >= 0)
			return ret;
		goto bad;
	}
	next = proto_take_varint(next, end, &bytes);
	if (!next && len < 11)
		return BYTES_INCOMPLETE;
	if (unlikely(!next || bytes > SAMPLE_BYTES_MAX))
		goto bad;
	if ((size_t)(end - next) < bytes)
		return BYTES_INCOMPLETE;
	field.at = next;
	field.end = next + bytes;
	*size = (size_t)(field.end - at);
	return take_sample(f, &field, s);

bad:
	*size = f->message ? len : skip_to_sample(at, len);
	return text_fail(f, "no sample begins here (first byte 0x%02x); %zu bytes passed over",
			 (unsigned char)at[0], *size);
}

static int protobuf_scan(struct format *f, const char *buf, size_t len,
			 size_t *used, struct sample *smps[], unsigned cnt)
{
	return bytes_scan_records(f, take_record, buf, len, used, smps, cnt);
}

const struct format_type format_protobuf = {
	.name = "protobuf",
	.description = "Protocol buffers in VILLASnode's schema",
	.binary = true,
	.carries = {
		.traits = FORMAT_LOSSLESS | FORMAT_SELF_DELIMITING |
			  FORMAT_NEEDS_SIGNALS | FORMAT_TELLS_ABSENT,
		.types = FORMAT_ALL_TYPES,
		.flags = SAMPLE_HAS_SEQUENCE | SAMPLE_HAS_ORIGIN |
			 SAMPLE_HAS_RECEIVED | SAMPLE_HAS_DATA |
			 SAMPLE_NEW_FRAME,
		.real_bits = 64, .integer_bits = 64, .sequence_bits = 64,
		.seconds_bits = 63, .time_step_ns = 1,
	},
	.print = protobuf_print,
	.scan = protobuf_scan,
};
