/* SPDX-License-Identifier: BSD-2-Clause */
/* Integers in the order of the network. */
#ifndef WIRE_BYTES_H
#define WIRE_BYTES_H

#include <stdint.h>

static inline uint8_t *put_16(uint8_t *to, uint16_t v)
{
	to[0] = (uint8_t)(v >> 8);
	to[1] = (uint8_t)v;
	return to + 2;
}

static inline uint8_t *put_32(uint8_t *to, uint32_t v)
{
	return put_16(put_16(to, (uint16_t)(v >> 16)), (uint16_t)v);
}

static inline uint8_t *put_64(uint8_t *to, uint64_t v)
{
	return put_32(put_32(to, (uint32_t)(v >> 32)), (uint32_t)v);
}

static inline uint16_t get_16(const uint8_t *from)
{
	return (uint16_t)(from[0] << 8 | from[1]);
}

static inline uint32_t get_32(const uint8_t *from)
{
	return (uint32_t)get_16(from) << 16 | get_16(from + 2);
}

static inline uint64_t get_64(const uint8_t *from)
{
	return (uint64_t)get_32(from) << 32 | get_32(from + 4);
}

#endif
