/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar exec --trace`: preloads the library of src/trace. The environment tells the
 * library, in all processes that the program starts, where to write its lines.
 */
#include "cli/exec_trace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/log.h"

/* Empties the file; the processes append to it. */
static int file_prepare(const char *file)
{
	char path[PATH_MAX];
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0) {
		log_error("exec: trace file '%s': %s", file, strerror(errno));
		return -errno;
	}
	close(fd);
	if (!realpath(file, path)) {
		log_error("exec: trace file '%s': %s", file, strerror(errno));
		return -errno;
	}
	return setenv("BUSBAR_TRACE", path, 1) ? -errno : 0;
}

int exec_trace_set(const struct exec_trace *trace)
{
	int err = trace->file ? file_prepare(trace->file) : 0;

	if (!trace->file)
		unsetenv("BUSBAR_TRACE");
	if (!err && setenv("BUSBAR_TRACE_DATA", trace->data ? "1" : "0", 1))
		err = -errno;
	return err;
}
