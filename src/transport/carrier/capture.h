/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Packets into a capture file (wire/pcapng.h) while the program runs. Whoever has a packet
 * puts a copy into a buffer in memory; a thread of the capture writes the buffer to the
 * file, or to the reader of a pipe. When the buffer is full, packets are dropped and
 * counted, and nobody waits: neither for a disk nor for a reader that has stopped. The
 * count is in the file (epb_dropcount, isb_ifdrop) and, at the end, in the log.
 *
 * The file can be read at any time, also after the process was killed: what is written are
 * whole blocks, a few milliseconds after they came.
 *
 *   a file     is replaced, but not while another process captures into it: then the own
 *              process id becomes part of the name. With a limit of size, one that is full
 *              is the last (`files` 1), or is followed by the next one, and `files` of
 *              them are kept.
 *   a pipe     (FIFO) is opened when it has a reader; when the reader goes away, the
 *              next one gets a section of its own. No signal (SIGPIPE) is raised.
 *   an error   of writing, a full disk for example, ends the capture, with a message.
 */
#ifndef TRANSPORT_CARRIER_CAPTURE_H
#define TRANSPORT_CARRIER_CAPTURE_H

#include <stddef.h>
#include <stdint.h>

#include "transport/carrier/carrier.h"
#include "wire/pcapng.h"

#define CAPTURE_INTERFACES 4
#define CAPTURE_FILES_MAX 10000
#define CAPTURE_SIZE_MIN 65536 /* of a file with a limit */

struct capture;

/* Strings are copied. */
struct capture_params {
	/* %p: the process id, %%: a percent sign. With `files` above 1 the number of the
	 * file is put before the suffix, and the process id if there is no %p. */
	const char *path;
	uint64_t file_bytes;  /* of each file; 0: no limit, else at least CAPTURE_SIZE_MIN */
	unsigned files;       /* how many are kept, at least 1; above 1 with a limit only */
	uint32_t snap;        /* bytes of a packet that are kept; 0: all */
	size_t buffer_bytes;  /* 0: 16 MiB; rounded up to a power of two */
	enum pcapng_link link;
	const char *application;
	const char *interfaces[CAPTURE_INTERFACES]; /* names; NULL: there are no more */
};

struct capture_packet {
	uint32_t interface; /* index in `interfaces` */
	enum carrier_direction direction;
	const void *data;
	uint32_t bytes;
	const char *comment; /* NULL: none */
};

struct capture_counters {
	uint64_t packets; /* that came */
	uint64_t dropped; /* of these: no room, no reader, or the capture had ended */
};

/* 0 or a negative errno; -EINVAL: the path has an unknown %, or a limit is not allowed.
 * The reason is in the log. */
int capture_open(const struct capture_params *params, struct capture **out);
/* The time is that of the call. Any thread, with any locks; waits for nothing but a few
 * instructions of another caller. */
void capture_packet(struct capture *c, const struct capture_packet *packet);
void capture_count(struct capture *c, struct capture_counters *out);
/* Writes what is in the buffer, waiting for a pipe's reader for 2 s at most, and says in the
 * log how many packets were dropped. No call of capture_packet() is in progress or
 * follows. NULL is allowed. */
void capture_close(struct capture *c);
/* Instead, in a forked child: the file remains the parent's. Takes no lock. */
void capture_forked(struct capture *c);

#endif
