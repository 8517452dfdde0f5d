/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Headers of messages. All begin with 20 bytes:
 *
 *	magic 4, version 1, type 1, credits 2, from 4, to 4, count 1, returns_count 1,
 *	zero 2
 *
 * in datagrams the instance follows (8), then
 *
 *	SHORT   the size of each item (4), descriptors of the return buffers, zeros up to a
 *	        multiple of 8: the bytes of the first item are aligned as the buffer is
 *	CREDIT, HOLD, GO  nothing
 *	others  a word (LONG: bit i says that item i was pushed; FAILED: the error; else 0),
 *	        the number (8), descriptors of the items and of the return buffers
 *
 * A descriptor is address 8, bytes 8, key 4.
 */
#include <assert.h>

#include "ripc/wire/packet_bytes.h"
#include "ripc/wire/packet.h"

#define BASE_BYTES 20
#define INSTANCE_BYTES 8
#define NUMBERED_BYTES 12
#define MEMORY_BYTES 20
#define ERROR_MAX 4095 /* as in Linux */

static_assert(BASE_BYTES + INSTANCE_BYTES + NUMBERED_BYTES +
	      (RIPC_ITEMS_MAX + RIPC_RETURNS_MAX) * MEMORY_BYTES <= PACKET_MESSAGE_BYTES_MAX,
	      "the longest header");
static_assert(RIPC_ITEMS_MAX <= 32, "a bit for each item");

static inline bool is_bare(uint8_t type)
{
	return type == PACKET_CREDIT || type == PACKET_HOLD || type == PACKET_GO;
}

static inline size_t header_length(uint8_t type, unsigned count, unsigned returns_count,
				   bool datagram)
{
	size_t bytes = BASE_BYTES + (datagram ? INSTANCE_BYTES : 0) +
		       (size_t)returns_count * MEMORY_BYTES;

	if (type == PACKET_SHORT)
		return (bytes + 4 * (size_t)count + 7) & ~(size_t)7;
	if (is_bare(type))
		return bytes;
	return bytes + NUMBERED_BYTES + (size_t)count * MEMORY_BYTES;
}

size_t packet_message_bytes(uint8_t type, unsigned count, unsigned returns_count,
			    bool datagram)
{
	return header_length(type, count, returns_count, datagram);
}

static uint8_t *memory_put(uint8_t *at, const struct packet_memory *m)
{
	at = put64(at, m->address);
	at = put64(at, m->bytes);
	return put32(at, m->key);
}

static const uint8_t *memory_get(const uint8_t *at, struct packet_memory *m)
{
	at = get64(at, &m->address);
	at = get64(at, &m->bytes);
	return get32(at, &m->key);
}

static uint8_t *numbered_put(uint8_t *at, const struct packet_message *p)
{
	uint32_t word = p->type == PACKET_FAILED ? p->error : 0;

	if (p->type == PACKET_LONG)
		for (unsigned i = 0; i < p->count; i++)
			word |= (uint32_t)p->items[i].pushed << i;
	at = put32(at, word);
	at = put64(at, p->number);
	for (unsigned i = 0; i < p->count; i++)
		at = memory_put(at, &p->items[i]);
	return at;
}

size_t packet_message_encode(const struct packet_message *p, bool datagram, uint8_t *out)
{
	uint8_t *at = out;

	at = put32(at, PACKET_MAGIC_MESSAGE);
	at = put8(at, PACKET_VERSION);
	at = put8(at, p->type);
	at = put16(at, datagram ? 0 : p->credits);
	at = put32(at, p->from);
	at = put32(at, p->to);
	at = put8(at, p->count);
	at = put8(at, p->returns_count);
	at = put16(at, 0);
	if (datagram)
		at = put64(at, p->instance);
	if (p->type == PACKET_SHORT)
		for (unsigned i = 0; i < p->count; i++)
			at = put32(at, p->sizes[i]);
	else if (!is_bare(p->type))
		at = numbered_put(at, p);
	for (unsigned i = 0; i < p->returns_count; i++)
		at = memory_put(at, &p->returns[i]);
	/* All fields are words of 4 bytes: one of them at most is wanting. */
	if (p->type == PACKET_SHORT && ((at - out) & 7))
		at = put32(at, 0);
	return (size_t)(at - out);
}

/* Which counts a type may have, and that the header is there. */
static int shape_check(const struct packet_message *p, bool datagram, size_t length,
		       size_t *header)
{
	const bool carries = p->type == PACKET_SHORT || p->type == PACKET_LONG;

	if (p->type < PACKET_SHORT || p->type > PACKET_TYPE_LAST ||
	    p->count > RIPC_ITEMS_MAX || p->returns_count > RIPC_RETURNS_MAX ||
	    (!carries && (p->count || p->returns_count)))
		return -EBADMSG;
	*header = header_length(p->type, p->count, p->returns_count, datagram);
	if (p->type == PACKET_SHORT ? length < *header : length != *header)
		return -EBADMSG;
	return 0;
}

/* Behind the sizes: what is left of the message is the items, no more and no less. */
static const uint8_t *sizes_get(struct packet_message *p, const uint8_t *at, size_t left,
				bool *fits)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < p->count; i++) {
		at = get32(at, &p->sizes[i]);
		sum += p->sizes[i];
	}
	*fits &= sum == left;
	return at;
}

/* Descriptors that do not go around the end of the address space, nor their sum. */
static const uint8_t *memories_get(struct packet_memory *m, unsigned count,
				   const uint8_t *at, uint32_t pushed, bool *fits)
{
	uint64_t sum = 0, end;
	bool over = false;

	for (unsigned i = 0; i < count; i++) {
		at = memory_get(at, &m[i]);
		m[i].pushed = pushed >> i & 1;
		over |= __builtin_add_overflow(sum, m[i].bytes, &sum);
		over |= __builtin_add_overflow(m[i].address, m[i].bytes, &end);
	}
	*fits &= !over;
	return at;
}

static const uint8_t *numbered_get(struct packet_message *p, const uint8_t *at, bool *fits)
{
	uint32_t word;

	at = get32(at, &word);
	at = get64(at, &p->number);
	if (p->type == PACKET_LONG) {
		at = memories_get(p->items, p->count, at, word, fits);
		*fits &= p->number && !((uint64_t)word >> p->count);
	} else if (p->type == PACKET_FAILED) {
		p->error = word;
		*fits &= word && word <= ERROR_MAX;
	} else {
		*fits &= !word && p->number;
	}
	return at;
}

/* A short message of one item over a connection, which most are: the same as below, in fewer
 * steps. False: it is not one, or is malformed. */
static bool usual_decode(struct packet_message *p, const uint8_t *bytes, size_t length,
			 size_t *header)
{
	const size_t usual = BASE_BYTES + 4;
	uint32_t counts, size;

	if (length < usual || bytes[5] != PACKET_SHORT)
		return false;
	get32(bytes + 16, &counts);
	get32(bytes + 20, &size);
	if (counts != UINT32_C(1) << 24 || size != length - usual)
		return false;
	p->type = PACKET_SHORT;
	get16(bytes + 6, &p->credits);
	get32(bytes + 8, &p->from);
	get32(bytes + 12, &p->to);
	p->count = 1;
	p->sizes[0] = size;
	p->returns_count = 0;
	p->instance = p->number = 0;
	p->error = 0;
	*header = usual;
	return true;
}

int packet_message_decode(struct packet_message *p, bool datagram, const uint8_t *bytes,
			  size_t length, size_t *header_bytes)
{
	int ret = packet_begins(PACKET_MAGIC_MESSAGE, bytes, length);
	const uint8_t *at = bytes + 6;
	uint32_t padding;
	uint16_t zero;
	size_t header;
	bool fits = true;

	if (ret)
		return ret;
	if (!datagram && usual_decode(p, bytes, length, header_bytes))
		return 0;
	if (length < BASE_BYTES)
		return -EBADMSG;
	p->type = bytes[5];
	at = get16(at, &p->credits);
	at = get32(at, &p->from);
	at = get32(at, &p->to);
	p->count = *at++;
	p->returns_count = *at++;
	at = get16(at, &zero);
	p->instance = p->number = 0;
	p->error = 0;
	ret = shape_check(p, datagram, length, &header);
	if (ret)
		return ret;
	if (datagram) {
		at = get64(at, &p->instance);
		fits = p->instance && !p->credits;
	}
	if (p->type == PACKET_SHORT)
		at = sizes_get(p, at, length - header, &fits);
	else if (!is_bare(p->type))
		at = numbered_get(p, at, &fits);
	at = memories_get(p->returns, p->returns_count, at, 0, &fits);
	if (at < bytes + header) {
		get32(at, &padding);
		fits &= !padding;
	}
	*header_bytes = header;
	return fits && !zero ? 0 : -EBADMSG;
}
