/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reading and writing samples on standard streams and files, in any format: large reads
 * and writes, buffers that grow with the longest sample, no system call per sample.
 *
 * The first malformed sample ends an input; samples before it are returned. The node-type
 * file has a reader and writer of its own, because a gateway must neither end nor wait.
 */
#ifndef CLI_TOOL_STREAM_H
#define CLI_TOOL_STREAM_H

#include "cli/tool.h"
#include "gateway/plugin/format.h"

/* A format from the command line: "csv" or {"type": "csv", ...}. */
struct tool_format {
	struct config *config;
	struct format *format;
};

/* `signals` may be NULL: as many floats as a sample has. CLI_OK, or the exit status:
 * error, reported. */
int tool_format_open(struct tool_format *f, char **argv, int opt,
		     const char *text, struct signal_list *signals);
void tool_format_close(struct tool_format *f);
/* False: the format cannot be read, reported. */
bool tool_format_can_scan(char **argv, const struct tool_format *f);

struct tool_input {
	const char *name;        /* "stdin", or the path; borrowed */
	struct format *format;   /* borrowed */
	int fd;
	char *buf;
	size_t size, start, end; /* unread bytes in buf[start..end) */
	uint64_t offset, lines;  /* number of bytes and lines before buf[0] */
	bool at_eof;
};

/* `path` "-" is standard input. 0 or a negative errno, logged. */
int tool_input_open(struct tool_input *in, const char *path,
		    struct format *format);
void tool_input_close(struct tool_input *in);

/*
 * Parses up to `cnt` samples from the bytes read so far. 0: more bytes are needed;
 * -EBADMSG: the next sample is malformed, logged.
 */
int tool_input_scan(struct tool_input *in, struct sample *smps[], unsigned cnt);
/*
 * Waits for more bytes. 1: some came; 0: the input has ended; -EINTR: the tool was asked to
 * end; another negative errno: it cannot be read, logged.
 */
int tool_input_fill(struct tool_input *in);
/* Parses samples, and reads more bytes when none is complete; 0: the input has ended. */
int tool_input_next(struct tool_input *in, struct sample *smps[], unsigned cnt);

struct tool_output {
	const char *name;      /* borrowed */
	struct format *format; /* borrowed */
	int fd;
	char *buf;
	size_t size, used;
	uint64_t flushed_ns;   /* time of the last write */
	bool header_done;
	int error;             /* negative errno of the first failure */
};

/* Standard output. 0 or a negative errno, logged. */
int tool_output_open(struct tool_output *out, struct format *format);
/*
 * From here on standard output is for samples alone: what hooks print (print, stats, lua)
 * goes to standard error. 0 or -1, logged.
 */
int tool_output_reserve(void);
/* 0, or a negative errno, logged except for -EPIPE: the reader has ended. */
int tool_output_put(struct tool_output *out, struct sample *const smps[],
		    unsigned cnt);
int tool_output_flush(struct tool_output *out);
/* Flushes; writes the header if no sample came and `signals` is not NULL. */
int tool_output_close(struct tool_output *out, struct signal_list *signals);

/* The exit status for the result of a tool's streams. */
int tool_status(int ret);

#endif
