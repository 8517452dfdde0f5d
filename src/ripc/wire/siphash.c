/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/wire/siphash.h"

struct state {
	uint64_t v[4];
};

/* Words and codes are little endian, whatever the machine is. */
static uint64_t word(const uint8_t *bytes, size_t count)
{
	uint64_t w = 0;

	for (size_t i = 0; i < count; i++)
		w |= (uint64_t)bytes[i] << (8 * i);
	return w;
}

static void put(uint8_t *out, uint64_t w)
{
	for (unsigned i = 0; i < 8; i++)
		out[i] = (uint8_t)(w >> (8 * i));
}

static uint64_t turn(uint64_t w, unsigned bits)
{
	return w << bits | w >> (64 - bits);
}

static void rounds(struct state *s, unsigned count)
{
	uint64_t *v = s->v;

	while (count--) {
		v[0] += v[1];
		v[1] = turn(v[1], 13) ^ v[0];
		v[0] = turn(v[0], 32);
		v[2] += v[3];
		v[3] = turn(v[3], 16) ^ v[2];
		v[0] += v[3];
		v[3] = turn(v[3], 21) ^ v[0];
		v[2] += v[1];
		v[1] = turn(v[1], 17) ^ v[2];
		v[2] = turn(v[2], 32);
	}
}

static void take(struct state *s, uint64_t w)
{
	s->v[3] ^= w;
	rounds(s, 2);
	s->v[0] ^= w;
}

static uint64_t folded(const struct state *s)
{
	return s->v[0] ^ s->v[1] ^ s->v[2] ^ s->v[3];
}

void siphash(const uint8_t key[16], const uint8_t *bytes, size_t length,
	     uint8_t out[SIPHASH_BYTES])
{
	const uint64_t k0 = word(key, 8), k1 = word(key + 8, 8);
	const size_t whole = length & ~(size_t)7;
	/* The constants are the text "somepseudorandomlygeneratedbytes"; 0xee and 0xdd
	 * set the long output apart from the short one. */
	struct state s = { {
		k0 ^ UINT64_C(0x736f6d6570736575),
		k1 ^ UINT64_C(0x646f72616e646f6d) ^ 0xee,
		k0 ^ UINT64_C(0x6c7967656e657261),
		k1 ^ UINT64_C(0x7465646279746573),
	} };

	for (size_t at = 0; at < whole; at += 8)
		take(&s, word(bytes + at, 8));
	take(&s, word(bytes + whole, length - whole) | (uint64_t)length << 56);
	s.v[2] ^= 0xee;
	rounds(&s, 4);
	put(out, folded(&s));
	s.v[1] ^= 0xdd;
	rounds(&s, 4);
	put(out + 8, folded(&s));
}
