/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/find/limit.h"

#include <string.h>

#include "ripc/wire/siphash.h"

#define NS_PER_ANSWER (UINT64_C(1000000000) / LIMIT_RATE)

void limit_init(struct limit *l, const uint8_t key[16])
{
	*l = (struct limit){ .place[0].left = 0 };
	memcpy(l->key, key, sizeof(l->key));
}

bool limit_take(struct limit *l, const union address *source, uint64_t now_ns)
{
	uint8_t bytes[16], hash[SIPHASH_BYTES];
	uint64_t more;

	address_to_bytes(source, bytes);
	siphash(l->key, bytes, sizeof(bytes), hash);
	typeof(&l->place[0]) p = &l->place[hash[0] % LIMIT_PLACES];
	if (!p->used) {
		p->used = true;
		p->at_ns = now_ns;
		p->left = LIMIT_BURST;
	}
	more = (now_ns - p->at_ns) / NS_PER_ANSWER;
	if (more) {
		p->left = more < LIMIT_BURST - p->left ? p->left + (uint32_t)more : LIMIT_BURST;
		p->at_ns += more * NS_PER_ANSWER;
	}
	if (!p->left)
		return false;
	p->left--;
	return true;
}
