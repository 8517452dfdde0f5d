/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of pcapng files; see blocks.h. The section numbers are those of
 * draft-ietf-opsawg-pcapng. */
#include "wire/capture/blocks.h"

#include <string.h>

#include "wire/capture/numbers.h"
#include "wire/pcapng.h"

enum {
	BLOCK_OLD_PACKET = 2,
	BLOCK_SIMPLE_PACKET = 3,
	BLOCK_BYTES_MIN = 12,    /* type, length, length again */
	BODY = 8,                /* the body begins behind type and length */
	TRAILER = 4,
	SECTION_BYTES = 16,      /* of a body, without options */
	INTERFACE_BYTES = 8,
	PACKET_BYTES = 20,
	SIMPLE_BYTES = 4,
	STATISTICS_BYTES = 12,
	RESOLUTION_DEFAULT = 6,
	RESOLUTION_BINARY = 0x80, /* the unit is a power of 1/2, else of 1/10 */
};

enum {
	OPTION_END = 0,
	INTERFACE_RESOLUTION = 9,
	INTERFACE_OFFSET = 14,
	PACKET_FLAGS = 2,
	PACKET_DROPPED = 4,
	STATISTICS_DROPPED = 5,
};

struct body {
	const uint8_t *at;
	uint32_t bytes;
};

/* The value of an option, of at least `bytes` bytes; NULL: there is none. */
static const uint8_t *option(const struct capture_reader *r, struct body b, uint32_t at,
			     uint16_t wanted, uint16_t bytes)
{
	while (at <= b.bytes && b.bytes - at >= 4) {
		uint16_t code = capture_16(r, b.at + at), length = capture_16(r, b.at + at + 2);

		at += 4;
		if (code == OPTION_END || length > b.bytes - at)
			return NULL;
		if (code == wanted)
			return length >= bytes ? b.at + at : NULL;
		at += (length + 3u) & ~3u;
	}
	return NULL;
}

/* 4.1. The byte order of the section is known already. */
static enum capture_status section(struct capture_reader *r, struct body b)
{
	if (b.bytes < SECTION_BYTES)
		return capture_corrupt(r, 4, "the length of the section header", b.bytes,
				       "the header needs 28 bytes");
	if (capture_16(r, b.at + 4) != 1)
		return capture_corrupt(r, BODY + 4, "the major version of the section",
				       capture_16(r, b.at + 4), "only version 1 is known");
	r->sections++;
	r->interfaces = 0;
	return CAPTURE_OTHER;
}

/* 4.2 */
static enum capture_status interface(struct capture_reader *r, struct body b)
{
	const uint8_t *value;
	struct capture_interface *i;

	if (b.bytes < INTERFACE_BYTES)
		return capture_corrupt(r, 4, "the length of the interface description", b.bytes,
				       "the description needs 20 bytes");
	if (r->interfaces == CAPTURE_INTERFACES_MAX) {
		r->interfaces_unknown++;
		return CAPTURE_OTHER;
	}
	i = &r->interface[r->interfaces++];
	*i = (struct capture_interface){ .link = capture_16(r, b.at),
					 .snap = capture_32(r, b.at + 4),
					 .resolution = RESOLUTION_DEFAULT };
	value = option(r, b, INTERFACE_BYTES, INTERFACE_RESOLUTION, 1);
	if (value)
		i->resolution = *value;
	value = option(r, b, INTERFACE_BYTES, INTERFACE_OFFSET, 8);
	if (value)
		i->offset_s = (int64_t)capture_64(r, value);
	return CAPTURE_OTHER;
}

/* Units of an interface to nanoseconds since 1970; saturates. */
static uint64_t nanoseconds(const struct capture_interface *i, uint64_t units)
{
	unsigned power = i->resolution & ~(unsigned)RESOLUTION_BINARY;
	unsigned __int128 ns = units;

	if (i->resolution & RESOLUTION_BINARY) {
		ns = ns * 1000000000u >> (power < 94 ? power : 94);
	} else {
		for (; power < 9; power++)
			ns *= 10;
		for (; power > 9 && ns; power--)
			ns /= 10;
	}
	ns += (unsigned __int128)((__int128)i->offset_s * 1000000000);
	return ns >> 64 ? UINT64_MAX : (uint64_t)ns;
}

/* A packet behind `head` bytes of the body of a packet block. */
static enum capture_status packet_data(struct capture_reader *r, struct body b, uint32_t head,
				       struct capture_packet *p)
{
	if (p->captured > b.bytes - head)
		return capture_corrupt(r, BODY + head - 8, "the captured length", p->captured,
				       "the block is shorter");
	if (p->interface >= r->interfaces) {
		if (r->interfaces_unknown && p->interface < r->interfaces + r->interfaces_unknown)
			return CAPTURE_OTHER;
		return capture_corrupt(r, BODY, "the interface of a packet", p->interface,
				       "the section describes no such interface");
	}
	p->link = r->interface[p->interface].link;
	p->data = b.at + head;
	p->offset = r->offset;
	r->packets++;
	return CAPTURE_PACKET;
}

/* 4.3, and appendix A: the old block has two shorter numbers at its start. */
static enum capture_status packet(struct capture_reader *r, struct body b, bool old,
				  struct capture_packet *p)
{
	const uint8_t *value;
	enum capture_status status;
	uint64_t units;

	if (b.bytes < PACKET_BYTES)
		return capture_corrupt(r, 4, "the length of a packet block", b.bytes,
				       "the block needs 32 bytes");
	units = (uint64_t)capture_32(r, b.at + 4) << 32 | capture_32(r, b.at + 8);
	*p = (struct capture_packet){
		.interface = old ? capture_16(r, b.at) : capture_32(r, b.at),
		.captured = capture_32(r, b.at + 12),
		.length = capture_32(r, b.at + 16),
		.timed = true,
	};
	status = packet_data(r, b, PACKET_BYTES, p);
	if (status != CAPTURE_PACKET)
		return status;
	p->when_ns = nanoseconds(&r->interface[p->interface], units);
	if (old) {
		uint16_t drops = capture_16(r, b.at + 2);

		r->dropped += drops == UINT16_MAX ? 0 : drops;
		return status;
	}
	units = PACKET_BYTES + (uint64_t)((p->captured + 3u) & ~3u);
	value = option(r, b, (uint32_t)units, PACKET_FLAGS, 4);
	p->direction = value ? capture_32(r, value) & 3 : 0;
	value = option(r, b, (uint32_t)units, PACKET_DROPPED, 8);
	r->dropped += value ? capture_64(r, value) : 0;
	return status;
}

/* 4.4: no time, and the captured length follows from the interface. */
static enum capture_status simple_packet(struct capture_reader *r, struct body b,
					 struct capture_packet *p)
{
	uint32_t snap = r->interfaces ? r->interface[0].snap : 0;

	if (b.bytes < SIMPLE_BYTES)
		return capture_corrupt(r, 4, "the length of a simple packet block", b.bytes,
				       "the block needs 16 bytes");
	*p = (struct capture_packet){ .length = capture_32(r, b.at) };
	p->captured = snap && p->length > snap ? snap : p->length;
	if (p->captured > b.bytes - SIMPLE_BYTES)
		p->captured = b.bytes - SIMPLE_BYTES;
	return packet_data(r, b, SIMPLE_BYTES, p);
}

/* 4.6. Later blocks of an interface repeat its counts, so only the largest counts. */
static enum capture_status statistics(struct capture_reader *r, struct body b)
{
	const uint8_t *value = b.bytes < STATISTICS_BYTES ? NULL :
			       option(r, b, STATISTICS_BYTES, STATISTICS_DROPPED, 8);
	uint64_t drops = value ? capture_64(r, value) : 0;

	if (drops > r->dropped_statistics)
		r->dropped_statistics = drops;
	return CAPTURE_OTHER;
}

static enum capture_status body(struct capture_reader *r, uint32_t type, struct body b,
				struct capture_packet *p)
{
	switch (type) {
	case PCAPNG_SECTION: return section(r, b);
	case PCAPNG_INTERFACE: return interface(r, b);
	case PCAPNG_PACKET: return packet(r, b, false, p);
	case BLOCK_OLD_PACKET: return packet(r, b, true, p);
	case BLOCK_SIMPLE_PACKET: return simple_packet(r, b, p);
	case PCAPNG_STATISTICS: return statistics(r, b);
	default: return CAPTURE_OTHER;
	}
}

/* A section header tells the byte order of all that follows. */
static enum capture_status byte_order(struct capture_reader *r, const uint8_t *data, size_t size)
{
	if (size < BLOCK_BYTES_MIN)
		return capture_more(r, BLOCK_BYTES_MIN);
	for (int big = 0; big < 2; big++) {
		r->big = big;
		if (capture_32(r, data + BODY) == PCAPNG_BYTE_ORDER)
			return CAPTURE_OTHER;
	}
	return capture_corrupt(r, BODY, "the byte order of the section", get_32(data + BODY),
			       "it is 0x1a2b3c4d in one of the two orders");
}

/* Bytes of a block that is longer than the buffer. */
static enum capture_status skip(struct capture_reader *r, size_t size, size_t *used)
{
	*used = size < r->skip ? size : (size_t)r->skip;
	r->skip -= *used;
	r->offset += *used;
	return *used ? CAPTURE_OTHER : capture_more(r, 1);
}

static bool has_packet(uint32_t type)
{
	return type == PCAPNG_PACKET || type == BLOCK_OLD_PACKET || type == BLOCK_SIMPLE_PACKET;
}

/* The length of a block whose first 8 bytes are there. */
static enum capture_status length_of(struct capture_reader *r, const uint8_t *data, uint32_t *length)
{
	*length = capture_32(r, data + 4);
	if (*length < BLOCK_BYTES_MIN || *length % 4)
		return capture_corrupt(r, 4, "the length of a block", *length,
				       "it is 12 or more and a multiple of 4");
	if (*length <= CAPTURE_RECORD_MAX)
		return CAPTURE_OTHER;
	if (has_packet(capture_32(r, data)) || get_32(data) == PCAPNG_SECTION)
		return capture_corrupt(r, 4, "the length of a block", *length,
				       "no packet is that long");
	r->skip = *length;
	return CAPTURE_OTHER;
}

enum capture_status capture_block_next(struct capture_reader *r, const uint8_t *data, size_t size,
				       size_t *used, struct capture_packet *p)
{
	enum capture_status status;
	uint32_t length;

	if (r->skip)
		return skip(r, size, used);
	if (size < BODY)
		return capture_more(r, BODY);
	if (get_32(data) == PCAPNG_SECTION) { /* it reads the same in both orders */
		status = byte_order(r, data, size);
		if (status != CAPTURE_OTHER)
			return status;
	}
	status = length_of(r, data, &length);
	if (status != CAPTURE_OTHER)
		return status;
	if (r->skip)
		return skip(r, size, used);
	if (size < length)
		return capture_more(r, length);
	if (capture_32(r, data + length - TRAILER) != length)
		return capture_corrupt(r, length - TRAILER, "the length at the end of a block",
				       capture_32(r, data + length - TRAILER),
				       "it differs from the one at its start");
	status = body(r, capture_32(r, data),
		      (struct body){ data + BODY, length - BLOCK_BYTES_MIN }, p);
	if (status == CAPTURE_CORRUPT)
		return status;
	*used = length;
	r->offset += length;
	return status;
}
