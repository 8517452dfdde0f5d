/* SPDX-License-Identifier: BSD-2-Clause */
/* Writing samples to standard output; see tool_stream.h. */
#define LOG_ROOM tool_room
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool_stream.h"
#include "gateway/sample/signals.h"
#include "util/clock.h"
#include "util/log.h"

#define WRITE_SIZE ((size_t)64 << 10)

static int samples_fd = STDOUT_FILENO;

int tool_output_reserve(void)
{
	int fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (fd < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
		log_error("cannot keep standard output for the samples: %s", strerror(errno));
		if (fd >= 0)
			close(fd);
		return -1;
	}
	samples_fd = fd;
	return 0;
}

int tool_output_open(struct tool_output *out, struct format *format)
{
	memset(out, 0, sizeof(*out));
	out->name = "standard output";
	out->fd = samples_fd;
	out->format = format;
	out->size = 2 * WRITE_SIZE;
	out->buf = malloc(out->size);
	if (!format->type->print) {
		log_error("format '%s' cannot be written", format->type->name);
		return -ENOTSUP;
	}
	if (!out->buf) {
		log_error("no memory for %zu bytes of output", out->size);
		return -ENOMEM;
	}
	return 0;
}

static int fail(struct tool_output *out, int err)
{
	if (err == EPIPE)
		log_debug("nobody reads %s any more", out->name);
	else
		log_error("cannot write to %s: %s", out->name, strerror(err));
	out->error = -err;
	return -err;
}

int tool_output_flush(struct tool_output *out)
{
	size_t done = 0;

	while (done < out->used && !out->error) {
		ssize_t n = write(out->fd, out->buf + done, out->used - done);

		if (n >= 0) {
			done += (size_t)n;
		} else if (errno == EAGAIN) {
			struct pollfd p = { .fd = out->fd, .events = POLLOUT };

			poll(&p, 1, -1);
		} else if (errno != EINTR) {
			fail(out, errno);
		}
	}
	out->used = 0;
	out->flushed_ns = clock_monotonic_ns_slow();
	return out->error;
}

static int grow(struct tool_output *out)
{
	char *buf = realloc(out->buf, 2 * out->size);

	if (!buf)
		return fail(out, ENOMEM);
	out->buf = buf;
	out->size *= 2;
	return 0;
}

/* Writes the header, for samples of which the first has `length` values. */
static int put_header(struct tool_output *out, const struct signal_list *signals,
		      unsigned length)
{
	const struct format_type *type = out->format->type;
	struct signal_list *l;
	size_t need;

	out->header_done = true;
	if (!type->header || !out->format->header)
		return 0;
	l = signal_list_header(signals, length);
	if (!l)
		return fail(out, ENOMEM);
	need = type->header(out->format, NULL, 0, l);
	while (out->size < need + 1 && !out->error)
		grow(out);
	if (!out->error)
		out->used += type->header(out->format, out->buf, out->size, l);
	signal_list_put(l);
	return out->error;
}

/* Reports a sample that cannot be written, and names the value that is the cause. */
static int refuse(struct tool_output *out, const struct sample *s, int err)
{
	const struct signal_list *signals = s->signals ?: out->format->signals;
	struct signal_list *made = NULL;
	int ret = 0;

	if (!signals || signals->count < s->length)
		signals = made = signal_list_new(s->length, SIGNAL_FLOAT);
	if (err == EOPNOTSUPP)
		ret = format_check_signals(out->format, NULL, NULL, signals);
	signal_list_put(made);
	if (!ret && format_error(out->format)[0])
		log_error("cannot write to %s: %s", out->name,
			  format_error(out->format));
	else if (!ret)
		return fail(out, err);
	out->error = -err;
	return -err;
}

int tool_output_put(struct tool_output *out, struct sample *const smps[],
		    unsigned cnt)
{
	unsigned done = 0;

	if (cnt && !out->header_done)
		put_header(out, smps[0]->signals ? smps[0]->signals :
						   out->format->signals,
			   smps[0]->length);
	while (done < cnt && !out->error) {
		size_t used = 0;
		int n = out->format->type->print(out->format,
						 out->buf + out->used,
						 out->size - out->used, &used,
						 smps + done, cnt - done);

		if (n < 0)
			return refuse(out, smps[done], -n);
		out->used += used;
		done += (unsigned)n;
		/* The buffer is full: flush it; if it is empty, the sample is longer. */
		if (out->used >= WRITE_SIZE || (done < cnt && out->used))
			tool_output_flush(out);
		else if (done < cnt)
			grow(out);
	}
	return out->error;
}

int tool_output_close(struct tool_output *out, struct signal_list *signals)
{
	if (out->buf && signals && !out->header_done && !out->error)
		put_header(out, signals, signals->count);
	if (out->buf)
		tool_output_flush(out);
	free(out->buf);
	out->buf = NULL;
	return out->error;
}

int tool_status(int ret)
{
	/* -EINTR: asked to end; -EPIPE: the reader has ended. Both are no failures. */
	return ret >= 0 || ret == -EINTR || ret == -EPIPE ? CLI_OK : CLI_FAILED;
}
