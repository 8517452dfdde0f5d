/* SPDX-License-Identifier: BSD-2-Clause */
/* Structures to bytes and back by tables; see fields.h. */
#include "wire/fields.h"

#include <string.h>

static uint64_t get_be(const uint8_t *at, unsigned bytes)
{
	uint64_t value = 0;

	for (unsigned i = 0; i < bytes; i++)
		value = value << 8 | at[i];
	return value;
}

static void put_be(uint8_t *at, uint64_t value, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		at[i] = (uint8_t)(value >> (8 * (bytes - 1 - i)));
}

static uint64_t mask_of(unsigned width)
{
	return width == 64 ? UINT64_MAX : (UINT64_C(1) << width) - 1;
}

/* The `width` bits from bit `bit` on: all bytes that they touch are read and written. */
static void put_bits(uint8_t *at, unsigned bit, unsigned width, uint64_t value)
{
	unsigned bytes = (bit % 8 + width + 7) / 8;
	unsigned shift = bytes * 8 - bit % 8 - width;
	uint64_t mask = mask_of(width), word;

	at += bit / 8;
	word = get_be(at, bytes);
	put_be(at, (word & ~(mask << shift)) | (value & mask) << shift, bytes);
}

uint64_t wire_get_bits(const uint8_t *from, unsigned bit, unsigned width)
{
	unsigned bytes = (bit % 8 + width + 7) / 8;

	return get_be(from + bit / 8, bytes) >> (bytes * 8 - bit % 8 - width) & mask_of(width);
}

static uint64_t host_load(const char *at, unsigned size)
{
	uint16_t v16;
	uint32_t v32;
	uint64_t v64;

	switch (size) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		memcpy(&v16, at, sizeof(v16));
		return v16;
	case 4:
		memcpy(&v32, at, sizeof(v32));
		return v32;
	default:
		memcpy(&v64, at, sizeof(v64));
		return v64;
	}
}

static void host_store(char *at, unsigned size, uint64_t value)
{
	uint16_t v16 = (uint16_t)value;
	uint32_t v32 = (uint32_t)value;

	switch (size) {
	case 1:
		*(uint8_t *)at = (uint8_t)value;
		break;
	case 2:
		memcpy(at, &v16, sizeof(v16));
		break;
	case 4:
		memcpy(at, &v32, sizeof(v32));
		break;
	default:
		memcpy(at, &value, sizeof(value));
		break;
	}
}

static bool pack_element(const struct wire_field *f, const char *host, uint8_t *to, unsigned bit)
{
	uint64_t value;

	if (f->inner)
		return wire_pack_fields(f->inner, host, to + bit / 8);
	if (f->bytes) {
		memcpy(to + bit / 8, host, f->size);
		return true;
	}
	value = host_load(host, f->size);
	put_bits(to, bit, f->width, value);
	return !(value & ~mask_of(f->width));
}

bool wire_pack_fields(const struct wire_layout *layout, const void *from, uint8_t *to)
{
	bool fits = true;

	for (unsigned i = 0; i < layout->count; i++) {
		const struct wire_field *f = &layout->fields[i];

		if (!f->name)
			continue;
		for (unsigned n = 0; n < f->count; n++)
			fits &= pack_element(f, (const char *)from + f->host + n * f->size, to,
					     f->bit + n * f->stride);
	}
	return fits;
}

bool wire_pack(const struct wire_layout *layout, const void *from, uint8_t *to)
{
	memset(to, 0, layout->bytes);
	return wire_pack_fields(layout, from, to);
}

static void unpack_fields(const struct wire_layout *layout, const uint8_t *from, char *to)
{
	for (unsigned i = 0; i < layout->count; i++) {
		const struct wire_field *f = &layout->fields[i];

		for (unsigned n = 0; f->name && n < f->count; n++) {
			char *host = to + f->host + n * f->size;
			unsigned bit = f->bit + n * f->stride;

			if (f->inner)
				unpack_fields(f->inner, from + bit / 8, host);
			else if (f->bytes)
				memcpy(host, from + bit / 8, f->size);
			else
				host_store(host, f->size, wire_get_bits(from, bit, f->width));
		}
	}
}

void wire_unpack(const struct wire_layout *layout, const uint8_t *from, void *to)
{
	memset(to, 0, layout->size);
	unpack_fields(layout, from, to);
}
