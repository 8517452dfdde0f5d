/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a capture; see trace_input.h. */
#include "cli/trace_input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER_BYTES (4 * CAPTURE_RECORD_MAX)

int trace_input_open(struct trace_input *in, int fd, unsigned ladder)
{
	memset(in, 0, sizeof(*in));
	in->fd = fd;
	analyzer_capture_begin(&in->capture);
	in->analyzer = analyzer_new(ladder);
	in->buffer = malloc(BUFFER_BYTES);
	return in->analyzer && in->buffer ? 0 : -ENOMEM;
}

ssize_t trace_input_read(struct trace_input *in)
{
	ssize_t got = read(in->fd, in->buffer + in->have, BUFFER_BYTES - in->have);
	size_t used;

	if (got <= 0)
		return got < 0 ? -errno : 0;
	in->have += (size_t)got;
	used = analyzer_capture_feed(&in->capture, in->analyzer, in->buffer, in->have);
	memmove(in->buffer, in->buffer + used, in->have - used);
	in->have -= used;
	return got;
}

void trace_input_end(struct trace_input *in)
{
	if (!in->capture.corrupt)
		analyzer_capture_end(&in->capture, in->have);
	analyzer_finish(in->analyzer);
}

void trace_input_close(struct trace_input *in)
{
	free(in->buffer);
	analyzer_free(in->analyzer);
	if (in->fd != STDIN_FILENO)
		close(in->fd);
}
