/* SPDX-License-Identifier: BSD-2-Clause */
/* Settings of identifiers and bits, which stand beside those of signals. */
#define LOG_ROOM "gateway/can"
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "gateway/node/can/can.h"
#include "gateway/sample/signals.h"

#define SIZE_DEFAULT 8

struct entry {
	int64_t id, size, offset_bytes, start, length, frame_length;
	int byte_order, coding;
	bool extended, is_signed;
	double factor, offset, min, max;
	const char *dbc_signal;
};

enum { LITTLE, BIG };
enum { CODED_INTEGER, CODED_FLOAT };

static const char *const byte_orders[] = { "little", "big", NULL };
static const char *const codings[] = { "integer", "float", NULL };

#define OFFSET(field) offsetof(struct entry, field)

const struct config_key can_signal_keys[CAN_SIGNAL_KEYS] = {
	{ "dbc_signal", CONFIG_STRING, OFFSET(dbc_signal),
	  .help = "In place of can_id and the place: the signal of the file of the key dbc, as MESSAGE.SIGNAL" },
	{ "can_id", CONFIG_INT, OFFSET(id), .min = 0, .max = 4294967295.0,
	  .help = "Identifier of the frame; above 0x7ff, or with bit 31, it is an extended one" },
	{ "can_extended", CONFIG_BOOL, OFFSET(extended),
	  .help = "The identifier is an extended one, of 29 bits; by default if it has more than 11" },
	{ "can_size", CONFIG_INT, OFFSET(size), "8", .min = 1, .max = 8,
	  .help = "The value has so many bytes" },
	{ "can_offset", CONFIG_INT, OFFSET(offset_bytes), "0", .min = 0, .max = CANFD_MAX_DLEN - 1,
	  .help = "The value begins at this byte of the frame" },
	{ "start_bit", CONFIG_INT, OFFSET(start), "0", .min = 0, .max = 8 * CANFD_MAX_DLEN - 1,
	  .help = "In place of can_offset: the place of the value as in DBC files" },
	{ "bit_length", CONFIG_INT, OFFSET(length), "0", .min = 1, .max = CAN_VALUE_BITS,
	  .help = "In place of can_size: the value has so many bits" },
	{ "byte_order", CONFIG_ENUM, OFFSET(byte_order), "little", .names = byte_orders,
	  .help = "little (Intel) or big (Motorola)" },
	{ "signed", CONFIG_BOOL, OFFSET(is_signed),
	  .help = "The integer may be negative; by default with can_size, and not with bit_length" },
	{ "coding", CONFIG_ENUM, OFFSET(coding), "integer", .names = codings,
	  .help = "Of a float signal: the bits are an integer or a float; by default a float with can_size, an integer with bit_length" },
	{ "factor", CONFIG_REAL, OFFSET(factor), "1.0",
	  .help = "Of a float signal: it is what the bits say times factor plus offset" },
	{ "offset", CONFIG_REAL, OFFSET(offset), "0.0", .help = "See factor" },
	{ "min", CONFIG_REAL, OFFSET(min),
	  .help = "The smallest value of the signal; smaller ones that are received are counted; in place of those that are written, it is sent" },
	{ "max", CONFIG_REAL, OFFSET(max),
	  .help = "The greatest value of the signal; greater ones that are received are counted; in place of those that are written, it is sent" },
	{ "frame_length", CONFIG_INT, OFFSET(frame_length), "0", .min = 1, .max = CANFD_MAX_DLEN,
	  .help = "Of out: the frame has so many bytes at least; by default as far as its signals reach" },
};

static int fail(struct config *c, const json_t *at, const char *key, const char *what)
{
	config_fail(c, at, key, "%s", what);
	return -EINVAL;
}

static bool is_given(const json_t *at, const char *key)
{
	const json_t *value = json_object_get(at, key);

	return value && !json_is_null(value);
}

static void warn_unused(struct config *c, const json_t *at, const char *const keys[],
			const char *what)
{
	for (; *keys; keys++)
		if (is_given(at, *keys))
			config_warn(c, at, *keys, "says nothing about %s", what);
}

/* ---- identifiers ---- */

uint32_t can_id_parse(struct config *c, const json_t *at, const char *key, int64_t id)
{
	const json_t *said = json_object_get(at, "can_extended");
	/* The kernel, VILLASnode and DBC files mark extended identifiers by this bit. */
	bool marked = id & CAN_EFF_FLAG, extended;
	uint32_t bits = (uint32_t)id & ~CAN_EFF_FLAG;

	extended = json_is_boolean(said) ? json_is_true(said) : marked || bits > CAN_SFF_MASK;
	if (marked && !extended)
		config_fail(c, at, key, "0x%x has the mark of an extended identifier (bit 31), and can_extended is false",
			    (unsigned)id);
	else if (bits > CAN_EFF_MASK)
		config_fail(c, at, key, "0x%x has more than 29 bits", bits);
	else if (!extended && bits > CAN_SFF_MASK)
		config_fail(c, at, key, "0x%x has more than 11 bits, and can_extended is false", bits);
	else
		return extended ? bits | CAN_EFF_FLAG : bits;
	return UINT32_MAX;
}

/* ---- places ---- */

static int set_place(struct can_map *m, struct config *c, const json_t *at, const struct entry *e,
		     enum signal_type type, unsigned bytes_max)
{
	bool bitwise = is_given(at, "start_bit") || is_given(at, "bit_length");
	const char *key = bitwise ? "start_bit" : "can_offset";
	unsigned reach;

	m->big = e->byte_order == BIG;
	if (bitwise) {
		if (is_given(at, "can_size") || is_given(at, "can_offset"))
			return fail(c, at, key, "start_bit and bit_length say what can_size and can_offset do, which are there, too");
		if (!e->length && type != SIGNAL_BOOLEAN)
			return fail(c, at, "bit_length", "is required beside start_bit");
		m->length = e->length ? (unsigned)e->length : 1;
		m->start = (unsigned)e->start;
	} else {
		m->length = 8 * (unsigned)e->size;
		m->start = 8 * (unsigned)e->offset_bytes + (m->big ? 7 : 0);
	}
	reach = can_bits_reach(m->start, m->length, m->big);
	if (reach <= bytes_max)
		return 0;
	config_fail(c, at, key, "the value reaches to byte %u, and frames have %u%s", reach, bytes_max,
		    bytes_max == CAN_MAX_DLEN ? " without `fd`" : "");
	return -EINVAL;
}

/* ---- kinds ---- */

static int set_float(struct can_map *m, struct config *c, const json_t *at, const struct entry *e,
		     bool bitwise)
{
	bool real = is_given(at, "coding") ? e->coding == CODED_FLOAT : !bitwise;

	m->kind = real ? CAN_REAL : CAN_SCALED;
	if (!real)
		return 0;
	warn_unused(c, at, (const char *const[]){ "signed", NULL }, "a float");
	if (m->length == 32 || m->length == 64)
		return 0;
	return fail(c, at, bitwise ? "bit_length" : "can_size",
		    "a float has 4 or 8 bytes; an integer in its place needs coding = \"integer\"");
}

static int set_kind(struct can_map *m, struct config *c, const json_t *at, const struct entry *e,
		    enum signal_type type)
{
	static const char *const not_of_integers[] = { "coding", "factor", "offset", NULL };
	static const char *const not_of_others[] = { "coding", "factor", "offset", "signed", "min",
						     "max", NULL };
	bool bitwise = is_given(at, "start_bit") || is_given(at, "bit_length");

	m->is_signed = is_given(at, "signed") ? e->is_signed : !bitwise;
	switch (type) {
	case SIGNAL_FLOAT:
		return set_float(m, c, at, e, bitwise);
	case SIGNAL_INTEGER:
		m->kind = CAN_INTEGER;
		warn_unused(c, at, not_of_integers, "an integer");
		return 0;
	case SIGNAL_BOOLEAN:
		m->kind = CAN_BOOLEAN;
		warn_unused(c, at, not_of_others, "a boolean");
		return 0;
	case SIGNAL_COMPLEX:
		break;
	}
	m->kind = CAN_COMPLEX;
	warn_unused(c, at, not_of_others, "a complex value");
	return m->length == 64 && !bitwise ? 0 :
		fail(c, at, "can_size", "a complex value has 8 bytes, and no start_bit and bit_length");
}

static int set_limits(struct can_map *m, struct config *c, const json_t *at, const struct entry *e)
{
	m->factor = e->factor;
	m->offset = e->offset;
	m->min = is_given(at, "min") ? e->min : -INFINITY;
	m->max = is_given(at, "max") ? e->max : INFINITY;
	if (e->factor == 0)
		return fail(c, at, "factor", "0 leaves nothing of the value");
	return m->min > m->max ? fail(c, at, "min", "is greater than max") : 0;
}

/* A signal of a DBC file. Limits and the length may be others than those of the file. */
static int parse_named(struct can_map *m, struct config *c, const json_t *at, const struct entry *e,
		       const struct dbc *dbc, enum signal_type type, unsigned bytes_max)
{
	static const char *const twice[] = { "can_id", "can_extended", "can_size", "can_offset",
					     "start_bit", "bit_length", "byte_order", "signed",
					     "coding", "factor", "offset", NULL };

	for (const char *const *key = twice; *key; key++)
		if (is_given(at, *key))
			return fail(c, at, *key, "the DBC file says it for dbc_signal");
	if (can_map_from_dbc(m, c, at, dbc, e->dbc_signal, type))
		return -EINVAL;
	if (MAX(can_bits_reach(m->start, m->length, m->big), m->frame_length) > bytes_max)
		return fail(c, at, "dbc_signal", "its message has more bytes than frames have, which are 8 without `fd`");
	if (is_given(at, "min"))
		m->min = e->min;
	if (is_given(at, "max"))
		m->max = e->max;
	if (e->frame_length)
		m->frame_length = (unsigned)e->frame_length;
	return m->min > m->max ? fail(c, at, "min", "is greater than max") : 0;
}

static int parse_entry(struct can_map *m, struct config *c, const json_t *at,
		       const struct dbc *dbc, enum signal_type type, unsigned bytes_max, bool writes)
{
	struct entry e = { 0 };
	int ret;

	if (config_unpack_part(c, at, can_signal_keys, CAN_SIGNAL_KEYS, &e))
		return -EINVAL;
	if (e.dbc_signal)
		return parse_named(m, c, at, &e, dbc, type, bytes_max);
	if (!is_given(at, "can_id"))
		return fail(c, at, "can_id", dbc ? "is required, or dbc_signal" : "is required");
	m->id = can_id_parse(c, at, "can_id", e.id);
	ret = m->id == UINT32_MAX ? -EINVAL : 0;
	ret = set_place(m, c, at, &e, type, bytes_max) ?: ret;
	ret = set_limits(m, c, at, &e) ?: ret;
	if (!ret)
		ret = set_kind(m, c, at, &e, type);
	m->frame_length = (unsigned)e.frame_length;
	if (m->frame_length > bytes_max)
		ret = fail(c, at, "frame_length", "frames have 8 bytes at most without `fd`");
	if (!writes && is_given(at, "frame_length"))
		config_warn(c, at, "frame_length", "says nothing about what is received");
	return ret;
}

/* ---- a direction ---- */

static int make_messages(struct can_side *s, struct config *c, const json_t *at, bool fd,
			 bool writes)
{
	const struct can_map *m;

	s->message_count = can_messages_make(s->maps, s->count, fd, s->messages);
	m = writes ? can_find_overlap(s->maps, s->count) : NULL;
	if (!m)
		return 0;
	config_fail(c, at, "signals", "two signals share a bit of the frame 0x%x",
		    m->id & CAN_EFF_MASK);
	return -EINVAL;
}

int can_side_parse(struct can_side *s, struct config *c, const json_t *at,
		   const struct signal_list *l, const struct dbc *dbc, bool fd, bool writes)
{
	int count = l ? signal_entries(c, at,
				       "each signal needs its identifier: { type = \"float\"; can_id = 0x123; }") : 0;
	int ret = 0;

	if (count <= 0)
		return count;
	s->maps = calloc((unsigned)count, sizeof(*s->maps));
	s->messages = calloc((unsigned)count, sizeof(*s->messages));
	if (!s->maps || !s->messages)
		return -ENOMEM;
	s->count = (unsigned)count;
	for (unsigned i = 0; i < s->count; i++) {
		const json_t *e = signal_entry(at, i);

		s->maps[i].signal = i;
		ret = parse_entry(&s->maps[i], c, e, dbc, l->signals[i].type,
				  fd ? CANFD_MAX_DLEN : CAN_MAX_DLEN, writes) ?: ret;
	}
	return ret ?: make_messages(s, c, at, fd, writes);
}

void can_side_free(struct can_side *s)
{
	free(s->maps);
	free(s->messages);
	*s = (struct can_side){ 0 };
}
