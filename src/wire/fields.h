/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Structures in host order to and from bytes in network order, by tables: one row for each
 * field has its position in both, for packer and unpacker alike. It knows no protocol; the
 * tables do (wire/cm.c, wire/mad/).
 *
 * Pure functions, of any thread. A table is constant.
 */
#ifndef WIRE_FIELDS_H
#define WIRE_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_layout;

/* One field, or `count` equal ones, each `stride` bits behind the one before. */
struct wire_field {
	const char *name;     /* of the member; NULL: a reserved field, not in the structure */
	uint16_t host;        /* offset in the structure */
	uint16_t size;        /* bytes of one element in the structure: 1, 2, 4 or 8 for integers */
	uint16_t bit;         /* offset in the bytes: 8 * byte + bits from its most significant */
	uint16_t width;       /* bits of one element */
	uint16_t stride;      /* bits from one element to the next */
	uint16_t count;       /* of elements */
	const struct wire_layout *inner; /* an element is a structure; NULL: an integer or bytes */
	bool bytes;           /* `size` bytes are copied as they are */
};

struct wire_layout {
	const char *name;     /* as the specification spells it, "PortInfo" */
	const struct wire_field *fields;
	uint16_t count;       /* of fields */
	uint16_t size;        /* bytes of the structure */
	uint16_t bytes;       /* on the wire */
};

/* Rows. `type` is the structure, `at` the byte, `from` the bit behind it (0: the most
 * significant). An integer crosses no more than 8 bytes. */
#define WIRE_MEMBER_SIZE(type, member) sizeof(((type *)NULL)->member)
#define WIRE_BITS(type, member, at, from, bits)                                  \
	{ .name = #member, .host = offsetof(type, member),                       \
	  .size = WIRE_MEMBER_SIZE(type, member), .bit = 8 * (at) + (from),      \
	  .width = (bits), .count = 1 }
#define WIRE_BYTES(type, member, at)                                             \
	{ .name = #member, .host = offsetof(type, member),                       \
	  .size = WIRE_MEMBER_SIZE(type, member), .bit = 8 * (at),               \
	  .width = 8 * WIRE_MEMBER_SIZE(type, member), .count = 1, .bytes = true }
/* An array of arrays of bytes, one behind the other. */
#define WIRE_BYTE_ARRAYS(type, member, at)                                       \
	{ .name = #member, .host = offsetof(type, member),                       \
	  .size = WIRE_MEMBER_SIZE(type, member[0]), .bit = 8 * (at),            \
	  .width = 8 * WIRE_MEMBER_SIZE(type, member[0]),                        \
	  .stride = 8 * WIRE_MEMBER_SIZE(type, member[0]), .bytes = true,        \
	  .count = WIRE_MEMBER_SIZE(type, member) / WIRE_MEMBER_SIZE(type, member[0]) }
/* An array of integers of `bits` bits, `every` bits apart. */
#define WIRE_ARRAY(type, member, at, from, bits, every)                          \
	{ .name = #member, .host = offsetof(type, member),                       \
	  .size = WIRE_MEMBER_SIZE(type, member[0]), .bit = 8 * (at) + (from),   \
	  .width = (bits), .stride = (every),                                    \
	  .count = WIRE_MEMBER_SIZE(type, member) / WIRE_MEMBER_SIZE(type, member[0]) }
#define WIRE_INNER(type, member, at, layout)                                     \
	{ .name = #member, .host = offsetof(type, member),                       \
	  .size = WIRE_MEMBER_SIZE(type, member), .bit = 8 * (at), .count = 1,   \
	  .inner = &(layout) }
/* An array of structures, `every` bytes apart. */
#define WIRE_INNERS(type, member, at, every, layout)                             \
	{ .name = #member, .host = offsetof(type, member),                       \
	  .size = WIRE_MEMBER_SIZE(type, member[0]), .bit = 8 * (at),            \
	  .stride = 8 * (every), .inner = &(layout),                             \
	  .count = WIRE_MEMBER_SIZE(type, member) / WIRE_MEMBER_SIZE(type, member[0]) }
/* Not in the structure: zeros when packed, ignored when unpacked. */
#define WIRE_RESERVED(at, from, bits)                                            \
	{ .bit = 8 * (at) + (from), .width = (bits), .count = 1 }

/* Writes all of the layout's bytes at `to`; those of no field are 0. False: a value is wider
 * than its field, and its upper bits were cut off. */
bool wire_pack(const struct wire_layout *layout, const void *from, uint8_t *to);
/* Writes the fields only, and leaves other bits as they are. */
bool wire_pack_fields(const struct wire_layout *layout, const void *from, uint8_t *to);

/* Reads layout->bytes bytes. Every value is accepted. All of the structure is written. */
void wire_unpack(const struct wire_layout *layout, const uint8_t *from, void *to);

/* The `width` bits (1 to 64) behind the first `bit` ones; they touch 8 bytes at most. */
uint64_t wire_get_bits(const uint8_t *from, unsigned bit, unsigned width);

/* wire_pack() and wire_unpack() under the name of a structure: `bool NAME_pack(const struct
 * NAME *from, uint8_t *to)`, `void NAME_unpack(const uint8_t *from, struct NAME *to)`. Both
 * touch `size_bytes` bytes, which is the size of NAME_layout. */
#define WIRE_CODEC(NAME, size_bytes)                                             \
	enum { NAME##_bytes = (size_bytes) };                                    \
	extern const struct wire_layout NAME##_layout;                           \
	static inline bool NAME##_pack(const struct NAME *from, uint8_t *to)     \
	{                                                                        \
		return wire_pack(&NAME##_layout, from, to);                      \
	}                                                                        \
	static inline void NAME##_unpack(const uint8_t *from, struct NAME *to)   \
	{                                                                        \
		wire_unpack(&NAME##_layout, from, to);                           \
	}

/* The initialiser of the layout of an inner structure. */
#define WIRE_ELEMENT(type, spelling, rows, size_bytes)                           \
	{ .name = (spelling), .fields = (rows),                                  \
	  .count = sizeof(rows) / sizeof((rows)[0]), .size = sizeof(type),       \
	  .bytes = (size_bytes) }

/* Defines NAME_layout from an array of rows. */
#define WIRE_LAYOUT(NAME, spelling, rows)                                        \
	const struct wire_layout NAME##_layout =                                 \
		WIRE_ELEMENT(struct NAME, spelling, rows, NAME##_bytes)

#endif
