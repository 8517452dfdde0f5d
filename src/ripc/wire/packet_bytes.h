/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fields of packets in network byte order, at any alignment. Each function returns the
 * place behind the field; who calls has made sure of the room.
 */
#ifndef RIPC_PACKET_BYTES_H
#define RIPC_PACKET_BYTES_H

#include <endian.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ripc/wire/packet.h"

/* Every packet begins with its magic word, which says the kind, and its version. */
#define PACKET_MAGIC_RESOLVE UINT32_C(0x52495052) /* "RIPR" */
#define PACKET_MAGIC_CONNECT UINT32_C(0x52495043) /* "RIPC" */
#define PACKET_MAGIC_MESSAGE UINT32_C(0x5249504d) /* "RIPM" */

/* Flags of packets that may carry an authentication code, which covers them, too. */
#define PACKET_HAS_CODE 0x01

static inline uint8_t *put8(uint8_t *at, uint8_t value)
{
	*at = value;
	return at + 1;
}

static inline uint8_t *put16(uint8_t *at, uint16_t value)
{
	value = htobe16(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static inline uint8_t *put32(uint8_t *at, uint32_t value)
{
	value = htobe32(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static inline uint8_t *put64(uint8_t *at, uint64_t value)
{
	value = htobe64(value);
	memcpy(at, &value, sizeof(value));
	return at + sizeof(value);
}

static inline uint8_t *put_bytes(uint8_t *at, const void *bytes, size_t count)
{
	memcpy(at, bytes, count);
	return at + count;
}

static inline const uint8_t *get16(const uint8_t *at, uint16_t *value)
{
	memcpy(value, at, sizeof(*value));
	*value = be16toh(*value);
	return at + sizeof(*value);
}

static inline const uint8_t *get32(const uint8_t *at, uint32_t *value)
{
	memcpy(value, at, sizeof(*value));
	*value = be32toh(*value);
	return at + sizeof(*value);
}

static inline const uint8_t *get64(const uint8_t *at, uint64_t *value)
{
	memcpy(value, at, sizeof(*value));
	*value = be64toh(*value);
	return at + sizeof(*value);
}

static inline const uint8_t *get_bytes(const uint8_t *at, void *bytes, size_t count)
{
	memcpy(bytes, at, count);
	return at + count;
}

/* The five bytes that all packets begin with. The version is looked at before anything
 * that another version may have changed. */
static inline int packet_begins(uint32_t magic, const uint8_t *bytes, size_t length)
{
	uint32_t found;

	if (length < sizeof(found) + 1)
		return -EBADMSG;
	get32(bytes, &found);
	if (found != magic)
		return -EBADMSG;
	return bytes[sizeof(found)] == PACKET_VERSION ? 0 : -EPROTONOSUPPORT;
}

#endif
