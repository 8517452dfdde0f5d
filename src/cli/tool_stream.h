/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Samples from and to standard streams and files, in any format: large pieces,
 * buffers that grow with the longest sample, no system call for each sample.
 *
 * The first malformed sample ends an input; what came before it is delivered.
 * node/file has its own reader and writer: a gateway must neither end nor wait.
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

/* `signals` may be NULL: floats, as many as come. CLI_OK or the exit status,
 * after saying what is wrong. */
int tool_format_open(struct tool_format *f, char **argv, int opt,
		     const char *text, struct signal_list *signals);
void tool_format_close(struct tool_format *f);
/* False after saying that the format cannot be read. */
bool tool_format_can_scan(char **argv, const struct tool_format *f);

struct tool_input {
	const char *name;        /* "stdin", or the path; borrowed */
	struct format *format;   /* borrowed */
	int fd;
	char *buf;
	size_t size, start, end; /* unread bytes in buf[start..end) */
	uint64_t offset, lines;  /* before buf[0] */
	bool at_eof;
};

/* `path` "-": standard input. 0 or a negative errno; logs the cause. */
int tool_input_open(struct tool_input *in, const char *path,
		    struct format *format);
void tool_input_close(struct tool_input *in);

/*
 * Up to `cnt` samples out of what has been read. 0: more must be read first;
 * -EBADMSG: the input is bad there, which has been logged.
 */
int tool_input_scan(struct tool_input *in, struct sample *smps[], unsigned cnt);
/*
 * Waits for more bytes. 1: something came, 0: the input has ended, -EINTR: the
 * tool is to end, another negative errno: it cannot be read (logged).
 */
int tool_input_fill(struct tool_input *in);
/* Scans, and fills where nothing is left; 0 at the end. */
int tool_input_next(struct tool_input *in, struct sample *smps[], unsigned cnt);

struct tool_output {
	const char *name;      /* borrowed */
	struct format *format; /* borrowed */
	int fd;
	char *buf;
	size_t size, used;
	uint64_t flushed_ns;   /* when bytes were last written */
	bool header_done;
	int error;             /* negative errno of the first failure */
};

/* Standard output. 0 or a negative errno; logs the cause. */
int tool_output_open(struct tool_output *out, struct format *format);
/* 0, or a negative errno (logged, but for -EPIPE: the reader wants no more). */
int tool_output_put(struct tool_output *out, struct sample *const smps[],
		    unsigned cnt);
int tool_output_flush(struct tool_output *out);
/* Flushes; a header too, when no sample has come and `signals` are known. */
int tool_output_close(struct tool_output *out, struct signal_list *signals);

/* The exit status for what a tool's streams returned. */
int tool_status(int ret);

#endif
