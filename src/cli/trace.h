/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of `busbar trace`. */
#ifndef CLI_TRACE_H
#define CLI_TRACE_H

#include <stdbool.h>

struct trace_settings {
	const char *file;
	const char *page;      /* NULL: none */
	unsigned flow, ladder; /* 0: all, none */
	bool json;
	/* Of --counters. */
	bool counters;
	const char *root;      /* NULL: the host itself */
	bool timed;            /* an interval was given */
	unsigned interval_ms, count; /* count 0: until Ctrl-C */
	char **names;          /* devices */
	int name_count;
};

/* The exit status. */
int trace_counters(const struct trace_settings *s);

#endif
