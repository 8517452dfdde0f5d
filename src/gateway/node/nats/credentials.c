/* SPDX-License-Identifier: BSD-2-Clause */
/* See credentials.h. */
#include "gateway/node/nats/credentials.h"

#include <string.h>

/* A seed: two bytes of prefixes (a seed, of a user), the key, a check sum. */
#define SEED_BYTES 36
#define SEED_PREFIX (18u << 3)
#define SEED_CHARS 58

/* The line behind "-----BEGIN NAME-----", of which the end is cut off; NULL: none. */
static char *find_block(char *text, const char *name)
{
	char *at = strstr(text, name);

	at = at ? strchr(at, '\n') : NULL;
	if (!at)
		return NULL;
	at += strspn(at, " \t\r\n");
	at[strcspn(at, " \t\r\n")] = 0;
	return at;
}

/* Base 32 (RFC 4648) without padding. */
static int decode(const char *text, uint8_t out[SEED_BYTES])
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
	uint32_t bits = 0;
	unsigned count = 0, at = 0;

	if (strlen(text) != SEED_CHARS)
		return -1;
	for (; *text; text++) {
		const char *p = strchr(alphabet, *text);

		if (!p)
			return -1;
		bits = bits << 5 | (uint32_t)(p - alphabet);
		count += 5;
		if (count < 8)
			continue;
		count -= 8;
		out[at++] = (uint8_t)(bits >> count);
	}
	return 0;
}

/* CRC-16 of XMODEM. */
static unsigned check_sum(const uint8_t *data, size_t len)
{
	unsigned crc = 0;

	for (size_t i = 0; i < len; i++) {
		crc ^= (unsigned)data[i] << 8;
		for (unsigned k = 0; k < 8; k++)
			crc = (crc << 1 ^ (crc & 0x8000 ? 0x1021 : 0)) & 0xffff;
	}
	return crc;
}

const char *nats_credentials_read(struct nats_credentials *c, char *text)
{
	/* It stands behind the JWT, and ends the text. */
	const char *seed = find_block(text, "BEGIN USER NKEY SEED");
	uint8_t bytes[SEED_BYTES] = { 0 };
	const char *why = NULL;

	if (!seed)
		return "has no seed of a user";
	if (decode(seed, bytes) || (bytes[0] & 0xf8) != SEED_PREFIX ||
	    check_sum(bytes, SEED_BYTES - 2) != (bytes[SEED_BYTES - 2] |
						 (unsigned)bytes[SEED_BYTES - 1] << 8))
		why = "has a seed that is none";
	memcpy(c->seed, bytes + 2, sizeof(c->seed));
	explicit_bzero(bytes, sizeof(bytes));
	c->jwt = find_block(text, "BEGIN NATS USER JWT");
	return why ? why : !c->jwt || !*c->jwt ? "has no JWT of a user" : NULL;
}

void nats_signature_print(const uint8_t signature[TLS_KEY_SIGNATURE_BYTES],
			  char out[NATS_SIGNATURE_SIZE])
{
	static const char alphabet[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	uint32_t bits = 0;
	unsigned count = 0;

	for (unsigned i = 0; i < TLS_KEY_SIGNATURE_BYTES; i++) {
		bits = bits << 8 | signature[i];
		for (count += 8; count >= 6; count -= 6)
			*out++ = alphabet[bits >> (count - 6) & 63];
	}
	*out++ = alphabet[bits << (6 - count) & 63];
	*out = 0;
}
