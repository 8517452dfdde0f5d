/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private data of connections, always 52 bytes:
 *
 *	magic 4, version 1, flags 1, credits 2, message_bytes 4, instance 8, to 8, nonce 8,
 *	code 16 (zero without a secret)
 *
 * A request that was recorded and is sent once more is accepted, but the nonce of the acceptance
 * is another one, and so is the proof that has to follow. An acceptance that was recorded
 * answers another nonce.
 */
#include <assert.h>

#include "ripc/wire/packet_bytes.h"
#include "ripc/wire/packet_code.h"

#define FIXED_BYTES 36
#define COVERED_BYTES (FIXED_BYTES + 8)

static_assert(FIXED_BYTES + SIPHASH_BYTES == PACKET_CONNECT_BYTES, "fields and code");

/* The fields in front of the code, and what they answer. */
static void covered(const uint8_t *fixed, uint64_t answers, uint8_t out[COVERED_BYTES])
{
	memcpy(out, fixed, FIXED_BYTES);
	put64(out + FIXED_BYTES, answers);
}

void packet_connect_encode(const struct packet_connect *p, const struct packet_key *key,
			   uint64_t answers, uint8_t out[PACKET_CONNECT_BYTES])
{
	uint8_t text[COVERED_BYTES + SIPHASH_BYTES] = { 0 }, *at = out;

	at = put32(at, PACKET_MAGIC_CONNECT);
	at = put8(at, PACKET_VERSION);
	at = put8(at, key->set ? PACKET_HAS_CODE : 0);
	at = put16(at, p->credits);
	at = put32(at, p->message_bytes);
	at = put64(at, p->instance);
	at = put64(at, p->to);
	at = put64(at, p->nonce);
	assert(at == out + FIXED_BYTES);
	covered(out, answers, text);
	packet_code_put(key, text + COVERED_BYTES, COVERED_BYTES);
	memcpy(at, text + COVERED_BYTES, SIPHASH_BYTES);
}

int packet_connect_decode(struct packet_connect *p, const struct packet_key *key,
			  uint64_t answers, const uint8_t *bytes, size_t length)
{
	uint8_t text[COVERED_BYTES + SIPHASH_BYTES];
	int ret = packet_begins(PACKET_MAGIC_CONNECT, bytes, length);
	const uint8_t *at = bytes + 6;
	struct packet_connect got;

	if (ret)
		return ret;
	if (length < PACKET_CONNECT_BYTES || (bytes[5] & ~PACKET_HAS_CODE))
		return -EBADMSG;
	covered(bytes, answers, text);
	memcpy(text + COVERED_BYTES, bytes + FIXED_BYTES, SIPHASH_BYTES);
	ret = packet_code_check(key, bytes[5] & PACKET_HAS_CODE, text, COVERED_BYTES);
	if (ret)
		return ret;
	at = get16(at, &got.credits);
	at = get32(at, &got.message_bytes);
	at = get64(at, &got.instance);
	at = get64(at, &got.to);
	get64(at, &got.nonce);
	if (!got.instance)
		return -EBADMSG;
	*p = got;
	return 0;
}

uint64_t packet_connect_proof(const struct packet_connect *request,
			      const struct packet_connect *acceptance,
			      const struct packet_key *key)
{
	uint8_t text[6 * 8 + SIPHASH_BYTES] = "ripc hello", *at = text + 16;
	uint64_t proof = 1;

	at = put64(at, request->instance);
	at = put64(at, request->nonce);
	at = put64(at, acceptance->instance);
	at = put64(at, acceptance->nonce);
	if (!key->set)
		return proof;
	packet_code_put(key, at, (size_t)(at - text));
	get64(at, &proof);
	return proof ? proof : 1;
}
