/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wire of protocol buffers: fields of a message, one behind the other, each with
 * its number and wire type. Unknown fields of any type can be passed over.
 */
#ifndef GATEWAY_FORMAT_PART_PROTO_WIRE_H
#define GATEWAY_FORMAT_PART_PROTO_WIRE_H

#include "gateway/format/part/bytes.h"

/* The wire is little-endian. */
#define PROTO_SWAP BYTES_HOST_IS_BIG

enum proto_wire_type {
	PROTO_VARINT = 0,
	PROTO_64 = 1,
	PROTO_BYTES = 2,
	PROTO_GROUP = 3,
	PROTO_GROUP_END = 4,
	PROTO_32 = 5,
};

struct proto_field {
	uint64_t tag;
	uint64_t number;        /* of PROTO_VARINT, PROTO_64 and PROTO_32 */
	const char *at, *end;   /* of PROTO_BYTES */
};

/* Takes a varint; returns the position behind it, NULL when it is malformed or does not end before
 * `end`. */
static inline const char *proto_take_varint(const char *at, const char *end, uint64_t *v)
{
	uint64_t value = 0;

	for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
		unsigned char byte = (unsigned char)*at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80) {
			*v = value;
			return at;
		}
	}
	return NULL;
}

/* Of fields; larger ones do not exist. */
#define PROTO_NUMBER_MAX ((UINT64_C(1) << 29) - 1)
#define PROTO_GROUPS_MAX 32

/* Takes the value of a field whose tag is t->tag, which is no group; returns the position behind
 * it, NULL as above. */
static inline const char *proto_take_plain(const char *at, const char *end, struct proto_field *t)
{
	uint64_t size;

	switch (t->tag & 7) {
	case PROTO_VARINT:
		return proto_take_varint(at, end, &t->number);
	case PROTO_64:
		if (end - at < 8)
			return NULL;
		t->number = bytes_get64(at, PROTO_SWAP);
		return at + 8;
	case PROTO_32:
		if (end - at < 4)
			return NULL;
		t->number = bytes_get32(at, PROTO_SWAP);
		return at + 4;
	case PROTO_BYTES:
		at = proto_take_varint(at, end, &size);
		if (!at || size > (size_t)(end - at))
			return NULL;
		t->at = at;
		t->end = at + size;
		return t->end;
	default:
		return NULL;
	}
}

static inline bool proto_is_number(uint64_t tag)
{
	return tag >> 3 && tag >> 3 <= PROTO_NUMBER_MAX;
}

/* Passes over a group, which only old schemas have: fields up to the end that has the number of
 * its begin. Returns the position behind it. */
static inline const char *proto_skip_group(const char *at, const char *end, uint64_t number)
{
	uint64_t open[PROTO_GROUPS_MAX] = { number };
	unsigned depth = 1;
	struct proto_field t;

	while (depth && (at = proto_take_varint(at, end, &t.tag))) {
		if (!proto_is_number(t.tag))
			return NULL;
		if ((t.tag & 7) == PROTO_GROUP && depth < PROTO_GROUPS_MAX) {
			open[depth++] = t.tag >> 3;
		} else if ((t.tag & 7) == PROTO_GROUP_END) {
			if (open[--depth] != t.tag >> 3)
				return NULL;
		} else {
			at = proto_take_plain(at, end, &t);
			if (!at)
				return NULL;
		}
	}
	return at;
}

/* Takes a whole field of any wire type; returns the position behind it. */
static inline const char *proto_take_field(const char *at, const char *end, struct proto_field *t)
{
	*t = (struct proto_field){ 0 };
	at = proto_take_varint(at, end, &t->tag);
	if (!at || !proto_is_number(t->tag))
		return NULL;
	return likely((t->tag & 7) != PROTO_GROUP) ? proto_take_plain(at, end, t) :
						    proto_skip_group(at, end, t->tag >> 3);
}

#endif
