/* SPDX-License-Identifier: BSD-2-Clause */
/* See sha1.h; the names of variables are those of FIPS 180-4, 6.1.2. */
#include "gateway/part/websocket/sha1.h"

#include <string.h>

#define BLOCK 64

static uint32_t rotate(uint32_t x, unsigned by)
{
	return x << by | x >> (32 - by);
}

static uint32_t mix(unsigned t, uint32_t b, uint32_t c, uint32_t d)
{
	switch (t / 20) {
	case 0:
		return ((b & c) ^ (~b & d)) + 0x5a827999;
	case 1:
		return (b ^ c ^ d) + 0x6ed9eba1;
	case 2:
		return ((b & c) ^ (b & d) ^ (c & d)) + 0x8f1bbcdc;
	default:
		return (b ^ c ^ d) + 0xca62c1d6;
	}
}

static void take_block(uint32_t state[5], const uint8_t *block)
{
	uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

	for (unsigned t = 0; t < 16; t++)
		w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
		       (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
	for (unsigned t = 16; t < 80; t++)
		w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (unsigned t = 0; t < 80; t++) {
		uint32_t sum = rotate(a, 5) + mix(t, b, c, d) + e + w[t];

		e = d;
		d = c;
		c = rotate(b, 30);
		b = a;
		a = sum;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

void sha1(const void *data, size_t len, uint8_t digest[SHA1_BYTES])
{
	uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };
	uint8_t last[2 * BLOCK] = { 0 };
	uint64_t bits = (uint64_t)len * 8;
	const uint8_t *p = data;
	size_t left = len, end;

	for (; left >= BLOCK; left -= BLOCK, p += BLOCK)
		take_block(state, p);
	if (left)
		memcpy(last, p, left);
	last[left] = 0x80;
	end = left + 9 > BLOCK ? 2 * BLOCK : BLOCK;
	for (unsigned i = 0; i < 8; i++)
		last[end - 1 - i] = (uint8_t)(bits >> (8 * i));
	for (size_t i = 0; i < end; i += BLOCK)
		take_block(state, last + i);
	for (unsigned i = 0; i < SHA1_BYTES; i++)
		digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
}
