/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Blocks of capture files, by draft-ietf-opsawg-pcapng: section header, interface
 * description, enhanced packet, interface statistics. Numbers are in the byte order of the
 * host, as the format allows; times are nanoseconds since 1970 (if_tsresol 9).
 *
 * Pure functions, of any thread. Each writes one block at `to`, which has `room` bytes, and
 * returns its length, a multiple of 4; 0: there is no room, and nothing of meaning was
 * written. Strings may be NULL: then there is no such option. They are cut to
 * PCAPNG_TEXT_MAX bytes.
 */
#ifndef WIRE_PCAPNG_H
#define WIRE_PCAPNG_H

#include <stddef.h>
#include <stdint.h>

#define PCAPNG_TEXT_MAX 255
/* The most that a block has beyond the bytes of its packet. */
#define PCAPNG_BLOCK_EXTRA 1280

enum pcapng_block {
	PCAPNG_INTERFACE = 1,
	PCAPNG_STATISTICS = 5,
	PCAPNG_PACKET = 6,
	PCAPNG_SECTION = 0x0a0d0d0a,
};
#define PCAPNG_BYTE_ORDER 0x1a2b3c4du

enum pcapng_link {
	PCAPNG_ETHERNET = 1,
	PCAPNG_RAW_IP = 101, /* begins with the IP header, of version 4 or 6 */
	PCAPNG_INFINIBAND = 247, /* begins with the LRH, ends with the VCRC */
};

enum pcapng_direction { /* epb_flags */
	PCAPNG_UNKNOWN,
	PCAPNG_INBOUND,
	PCAPNG_OUTBOUND,
};

struct pcapng_section {
	const char *hardware, *os, *application, *comment;
};

struct pcapng_interface {
	enum pcapng_link link;
	uint32_t snap; /* the most bytes of a packet; 0: no limit */
	const char *name, *description;
};

struct pcapng_packet {
	uint32_t interface;    /* the how manyeth description of the section */
	uint64_t when_ns;
	const void *data;
	uint32_t captured;     /* bytes at `data` */
	uint32_t length;       /* of the packet, when it was sent */
	enum pcapng_direction direction;
	uint64_t dropped;      /* packets lost since the one before; 0: not said */
	const char *comment;
};

struct pcapng_statistics {
	uint32_t interface;
	uint64_t when_ns, start_ns, end_ns;
	uint64_t received;     /* packets that came by, those dropped too */
	uint64_t dropped;
	const char *comment;
};

size_t pcapng_section(uint8_t *to, size_t room, const struct pcapng_section *s);
size_t pcapng_interface(uint8_t *to, size_t room, const struct pcapng_interface *i);
size_t pcapng_packet(uint8_t *to, size_t room, const struct pcapng_packet *p);
size_t pcapng_statistics(uint8_t *to, size_t room, const struct pcapng_statistics *s);

#endif
