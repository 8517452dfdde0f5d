/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program with its three streams. Knows nothing of samples. Its standard error goes to
 * the log, line by line; its end is noticed and logged by a thread, also while nobody
 * reads or writes it.
 */
#ifndef GATEWAY_NODE_EXEC_PROGRAM_H
#define GATEWAY_NODE_EXEC_PROGRAM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "gateway/part/child.h"

struct program_settings {
	const char *node;       /* name, for messages */
	char *const *argv;      /* argv[0] is searched in PATH */
	char *const *envp;
	const char *folder;     /* NULL: the one we are in */
	bool read, write;       /* else the stream is /dev/null */
	unsigned grace_ms;      /* between asking it to end and killing it */
};

struct program {
	struct program_settings settings;
	struct child child;
	int in_fd;              /* its standard input, -1: closed; non-blocking */
	int out_fd;             /* its standard output; non-blocking */
	int err_fd;
	int stop_fd;            /* ends the thread */
	int wake_fd;            /* of the caller: written at its end */
	pthread_t thread;
	atomic_bool ended;      /* it has; set before wake_fd is written */
	atomic_bool stopping;
	char line[1024];        /* of standard error */
	size_t line_used;
};

/* 0 or a negative errno; logs the cause. `wake_fd` (an eventfd) is borrowed. */
int program_start(struct program *p, const struct program_settings *settings,
		  int wake_fd);

/*
 * Ends it: closes its input, which ends most programs; then SIGTERM and, after the grace
 * time, SIGKILL to all of its group (child_stop()). Returns when it is gone. What it
 * writes meanwhile is discarded.
 */
void program_stop(struct program *p);

#endif
