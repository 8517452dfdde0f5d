/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the samples of a file in order, without regard to time. It reports a malformed line
 * with its number and skips it.
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
	bool told_incomplete;    /* reported that the file ends within a sample */
	bool ended_line;         /* added a line end to the last line */
	bool finished;           /* reported a wrong length of the file */
	uint64_t malformed;      /* lines skipped */
};

/*
 * `buffer_size`: bytes read at once; it grows for a longer line. 0 or a
 * negative errno; logs the cause.
 */
int reader_open(struct reader *r, const char *path, struct format *format,
		size_t buffer_size);
void reader_close(struct reader *r);

/*
 * Reads up to `cnt` samples and returns their number; 0 when the file has no more, or, if
 * it is not a regular file, none yet (then reader_at_eof() is false). `complete`: no
 * process still writes the last line. A negative errno, logged, when the file cannot
 * be read.
 */
int reader_next(struct reader *r, struct sample *smps[], unsigned cnt,
		bool complete);

static inline bool reader_at_eof(const struct reader *r)
{
	return r->at_eof;
}

/* Continues at the beginning of the file; -ESPIPE when the file cannot seek. */
int reader_rewind(struct reader *r);

#endif
