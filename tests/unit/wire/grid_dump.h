/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random messages of one protocol for grid_tshark.sh: a capture file, and beside it a line for each
 * frame with what our decoder says of it, in the form in which tshark prints its fields.
 *
 * usage: PROGRAM CAPTURE LINES COUNT SEED
 */
#ifndef TESTS_UNIT_WIRE_GRID_DUMP_H
#define TESTS_UNIT_WIRE_GRID_DUMP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/prng.h"

#define GRID_FRAME_MAX 1514

/* Makes a frame with its header of Ethernet; its length. Its line goes to `lines`, with its end. */
typedef size_t grid_make(struct prng *random, uint8_t frame[GRID_FRAME_MAX], FILE *lines);

static inline uint32_t grid_below(struct prng *random, uint32_t limit)
{
	return (uint32_t)(prng_next(random) % limit);
}

static inline void grid_bytes(struct prng *random, void *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)prng_next(random);
}

/* A text of letters. */
static inline void grid_text(struct prng *random, char *to, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (char)('a' + grid_below(random, 26));
}

/* A frame of one TCP segment with `len` bytes to or from `port`, of a connection of its own. Its
 * length. */
static inline size_t grid_tcp(struct prng *random, uint8_t frame[GRID_FRAME_MAX], uint16_t port,
			      const void *payload, size_t len)
{
	static const uint8_t head[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, /* Ethernet, IPv4 */
					0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 6, 0, 0, /* TCP, no check sum */
					10, 0, 0, 1, 10, 0, 0, 2 };
	uint8_t *ip = frame + 14, *tcp = ip + 20;
	size_t total = 40 + len;

	memcpy(frame, head, sizeof(head));
	memset(tcp, 0, 20);
	ip[2] = (uint8_t)(total >> 8);
	ip[3] = (uint8_t)total;
	grid_bytes(random, ip + 12, 4); /* the host, so that no two frames are of one stream */
	ip[12] = 10;
	grid_bytes(random, tcp, 2);
	tcp[0] |= 0xc0; /* a port that means nothing */
	tcp[2] = (uint8_t)(port >> 8);
	tcp[3] = (uint8_t)port;
	tcp[7] = 1;
	tcp[11] = 1;
	tcp[12] = 0x50;
	tcp[13] = 0x18; /* PSH, ACK */
	tcp[14] = 0xff;
	memcpy(tcp + 20, payload, len);
	return 54 + len;
}

static inline int grid_dump(int argc, char **argv, grid_make *make)
{
	/* The classic file format of libpcap, of the order of this machine, for Ethernet. */
	const uint32_t head[] = { 0xa1b2c3d4, 4u << 16 | 2, 0, 0, 65535, 1 };
	uint8_t frame[GRID_FRAME_MAX];
	struct prng random;
	FILE *capture, *lines;

	if (argc != 5)
		return 2;
	capture = fopen(argv[1], "we");
	lines = fopen(argv[2], "we");
	random = (struct prng){ .state = strtoull(argv[4], NULL, 0) };
	if (!capture || !lines)
		return 1;
	fwrite(head, sizeof(head), 1, capture);
	for (unsigned long i = 0; i < strtoul(argv[3], NULL, 0); i++) {
		uint32_t len = (uint32_t)make(&random, frame, lines);
		const uint32_t record[] = { (uint32_t)i, 0, len, len };

		fwrite(record, sizeof(record), 1, capture);
		fwrite(frame, len, 1, capture);
	}
	return fclose(capture) || fclose(lines);
}

#endif
