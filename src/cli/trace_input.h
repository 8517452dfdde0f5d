/* SPDX-License-Identifier: BSD-2-Clause */
/* A capture that `busbar trace` reads, from a file or a pipe, and its analyzer. */
#ifndef CLI_TRACE_INPUT_H
#define CLI_TRACE_INPUT_H

#include <sys/types.h>

#include "analyzer/analyzer.h"
#include "analyzer/capture.h"

struct trace_input {
	int fd;                    /* owned, unless it is standard input */
	struct analyzer *analyzer;
	struct analyzer_capture capture;
	uint8_t *buffer;
	size_t have;               /* bytes in the buffer, of a record that is not whole */
};

/* 0 or -ENOMEM; to be closed in any case. `ladder`: see analyzer_new(). */
int trace_input_open(struct trace_input *in, int fd, unsigned ladder);
/* One read, whose whole records are analysed. The number of bytes; 0: the end; or a negative errno of
 * read(). After the end, or when in->capture.corrupt is true, no more calls. */
ssize_t trace_input_read(struct trace_input *in);
/* No more bytes will come: the results are there. */
void trace_input_end(struct trace_input *in);
void trace_input_close(struct trace_input *in);

#endif
