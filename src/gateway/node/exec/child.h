/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A child process with its three streams, in a process group of its own. Knows
 * nothing of samples. Its standard error goes to the log, line by line; its end is
 * seen and told by a thread, also while nobody reads or writes it.
 */
#ifndef GATEWAY_NODE_EXEC_CHILD_H
#define GATEWAY_NODE_EXEC_CHILD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/types.h>

struct child_settings {
	const char *node;       /* name, for messages */
	char *const *argv;      /* argv[0] is searched in PATH */
	char *const *envp;
	const char *folder;     /* NULL: the one we are in */
	bool read, write;       /* else the stream is /dev/null */
	unsigned grace_ms;      /* between asking it to end and killing it */
};

struct child {
	struct child_settings settings;
	pid_t pid;
	int pid_fd;             /* readable when it has ended */
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
int exec_child_start(struct child *c, const struct child_settings *settings,
		int wake_fd);

/* Has it ended? Waits for that. Any thread, while it is started. */
bool exec_child_wait_end(const struct child *c, int timeout_ms);

/*
 * Ends it: closes its input, which ends most programs; then SIGTERM and, after
 * the grace time, SIGKILL to all of its group. Returns when it is gone, which is
 * bounded. What it writes meanwhile is thrown away.
 */
void exec_child_stop(struct child *c);

#endif
