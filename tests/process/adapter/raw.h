/* SPDX-License-Identifier: BSD-2-Clause */
/* A peer of iWARP that may send any bytes: a TCP socket of the test, connected to queue pair 0 of side
 * `a`. */
#ifndef ADAPTER_RAW_H
#define ADAPTER_RAW_H

#include "pair.h"
#include "wire/iwarp/fpdu.h"
#include "wire/iwarp/receiver.h"

struct raw {
	int fd;
	struct iwarp_framer framer;
	struct iwarp_receiver receiver;
	uint8_t segment[IWARP_ULPDU_MAX];
	uint8_t out[4096];
	size_t bytes;
};

struct raw_how {
	bool crc, markers;
	int room;    /* of the sockets' buffers; 0: as usual */
	/* enum iwarp_error: the queue pair is the initiator's, whose set-up has found this fault. */
	int refused;
};

/* As the initiator, else. The queue pair is in RESET. */
void raw_open(struct raw *r, struct pair *p, const struct raw_how *how);

/* Adds an FPDU to what is sent next: of a ULPDU that is `headers`, and zeros as payload; or of a
 * segment. */
void raw_frame(struct raw *r, const uint8_t *headers, size_t bytes, uint32_t payload);
void raw_add(struct raw *r, const struct iwarp_segment *s);
/* The WRITE of no bytes with which an initiator begins. */
void raw_begin(struct raw *r);
void raw_send(struct raw *r);

/* The next segment; the test fails if none comes, or another one than a good one. */
const struct iwarp_segment *raw_receive(struct raw *r);
/* The stream has to end, and the socket is closed. */
void raw_expect_end(struct raw *r);

#endif
