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

/* The path of the library, which is below `dir`, for LD_PRELOAD. 0 or a negative errno,
 * logged. */
int exec_trace_library(const char *dir, char *library, size_t size);
/* Sets the other variables. 0 or a negative errno, logged. */
int exec_trace_set(const struct exec_trace *trace);

#endif
