/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples out of a file, in its order; knows nothing of time. A malformed line
 * is reported with its number and passed over.
 */
#ifndef GATEWAY_PART_READER_H
#define GATEWAY_PART_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gateway/plugin/format.h"

struct reader {
	const char *path;      /* borrowed */
	struct format *format; /* borrowed */
	int fd;
	bool regular, fifo;
	char *buf;
	size_t size, start, end; /* unread bytes in buf[start..end) */
	uint64_t offset;         /* of buf[start] in the file */
	bool at_eof;
	bool told_incomplete;    /* that the file ends within a sample */
	bool ended_line;         /* the last one, which had no end, got one */
	bool finished;           /* what the format says of its length is told */
	uint64_t malformed;      /* lines passed over */
};

/*
 * `buffer_size`: bytes read at once; grows when a line is longer. 0 or a
 * negative errno; logs the cause.
 */
int reader_open(struct reader *r, const char *path, struct format *format,
		size_t buffer_size);
void reader_close(struct reader *r);

/*
 * Up to `cnt` samples. Returns how many; 0 when the file has no more (or, when
 * it is not a regular file, none yet: then reader_at_eof() is false).
 * `complete` says that nobody is still writing the last line. Negative errno
 * when the file cannot be read; that is logged.
 */
int reader_next(struct reader *r, struct sample *smps[], unsigned cnt,
		bool complete);

static inline bool reader_at_eof(const struct reader *r)
{
	return r->at_eof;
}

/* Goes on at the beginning; -ESPIPE when the file has none. */
int reader_rewind(struct reader *r);

#endif
