/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads capture files: classic pcap (microseconds and nanoseconds) and pcapng
 * (draft-ietf-opsawg-pcapng), each in both byte orders. A pcapng file may have several
 * sections, interfaces with times of any resolution, and enhanced, simple and old packet
 * blocks; other blocks are skipped.
 *
 * Pure functions without allocation. The caller owns a buffer of at least
 * CAPTURE_RECORD_MAX bytes, fills it from a file or pipe, and asks for one packet after the
 * other; so a capture may be larger than memory. link.h finds the RDMA headers in a packet.
 */
#ifndef WIRE_CAPTURE_READER_H
#define WIRE_CAPTURE_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The longest packet with its headers that is read. Longer ones are taken for corruption. */
#define CAPTURE_RECORD_MAX (1u << 20)
#define CAPTURE_INTERFACES_MAX 256

enum capture_format {
	CAPTURE_UNKNOWN,
	CAPTURE_PCAP,
	CAPTURE_PCAPNG,
};

struct capture_interface {
	uint16_t link;      /* enum capture_link, or another number */
	uint8_t resolution; /* if_tsresol */
	uint32_t snap;
	int64_t offset_s;   /* if_tsoffset */
};

struct capture_packet {
	uint64_t when_ns;       /* since 1970; only where `timed` */
	bool timed;             /* simple packet blocks have no time */
	uint16_t link;
	uint32_t interface;
	uint8_t direction;      /* 0 not said, 1 inbound, 2 outbound */
	const uint8_t *data;    /* in the caller's buffer */
	uint32_t captured;      /* bytes at `data` */
	uint32_t length;        /* bytes that the packet had */
	uint64_t offset;        /* of the record in the file */
};

/* Why a file cannot be read on. */
struct capture_error {
	uint64_t offset;   /* of the field in the file */
	const char *field; /* NULL: there is no error */
	const char *why;
	uint64_t value;
};

struct capture_reader {
	enum capture_format format;
	bool big;               /* byte order of numbers */
	bool ns;                /* classic pcap with nanoseconds */
	uint64_t offset;        /* of the next record */
	uint64_t skip;          /* bytes of a block that are still to be skipped */
	uint64_t packets;
	uint64_t dropped;       /* packets that the capturing side says it lost */
	uint64_t dropped_statistics; /* the same, by statistics blocks */
	uint32_t sections, interfaces, interfaces_unknown;
	size_t wanted;          /* bytes that the next call needs at once, after CAPTURE_MORE */
	struct capture_interface interface[CAPTURE_INTERFACES_MAX];
	struct capture_error error;
};

enum capture_status {
	CAPTURE_PACKET,  /* *packet is filled in */
	CAPTURE_OTHER,   /* bytes were used, without a packet */
	CAPTURE_MORE,    /* `wanted` bytes are needed at once */
	CAPTURE_CORRUPT, /* see `error` */
};

void capture_begin(struct capture_reader *r);
/*
 * Takes the next record from `size` bytes that continue where the last call ended; *used is
 * the number of bytes that the caller drops. After CAPTURE_CORRUPT no more calls.
 */
enum capture_status capture_next(struct capture_reader *r, const uint8_t *data, size_t size,
				 size_t *used, struct capture_packet *packet);
/* The file has ended and `left` bytes were not used. False: it ends in the middle of a
 * record or is empty; r->error says where. */
bool capture_end(struct capture_reader *r, size_t left);

/* Packets that the capturing side says it lost. */
uint64_t capture_dropped(const struct capture_reader *r);

#endif
