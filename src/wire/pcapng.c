/* SPDX-License-Identifier: BSD-2-Clause */
/* Blocks of capture files; see pcapng.h. */
#include "wire/pcapng.h"

#include <stdbool.h>
#include <string.h>

enum option {
	OPTION_END = 0,
	OPTION_COMMENT = 1,
	SECTION_HARDWARE = 2,
	SECTION_OS = 3,
	SECTION_APPLICATION = 4,
	INTERFACE_NAME = 2,
	INTERFACE_DESCRIPTION = 3,
	INTERFACE_RESOLUTION = 9,
	PACKET_FLAGS = 2,
	PACKET_DROPPED = 4,
	STATISTICS_START = 2,
	STATISTICS_END = 3,
	STATISTICS_RECEIVED = 4,
	STATISTICS_DROPPED = 5,
};

#define NANOSECONDS 9
#define VERSION_MAJOR 1
#define VERSION_MINOR 0
#define LENGTH_UNKNOWN UINT64_MAX

/* A block that is being written. When there is no room, `full` is set and nothing more is
 * written. */
struct block {
	uint8_t *to;
	size_t room, at;
	bool full;
};

static void put(struct block *b, const void *data, size_t bytes)
{
	static const uint8_t zero[4];
	size_t pad = -bytes & 3;

	if (b->full || bytes + pad > b->room - b->at) {
		b->full = true;
		return;
	}
	if (bytes)
		memcpy(b->to + b->at, data, bytes);
	memcpy(b->to + b->at + bytes, zero, pad);
	b->at += bytes + pad;
}

static void put32(struct block *b, uint32_t value)
{
	put(b, &value, sizeof(value));
}

static void put16s(struct block *b, uint16_t first, uint16_t second)
{
	const uint16_t both[2] = { first, second };

	put(b, both, sizeof(both));
}

static void put64(struct block *b, uint64_t value)
{
	put(b, &value, sizeof(value));
}

/* Times are two words, the upper one first (4.3, 4.6). */
static void put_time(struct block *b, uint64_t ns)
{
	put32(b, (uint32_t)(ns >> 32));
	put32(b, (uint32_t)ns);
}

static void option(struct block *b, enum option code, const void *data, size_t bytes)
{
	put16s(b, (uint16_t)code, (uint16_t)bytes);
	put(b, data, bytes);
}

static void option_text(struct block *b, enum option code, const char *text)
{
	if (text)
		option(b, code, text, strnlen(text, PCAPNG_TEXT_MAX));
}

static void option64(struct block *b, enum option code, uint64_t value)
{
	option(b, code, &value, sizeof(value));
}

static void option_time(struct block *b, enum option code, uint64_t ns)
{
	const uint32_t words[2] = { (uint32_t)(ns >> 32), (uint32_t)ns };

	option(b, code, words, sizeof(words));
}

static struct block begin(uint8_t *to, size_t room, enum pcapng_block type)
{
	struct block b = { .to = to, .room = room };

	put32(&b, (uint32_t)type);
	put32(&b, 0); /* the length, see end() */
	return b;
}

static size_t end(struct block *b)
{
	uint32_t length;

	option(b, OPTION_END, NULL, 0);
	length = (uint32_t)b->at + (uint32_t)sizeof(length);
	put32(b, length);
	if (b->full)
		return 0;
	memcpy(b->to + sizeof(uint32_t), &length, sizeof(length));
	return b->at;
}

size_t pcapng_section(uint8_t *to, size_t room, const struct pcapng_section *s)
{
	struct block b = begin(to, room, PCAPNG_SECTION);

	put32(&b, PCAPNG_BYTE_ORDER);
	put16s(&b, VERSION_MAJOR, VERSION_MINOR);
	put64(&b, LENGTH_UNKNOWN);
	option_text(&b, OPTION_COMMENT, s->comment);
	option_text(&b, SECTION_HARDWARE, s->hardware);
	option_text(&b, SECTION_OS, s->os);
	option_text(&b, SECTION_APPLICATION, s->application);
	return end(&b);
}

size_t pcapng_interface(uint8_t *to, size_t room, const struct pcapng_interface *i)
{
	static const uint8_t resolution = NANOSECONDS;
	struct block b = begin(to, room, PCAPNG_INTERFACE);

	put16s(&b, (uint16_t)i->link, 0);
	put32(&b, i->snap);
	option_text(&b, INTERFACE_NAME, i->name);
	option_text(&b, INTERFACE_DESCRIPTION, i->description);
	option(&b, INTERFACE_RESOLUTION, &resolution, sizeof(resolution));
	return end(&b);
}

size_t pcapng_packet(uint8_t *to, size_t room, const struct pcapng_packet *p)
{
	const uint32_t flags = (uint32_t)p->direction;
	struct block b = begin(to, room, PCAPNG_PACKET);

	put32(&b, p->interface);
	put_time(&b, p->when_ns);
	put32(&b, p->captured);
	put32(&b, p->length);
	put(&b, p->data, p->captured);
	option_text(&b, OPTION_COMMENT, p->comment);
	if (p->direction != PCAPNG_UNKNOWN)
		option(&b, PACKET_FLAGS, &flags, sizeof(flags));
	if (p->dropped)
		option64(&b, PACKET_DROPPED, p->dropped);
	return end(&b);
}

size_t pcapng_statistics(uint8_t *to, size_t room, const struct pcapng_statistics *s)
{
	struct block b = begin(to, room, PCAPNG_STATISTICS);

	put32(&b, s->interface);
	put_time(&b, s->when_ns);
	option_text(&b, OPTION_COMMENT, s->comment);
	option_time(&b, STATISTICS_START, s->start_ns);
	option_time(&b, STATISTICS_END, s->end_ns);
	option64(&b, STATISTICS_RECEIVED, s->received);
	option64(&b, STATISTICS_DROPPED, s->dropped);
	return end(&b);
}
