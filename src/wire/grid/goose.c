/* SPDX-License-Identifier: BSD-2-Clause */
/* See goose.h. */
#include "wire/grid/goose.h"

#include <errno.h>
#include <string.h>

#include "wire/bytes.h"

enum tag {
	TAG_MESSAGE = 0x61,
	TAG_REFERENCE = 0x80,
	TAG_ALLOWED_LIVE = 0x81,
	TAG_DATASET = 0x82,
	TAG_ID = 0x83,
	TAG_TIME = 0x84,
	TAG_STATE = 0x85,
	TAG_SEQUENCE = 0x86,
	TAG_SIMULATION = 0x87,
	TAG_REVISION = 0x88,
	TAG_NEEDS_COMMISSIONING = 0x89,
	TAG_COUNT = 0x8a,
	TAG_VALUES = 0xab,
	TAG_SECURITY = 0x8c,
	TAG_SECURITY_ANY = 0xac, /* as ASN.1 encodes a value of any type */
};

/* The items stand in the order of their numbers. */
#define NUMBER(tag) ((tag) & 0x1f)
#define SEEN(tag) (1u << NUMBER(tag))
#define NEEDED (SEEN(TAG_REFERENCE) | SEEN(TAG_ALLOWED_LIVE) | SEEN(TAG_DATASET) | \
		SEEN(TAG_TIME) | SEEN(TAG_STATE) | SEEN(TAG_SEQUENCE) | SEEN(TAG_REVISION) | \
		SEEN(TAG_COUNT) | SEEN(TAG_VALUES))

/* Of a floating-point number: the width of its exponent stands in front. */
#define EXPONENT_SINGLE 8
#define EXPONENT_DOUBLE 11

static bool take_32(const struct ber *v, uint32_t *out)
{
	uint64_t value;

	if (!ber_unsigned(v, &value) || value > UINT32_MAX)
		return false;
	*out = (uint32_t)value;
	return true;
}

static bool take_bool(const struct ber *v, bool *out)
{
	if (v->len == 1)
		*out = *v->at;
	return v->len == 1;
}

static bool take_text(const struct ber *v, struct ber *out)
{
	*out = *v;
	return v->len && v->len <= GOOSE_REFERENCE_MAX;
}

/* False: it is not as long as its type. */
static bool take_item(struct goose *g, const struct ber_item *item)
{
	const struct ber *v = &item->value;

	switch (item->tag) {
	case TAG_REFERENCE:
		return take_text(v, &g->reference);
	case TAG_ALLOWED_LIVE:
		return take_32(v, &g->allowed_live_ms);
	case TAG_DATASET:
		return take_text(v, &g->dataset);
	case TAG_ID:
		g->id = *v;
		return v->len <= GOOSE_REFERENCE_MAX;
	case TAG_TIME:
		return utc_time_decode(v, &g->time);
	case TAG_STATE:
		return take_32(v, &g->state);
	case TAG_SEQUENCE:
		return take_32(v, &g->sequence);
	case TAG_SIMULATION:
		return take_bool(v, &g->simulation);
	case TAG_REVISION:
		return take_32(v, &g->revision);
	case TAG_NEEDS_COMMISSIONING:
		return take_bool(v, &g->needs_commissioning);
	case TAG_COUNT:
		return take_32(v, &g->count);
	case TAG_VALUES:
		g->values = *v;
		return true;
	case TAG_SECURITY:
	case TAG_SECURITY_ANY:
		g->secured = true;
		return true;
	default:
		return false;
	}
}

/* Counts values, all of whose members are whole; -EPROTO: one is not. */
static int check_values(struct ber values, unsigned depth)
{
	struct goose_value v;
	int ret, count = 0;

	while ((ret = goose_next(&values, &v)) > 0) {
		count++;
		if (v.type != GOOSE_ARRAY && v.type != GOOSE_STRUCTURE)
			continue;
		if (depth == GOOSE_DEPTH_MAX || check_values(v.members, depth + 1) < 0)
			return -EPROTO;
	}
	return ret ? ret : count;
}

const char *goose_decode(const struct ber *body, struct goose *g)
{
	struct ber rest = *body;
	struct ber_item message, item;
	unsigned seen = 0;
	int ret;

	if (ber_next(&rest, &message) != 1 || message.tag != TAG_MESSAGE)
		return "it is no message of GOOSE";
	if (rest.len)
		return "bytes are left behind the message";
	*g = (struct goose){ 0 };
	while ((ret = ber_next(&message.value, &item)) > 0) {
		if (NUMBER(item.tag) > NUMBER(TAG_SECURITY) || seen >= SEEN(item.tag) ||
		    !take_item(g, &item))
			return "an item is unknown, out of order or of a wrong length";
		seen |= SEEN(item.tag);
	}
	if (ret)
		return "an item is damaged";
	if ((seen & NEEDED) != NEEDED)
		return "an item is missing that each message has";
	ret = check_values(g->values, 1);
	if (ret < 0)
		return "a value of its data set is damaged, or has members of members too deeply";
	return (uint32_t)ret == g->count ? NULL : "numDatSetEntries is not the number of values";
}

/* ---- values ---- */

static bool take_bits(const struct ber *v, struct goose_value *out)
{
	unsigned unused = v->len ? *v->at : 8;

	if (unused > 7 || v->len > 9 || (v->len == 1 && unused))
		return false;
	out->bits = 8 * (unsigned)(v->len - 1) - unused;
	out->number = 0;
	for (size_t i = 1; i < v->len; i++)
		out->number = out->number << 8 | v->at[i];
	out->number >>= unused;
	return true;
}

static bool take_real(const struct ber *v, struct goose_value *out)
{
	uint32_t single;
	uint64_t bits;
	float f;

	if (v->len == 5 && *v->at == EXPONENT_SINGLE) {
		single = get_32(v->at + 1);
		memcpy(&f, &single, sizeof(f));
		out->real = f;
		out->bits = 32;
		return true;
	}
	if (v->len != 9 || *v->at != EXPONENT_DOUBLE)
		return false;
	bits = get_64(v->at + 1);
	memcpy(&out->real, &bits, sizeof(bits));
	out->bits = 64;
	return true;
}

static bool take_value(const struct ber_item *item, struct goose_value *v)
{
	v->type = item->tag;
	switch (v->type) {
	case GOOSE_BOOLEAN:
		return take_bool(&item->value, &v->boolean);
	case GOOSE_INTEGER:
		return ber_signed(&item->value, &v->integer);
	case GOOSE_UNSIGNED:
		return ber_unsigned(&item->value, &v->number);
	case GOOSE_BIT_STRING:
		return take_bits(&item->value, v);
	case GOOSE_FLOAT:
		return take_real(&item->value, v);
	case GOOSE_UTC_TIME:
		return utc_time_decode(&item->value, &v->time);
	case GOOSE_BINARY_TIME:
		v->bytes = item->value;
		return v->bytes.len == 4 || v->bytes.len == 6;
	case GOOSE_ARRAY:
	case GOOSE_STRUCTURE:
	case GOOSE_OCTET_STRING:
	case GOOSE_VISIBLE_STRING:
	case GOOSE_MMS_STRING:
		v->members = item->value;
		return true;
	}
	return false;
}

int goose_next(struct ber *values, struct goose_value *v)
{
	struct ber_item item;
	int ret = ber_next(values, &item);

	*v = (struct goose_value){ 0 };
	if (ret <= 0)
		return ret;
	return take_value(&item, v) ? 1 : -EPROTO;
}

static void put_real(struct ber_writer *w, const struct goose_value *v)
{
	uint8_t bytes[9];
	uint64_t bits;
	float f = (float)v->real;
	uint32_t single;

	if (v->bits == 64) {
		memcpy(&bits, &v->real, sizeof(bits));
		bytes[0] = EXPONENT_DOUBLE;
		put_64(bytes + 1, bits);
	} else {
		memcpy(&single, &f, sizeof(single));
		bytes[0] = EXPONENT_SINGLE;
		put_32(bytes + 1, single);
	}
	ber_item_bytes(w, GOOSE_FLOAT, bytes, v->bits == 64 ? 9 : 5);
}

static void put_bits(struct ber_writer *w, const struct goose_value *v)
{
	unsigned count = (v->bits + 7) / 8, unused = 8 * count - v->bits;
	uint64_t number = v->number << unused;
	uint8_t bytes[9] = { (uint8_t)unused };

	for (unsigned i = count; i; i--, number >>= 8)
		bytes[i] = (uint8_t)number;
	ber_item_bytes(w, GOOSE_BIT_STRING, bytes, 1 + count);
}

/* From the last one to the first one. */
static void put_values(struct ber_writer *w, const struct goose_value values[], unsigned count)
{
	uint8_t bytes[UTC_TIME_BYTES];

	for (const struct goose_value *v = values + count; v-- > values;) {
		size_t before = ber_written(w);

		switch (v->type) {
		case GOOSE_BOOLEAN:
			ber_item_bytes(w, v->type, &(uint8_t){ v->boolean ? 0xff : 0 }, 1);
			break;
		case GOOSE_INTEGER:
			ber_item_signed(w, v->type, v->integer);
			break;
		case GOOSE_UNSIGNED:
			ber_item_unsigned(w, v->type, v->number);
			break;
		case GOOSE_BIT_STRING:
			put_bits(w, v);
			break;
		case GOOSE_FLOAT:
			put_real(w, v);
			break;
		case GOOSE_UTC_TIME:
			utc_time_encode(&v->time, bytes);
			ber_item_bytes(w, v->type, bytes, sizeof(bytes));
			break;
		case GOOSE_ARRAY:
		case GOOSE_STRUCTURE:
			put_values(w, v->parts, v->part_count);
			ber_wrap(w, v->type, before);
			break;
		default:
			ber_item_bytes(w, v->type, v->bytes.at, v->bytes.len);
		}
	}
}

static void put_bool(struct ber_writer *w, uint8_t tag, bool value)
{
	ber_item_bytes(w, tag, &(uint8_t){ value ? 0xff : 0 }, 1);
}

static void put_body(struct ber_writer *w, const struct goose *g, const struct goose_value values[],
		     unsigned count)
{
	uint8_t time[UTC_TIME_BYTES];

	put_values(w, values, count);
	ber_wrap(w, TAG_VALUES, 0);
	ber_item_unsigned(w, TAG_COUNT, count);
	put_bool(w, TAG_NEEDS_COMMISSIONING, g->needs_commissioning);
	ber_item_unsigned(w, TAG_REVISION, g->revision);
	put_bool(w, TAG_SIMULATION, g->simulation);
	ber_item_unsigned(w, TAG_SEQUENCE, g->sequence);
	ber_item_unsigned(w, TAG_STATE, g->state);
	utc_time_encode(&g->time, time);
	ber_item_bytes(w, TAG_TIME, time, UTC_TIME_BYTES);
	if (g->id.len)
		ber_item_bytes(w, TAG_ID, g->id.at, g->id.len);
	ber_item_bytes(w, TAG_DATASET, g->dataset.at, g->dataset.len);
	ber_item_unsigned(w, TAG_ALLOWED_LIVE, g->allowed_live_ms);
	ber_item_bytes(w, TAG_REFERENCE, g->reference.at, g->reference.len);
	ber_wrap(w, TAG_MESSAGE, 0);
}

uint8_t *goose_encode_body(const struct goose *g, const struct goose_value values[], unsigned count,
			   uint8_t *buffer, size_t size, size_t *len)
{
	struct ber_writer w;

	ber_begin(&w, buffer, size);
	put_body(&w, g, values, count);
	*len = ber_written(&w);
	return w.full || *len > UINT16_MAX ? NULL : w.at;
}

uint8_t *goose_encode(const struct apdu *head, const struct goose *g,
		      const struct goose_value values[], unsigned count, uint8_t *buffer,
		      size_t size, size_t *len)
{
	uint8_t bytes[APDU_HEADER];
	struct ber_writer w;

	ber_begin(&w, buffer, size);
	put_body(&w, g, values, count);
	if (ber_written(&w) + APDU_HEADER > UINT16_MAX)
		return NULL;
	apdu_encode(head, ber_written(&w), bytes);
	ber_bytes(&w, bytes, sizeof(bytes));
	*len = ber_written(&w);
	return w.full ? NULL : w.at;
}
