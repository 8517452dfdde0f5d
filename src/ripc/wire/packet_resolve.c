/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets of the resolver: 76 bytes, then the name without a NUL, then the code.
 *
 *	magic 4, version 1, type 1, flags 1, length of the name 1, nonce 8, from 4, id 4,
 *	lifetime_s 2, port 2, instance 8, address 16, ud_qpn 4, ud_qkey 4, ud_gid 16
 */
#include <assert.h>

#include "ripc/wire/packet_bytes.h"
#include "ripc/wire/packet_code.h"

#define FIXED_BYTES 76

static_assert(FIXED_BYTES + RIPC_NAME_MAX + SIPHASH_BYTES <= PACKET_RESOLVE_BYTES_MAX,
	      "room for the longest name");

/* Length of the sequence of UTF-8 at `s` with its code point; 0: not one. */
static size_t utf8_one(const uint8_t *s, size_t left, uint32_t *point)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t count = s[0] < 0x80 ? 1 : s[0] < 0xc0 ? 0 : s[0] < 0xe0 ? 2 :
		       s[0] < 0xf0 ? 3 : s[0] < 0xf8 ? 4 : 0;

	if (!count || count > left)
		return 0;
	*point = count == 1 ? s[0] : s[0] & (0x7fU >> count);
	for (size_t i = 1; i < count; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*point = *point << 6 | (s[i] & 0x3f);
	}
	return *point < least[count] || *point > 0x10ffff ||
	       (*point >= 0xd800 && *point <= 0xdfff) ? 0 : count;
}

bool packet_name_valid(const char *name, size_t bytes)
{
	const uint8_t *s = (const uint8_t *)name;
	uint32_t point;

	if (!bytes || bytes > RIPC_NAME_MAX)
		return false;
	for (size_t at = 0, n; at < bytes; at += n) {
		n = utf8_one(s + at, bytes - at, &point);
		if (!n || point < 0x20 || (point >= 0x7f && point < 0xa0))
			return false;
	}
	return true;
}

size_t packet_resolve_encode(const struct packet_resolve *p, const struct packet_key *key,
			     uint8_t *out)
{
	const size_t name = strnlen(p->name, RIPC_NAME_MAX);
	uint8_t *at = out;

	at = put32(at, PACKET_MAGIC_RESOLVE);
	at = put8(at, PACKET_VERSION);
	at = put8(at, p->type);
	at = put8(at, key->set ? PACKET_HAS_CODE : 0);
	at = put8(at, (uint8_t)name);
	at = put64(at, p->nonce);
	at = put32(at, p->from);
	at = put32(at, p->id);
	at = put16(at, p->lifetime_s);
	at = put16(at, p->where.port);
	at = put64(at, p->where.instance);
	at = put_bytes(at, p->where.address, sizeof(p->where.address));
	at = put32(at, p->where.ud_qpn);
	at = put32(at, p->where.ud_qkey);
	at = put_bytes(at, p->where.ud_gid, sizeof(p->where.ud_gid));
	assert(at == out + FIXED_BYTES);
	at = put_bytes(at, p->name, name);
	packet_code_put(key, at, FIXED_BYTES + name);
	return FIXED_BYTES + name + (key->set ? SIPHASH_BYTES : 0);
}

static void fields_get(struct packet_resolve *p, const uint8_t *bytes, size_t name)
{
	const uint8_t *at = bytes + 8;

	p->type = bytes[5];
	at = get64(at, &p->nonce);
	at = get32(at, &p->from);
	at = get32(at, &p->id);
	at = get16(at, &p->lifetime_s);
	at = get16(at, &p->where.port);
	at = get64(at, &p->where.instance);
	at = get_bytes(at, p->where.address, sizeof(p->where.address));
	at = get32(at, &p->where.ud_qpn);
	at = get32(at, &p->where.ud_qkey);
	at = get_bytes(at, p->where.ud_gid, sizeof(p->where.ud_gid));
	memset(p->name, 0, sizeof(p->name));
	memcpy(p->name, at, name);
}

/* A type that there is, with what it cannot be without. */
static bool makes_sense(const struct packet_resolve *p)
{
	if (!p->where.instance)
		return false;
	switch (p->type) {
	case PACKET_ASK:
	case PACKET_CLAIM:
		return p->id || p->name[0];
	case PACKET_TELL:
	case PACKET_ENTER:
	case PACKET_ENTERED:
		return p->id != 0;
	default:
		return false;
	}
}

int packet_resolve_decode(struct packet_resolve *p, const struct packet_key *key,
			  const uint8_t *bytes, size_t length)
{
	int ret = packet_begins(PACKET_MAGIC_RESOLVE, bytes, length);
	struct packet_resolve got;
	size_t name;
	bool code;

	if (ret)
		return ret;
	if (length < FIXED_BYTES || (bytes[6] & ~PACKET_HAS_CODE))
		return -EBADMSG;
	code = bytes[6] & PACKET_HAS_CODE;
	name = bytes[7];
	if (name > RIPC_NAME_MAX ||
	    length != FIXED_BYTES + name + (code ? SIPHASH_BYTES : 0))
		return -EBADMSG;
	ret = packet_code_check(key, code, bytes, FIXED_BYTES + name);
	if (ret)
		return ret;
	if (name && !packet_name_valid((const char *)bytes + FIXED_BYTES, name))
		return -EBADMSG;
	fields_get(&got, bytes, name);
	if (!makes_sense(&got))
		return -EBADMSG;
	*p = got;
	return 0;
}
