/* SPDX-License-Identifier: BSD-2-Clause */
/* See ber.h. */
#include "wire/grid/ber.h"

#include <errno.h>
#include <string.h>

#define MORE_TAG 0x1f   /* the number of the tag is in the bytes behind */
#define LONG_LENGTH 0x80 /* the length is in so many bytes behind */

/* The length in front of b->at; false: there is none. */
static bool take_length(struct ber *b, size_t *len)
{
	unsigned count;

	if (!b->len)
		return false;
	count = *b->at++;
	b->len--;
	*len = count;
	if (count < LONG_LENGTH)
		return true;
	count -= LONG_LENGTH;
	if (!count || count > b->len)
		return false;
	*len = 0;
	for (; count; count--) {
		if (*len > SIZE_MAX >> 8)
			return false;
		*len = *len << 8 | *b->at++;
		b->len--;
	}
	return true;
}

int ber_next(struct ber *b, struct ber_item *item)
{
	struct ber rest = *b;
	size_t len;

	if (!rest.len)
		return 0;
	item->tag = *rest.at++;
	rest.len--;
	if ((item->tag & MORE_TAG) == MORE_TAG || !take_length(&rest, &len) || len > rest.len)
		return -EPROTO;
	item->value = (struct ber){ rest.at, len };
	*b = (struct ber){ rest.at + len, rest.len - len };
	return 1;
}

bool ber_unsigned(const struct ber *value, uint64_t *out)
{
	struct ber v = *value;

	if (v.len == sizeof(*out) + 1 && !*v.at) {
		v.at++;
		v.len--;
	}
	if (!v.len || v.len > sizeof(*out))
		return false;
	for (*out = 0; v.len; v.len--)
		*out = *out << 8 | *v.at++;
	return true;
}

bool ber_signed(const struct ber *value, int64_t *out)
{
	uint64_t bits;

	if (!value->len || value->len > sizeof(bits))
		return false;
	bits = *value->at & 0x80 ? UINT64_MAX : 0;
	for (size_t i = 0; i < value->len; i++)
		bits = bits << 8 | value->at[i];
	*out = (int64_t)bits;
	return true;
}

void ber_begin(struct ber_writer *w, void *buffer, size_t size)
{
	w->begin = buffer;
	w->at = w->end = w->begin + size;
	w->full = false;
}

void ber_bytes(struct ber_writer *w, const void *data, size_t len)
{
	if (w->full || (size_t)(w->at - w->begin) < len) {
		w->full = true;
		return;
	}
	w->at -= len;
	if (len)
		memcpy(w->at, data, len);
}

static void put_byte(struct ber_writer *w, unsigned byte)
{
	ber_bytes(w, &(uint8_t){ (uint8_t)byte }, 1);
}

void ber_wrap(struct ber_writer *w, uint8_t tag, size_t before)
{
	size_t len = ber_written(w) - before;
	unsigned count = 0;

	if (len < LONG_LENGTH) {
		put_byte(w, (unsigned)len);
	} else {
		for (; len; len >>= 8, count++)
			put_byte(w, len & 0xff);
		put_byte(w, LONG_LENGTH | count);
	}
	put_byte(w, tag);
}

void ber_item_bytes(struct ber_writer *w, uint8_t tag, const void *data, size_t len)
{
	size_t before = ber_written(w);

	ber_bytes(w, data, len);
	ber_wrap(w, tag, before);
}

void ber_item_signed(struct ber_writer *w, uint8_t tag, int64_t value)
{
	size_t before = ber_written(w);
	uint8_t byte;

	/* Until the rest says no more than the sign of the last byte. */
	do {
		byte = (uint8_t)value;
		put_byte(w, byte);
		value >>= 8;
	} while (value != (byte & 0x80 ? -1 : 0));
	ber_wrap(w, tag, before);
}

void ber_item_unsigned(struct ber_writer *w, uint8_t tag, uint64_t value)
{
	size_t before = ber_written(w);
	uint8_t byte;

	do {
		byte = (uint8_t)value;
		put_byte(w, byte);
		value >>= 8;
	} while (value || byte & 0x80);
	ber_wrap(w, tag, before);
}
