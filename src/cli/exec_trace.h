/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar exec --trace` adds to the environment. */
#ifndef CLI_EXEC_TRACE_H
#define CLI_EXEC_TRACE_H

#include <stdbool.h>

struct exec_trace {
	bool on, data;
	const char *file; /* NULL: standard error */
};

/* Sets the variables, except LD_PRELOAD. 0 or a negative errno, logged. */
int exec_trace_set(const struct exec_trace *trace);

#endif
