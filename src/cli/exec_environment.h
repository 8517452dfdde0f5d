/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar exec` adds to the environment of its program. 0 or a negative errno, logged but
 * where it says otherwise. */
#ifndef CLI_EXEC_ENVIRONMENT_H
#define CLI_EXEC_ENVIRONMENT_H

#include <stdbool.h>

/* Sets a variable to the text. Not logged. */
int exec_set(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Settings for MPI and UCX, which have other transports between processes of one host and prefer
 * these to an RDMA adapter: the variables that the user has not set. Not logged. */
int exec_others_set(void);

struct exec_trace {
	bool on, data;
	const char *file; /* NULL: standard error */
};

/* --trace: the variables of src/trace, which tell the library, in all processes that the program
 * starts, where to write its lines; without LD_PRELOAD. */
int exec_trace_set(const struct exec_trace *trace);

/* --capture: BUSBAR_CAPTURE and, from "FILE[,size=..][,files=..][,snap=..]", its companions; the
 * path becomes absolute. */
int exec_capture_set(const char *option);
/* A path as BUSBAR_CAPTURE takes it, with %% for a percent sign; `name` has room for twice the
 * path. Returns the end of the name. */
char *exec_capture_name(char *name, const char *path);

#endif
