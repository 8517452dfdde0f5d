/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `busbar trace`. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <stdbool.h>
#include <string.h>

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

/* For analyzer_new(): a page draws the flow that is named; without a name each with a finding. */
unsigned trace_wanted_ladder(const struct trace_settings *s);
/* Prints what was found, when the capture has ended. All of these return the exit status. */
int trace_conclude(const struct trace_settings *s, const struct analyzer_capture *c,
		   const struct analyzer *a);
int trace_live(struct trace_settings *s);
int trace_counters(const struct trace_settings *s);

#endif
