/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Private data of connections, always 52 bytes:
 *
 *	magic 4, version 1, flags 1, credits 2, message_bytes 4, instance 8, to 8, zero 8,
 *	code 16 (zero without a secret)
 */
#include <assert.h>

#include "ripc/wire/packet_bytes.h"
#include "ripc/wire/packet_code.h"

#define FIXED_BYTES 36

static_assert(FIXED_BYTES + SIPHASH_BYTES == PACKET_CONNECT_BYTES, "fields and code");

void packet_connect_encode(const struct packet_connect *p, const struct packet_key *key,
			   uint8_t out[PACKET_CONNECT_BYTES])
{
	uint8_t *at = out;

	at = put32(at, PACKET_MAGIC_CONNECT);
	at = put8(at, PACKET_VERSION);
	at = put8(at, key->set ? PACKET_HAS_CODE : 0);
	at = put16(at, p->credits);
	at = put32(at, p->message_bytes);
	at = put64(at, p->instance);
	at = put64(at, p->to);
	at = put64(at, 0);
	assert(at == out + FIXED_BYTES);
	memset(at, 0, SIPHASH_BYTES);
	packet_code_put(key, at, FIXED_BYTES);
}

int packet_connect_decode(struct packet_connect *p, const struct packet_key *key,
			  const uint8_t *bytes, size_t length)
{
	int ret = packet_begins(PACKET_MAGIC_CONNECT, bytes, length);
	const uint8_t *at = bytes + 6;
	struct packet_connect got;
	uint64_t zero;

	if (ret)
		return ret;
	if (length < PACKET_CONNECT_BYTES || (bytes[5] & ~PACKET_HAS_CODE))
		return -EBADMSG;
	ret = packet_code_check(key, bytes[5] & PACKET_HAS_CODE, bytes, FIXED_BYTES);
	if (ret)
		return ret;
	at = get16(at, &got.credits);
	at = get32(at, &got.message_bytes);
	at = get64(at, &got.instance);
	at = get64(at, &got.to);
	get64(at, &zero);
	if (!got.instance || zero)
		return -EBADMSG;
	*p = got;
	return 0;
}
