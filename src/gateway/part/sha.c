/* SPDX-License-Identifier: BSD-2-Clause */
/* See sha.h. Numbers of sections and names of variables are those of FIPS 180-4. */
#include "gateway/part/sha.h"

#include <string.h>

#define BLOCK 64

static uint32_t load(const uint8_t *at)
{
	return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store(uint8_t *at, uint32_t value)
{
	for (unsigned i = 0; i < 4; i++)
		at[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t rotate_left(uint32_t x, unsigned by)
{
	return x << by | x >> (32 - by);
}

static uint32_t rotate_right(uint32_t x, unsigned by)
{
	return x >> by | x << (32 - by);
}

typedef void take_block(uint32_t *state, const uint8_t *block);

/* All blocks of the text and of what is behind it: a bit that is set, zeros, its length in bits
 * (5.1.1). `words` of the state are the result. */
static void digest(uint32_t *state, unsigned words, take_block *take, const void *data, size_t len,
		   uint8_t *out)
{
	uint8_t last[2 * BLOCK] = { 0 };
	uint64_t bits = (uint64_t)len * 8;
	const uint8_t *p = data;
	size_t left = len, end;

	for (; left >= BLOCK; left -= BLOCK, p += BLOCK)
		take(state, p);
	if (left)
		memcpy(last, p, left);
	last[left] = 0x80;
	end = left + 9 > BLOCK ? 2 * BLOCK : BLOCK;
	store(last + end - 8, (uint32_t)(bits >> 32));
	store(last + end - 4, (uint32_t)bits);
	for (size_t i = 0; i < end; i += BLOCK)
		take(state, last + i);
	for (unsigned i = 0; i < words; i++)
		store(out + 4 * i, state[i]);
}

/* ---- SHA-1 (6.1.2) ---- */

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

static void take_sha1(uint32_t *state, const uint8_t *block)
{
	uint32_t w[80], a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];

	for (unsigned t = 0; t < 16; t++)
		w[t] = load(block + 4 * t);
	for (unsigned t = 16; t < 80; t++)
		w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
	for (unsigned t = 0; t < 80; t++) {
		uint32_t sum = rotate_left(a, 5) + mix(t, b, c, d) + e + w[t];

		e = d;
		d = c;
		c = rotate_left(b, 30);
		b = a;
		a = sum;
	}
	state[0] += a;
	state[1] += b;
	state[2] += c;
	state[3] += d;
	state[4] += e;
}

void sha1(const void *data, size_t len, uint8_t out[SHA1_BYTES])
{
	uint32_t state[5] = { 0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0 };

	digest(state, 5, take_sha1, data, len, out);
}

/* ---- SHA-256 (6.2.2) ---- */

/* The first bits of the roots of primes (4.2.2). */
static const uint32_t k[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
	0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
	0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
	0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
	0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
	0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
	0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
	0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
	0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
	0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void expand(uint32_t w[64], const uint8_t *block)
{
	for (unsigned i = 0; i < 16; i++)
		w[i] = load(block + 4 * i);
	for (unsigned i = 16; i < 64; i++) {
		uint32_t a = w[i - 15], b = w[i - 2];

		w[i] = w[i - 16] + w[i - 7] +
		       (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) +
		       (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
	}
}

static void take_sha256(uint32_t *state, const uint8_t *block)
{
	uint32_t w[64], s[8];

	expand(w, block);
	memcpy(s, state, sizeof(s));
	for (unsigned i = 0; i < 64; i++) {
		uint32_t e = s[4], a = s[0];
		uint32_t t1 = s[7] + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
			      ((e & s[5]) ^ (~e & s[6])) + k[i] + w[i];
		uint32_t t2 = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
			      ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));

		memmove(s + 1, s, 7 * sizeof(*s));
		s[4] += t1;
		s[0] = t1 + t2;
	}
	for (unsigned i = 0; i < 8; i++)
		state[i] += s[i];
}

void sha256(const void *data, size_t len, uint8_t out[SHA256_BYTES])
{
	uint32_t state[8] = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19 };

	digest(state, 8, take_sha256, data, len, out);
}
