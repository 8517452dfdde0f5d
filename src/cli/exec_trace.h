/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar exec --trace` adds to the environment. */
#ifndef CLI_EXEC_TRACE_H
#define CLI_EXEC_TRACE_H

#include <stdbool.h>
#include <stddef.h>

struct exec_trace {
	bool on, data;
	const char *file; /* NULL: standard error */
};

/* The library below `dir`, to be preloaded in front of others. 0 or a negative errno,
 * which is logged. */
int exec_trace_library(const char *dir, char *library, size_t size);
/* The rest of the environment; likewise. */
int exec_trace_set(const struct exec_trace *trace);

#endif
