/* SPDX-License-Identifier: BSD-2-Clause */
#include "ripc/wire/packet_code.h"

#include <errno.h>
#include <string.h>

/*
 * The first half of the key that hashes is the secret itself, so without it nothing is
 * known of the derived key; the text keeps this use apart from every other one of the same
 * secret.
 */
void packet_key_make(struct packet_key *key, const void *secret, size_t bytes)
{
	static const char use[16] = "ripc packets 1";
	uint8_t begin[16] = { 0 }, text[sizeof(use) + 64];
	const size_t taken = bytes < 64 ? bytes : 64;

	*key = (struct packet_key){ .set = bytes > 0 };
	if (!bytes)
		return;
	memcpy(begin, secret, taken < sizeof(begin) ? taken : sizeof(begin));
	memcpy(text, use, sizeof(use));
	memcpy(text + sizeof(use), secret, taken);
	siphash(begin, text, sizeof(use) + taken, key->bytes);
	explicit_bzero(begin, sizeof(begin));
	explicit_bzero(text, sizeof(text));
}

void packet_code_put(const struct packet_key *key, uint8_t *at, size_t length)
{
	if (key->set)
		siphash(key->bytes, at - length, length, at);
}

int packet_code_check(const struct packet_key *key, bool there, const uint8_t *bytes,
		      size_t length)
{
	uint8_t wanted[SIPHASH_BYTES];
	unsigned differs = 0;

	if (there != key->set)
		return -EKEYREJECTED;
	if (!there)
		return 0;
	siphash(key->bytes, bytes, length, wanted);
	/* As long for every wrong code: the time tells nothing of the right one. */
	for (size_t i = 0; i < sizeof(wanted); i++)
		differs |= wanted[i] ^ bytes[length + i];
	return differs ? -EKEYREJECTED : 0;
}
