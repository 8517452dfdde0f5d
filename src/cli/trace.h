/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `busbar trace`. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "analyzer/analyzer.h"
#include "analyzer/capture.h"

struct trace_settings {
	const char *file;
	const char *page;      /* NULL: none */
	unsigned flow, ladder; /* 0: all, none */
	bool json;
	bool live;             /* names: the program and its arguments */
	/* Of --counters. */
	bool counters;
	const char *root;      /* NULL: the host itself */
	unsigned interval_ms, count; /* count 0: until Ctrl-C */
	char **names;
	int name_count;
};

/* The page takes the place of the text on standard output. */
static inline bool trace_page_only(const struct trace_settings *s)
{
	return s->page && !strcmp(s->page, "-");
}

/* A capture that is read, from a file or a pipe, and its analyzer. */
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

/* For analyzer_new(): a page draws the flow that is named; without a name each with a finding. */
unsigned trace_wanted_ladder(const struct trace_settings *s);
/* Prints what was found, when the capture has ended. All of these return the exit status. */
int trace_conclude(const struct trace_settings *s, const struct analyzer_capture *c,
		   const struct analyzer *a);
int trace_live(struct trace_settings *s);
int trace_counters(const struct trace_settings *s);

#endif
