/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives the packets of a capture file to an analyzer; the caller reads the file. */
#ifndef ANALYZER_CAPTURE_H
#define ANALYZER_CAPTURE_H

#include "analyzer/analyzer.h"
#include "wire/capture/reader.h"

struct analyzer_capture {
	struct capture_reader reader;
	uint64_t packets;       /* of any protocol */
	uint64_t others;        /* of other protocols */
	uint64_t cut;           /* that end before the RDMA header */
	uint64_t malformed;     /* with a reserved opcode or version */
	uint64_t links_unknown; /* of a link type that is not read */
	uint64_t untimed, lost; /* lost: as ERF records say */
	uint16_t link_unknown;  /* the first such type */
	int64_t last_ns;
	bool corrupt;
};

void analyzer_capture_begin(struct analyzer_capture *c);
/* Takes whole records from the bytes. Returns the number of bytes that were used; the rest has
 * to come again in front of what follows. After c->corrupt no more calls. */
size_t analyzer_capture_feed(struct analyzer_capture *c, struct analyzer *a, const uint8_t *data,
			     size_t size);
/* The file has ended with `left` unused bytes. False: inside of a record; see reader.error. */
bool analyzer_capture_end(struct analyzer_capture *c, size_t left);
/* Packets that the capturing side says it lost. */
uint64_t analyzer_capture_lost(const struct analyzer_capture *c);

#endif
