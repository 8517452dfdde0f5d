/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that a node has started: its start, its end, and the messages about both. It
 * is not started again when it ends.
 */
#ifndef GATEWAY_PART_CHILD_H
#define GATEWAY_PART_CHILD_H

#include <stdbool.h>
#include <sys/types.h>

#include "util/spawn.h"

struct child_settings {
	const char *node;   /* name, for messages; must live as long as the child */
	char *const *argv;  /* argv[0], whose text must live as long, is searched in PATH */
	char *const *envp;  /* NULL: the environment of this process */
	const char *folder; /* NULL: that of this process */
	int streams[3];     /* descriptors that it gets as 0, 1, 2, or enum spawn_stream */
	bool group;         /* it leads a process group of its own, which ends with it */
	/* It gets SIGTERM when the thread that starts it ends, also by SIGKILL. */
	bool dies_along;
};

struct child {
	const char *node, *program;
	pid_t pid;  /* 0: none */
	int pid_fd; /* readable when it has ended */
	int pipes[3]; /* our ends of streams that are SPAWN_PIPE; -1: none */
	bool group;
};

/* Starts it, with all signals at their defaults. 0 or a negative errno, which is logged. */
int child_start(struct child *c, const struct child_settings *settings);

/* Waits until it has ended, at most `timeout_ms`. True: it has. Any thread. */
bool child_wait(const struct child *c, int timeout_ms);

/* Logs how it ended. It has ended and is not reaped. */
void child_tell_end(const struct child *c);

/*
 * Ends it, and its group: closes the pipe to its standard input, waits up to `eof_ms` until it
 * ends by itself, sends SIGTERM, and after up to `grace_ms` SIGKILL. What it writes to the pipe
 * of its standard output meanwhile is read and discarded, so that it does not wait for a reader.
 * While the gateway ends both times are shorter (base/ending.h). Returns when it has ended or been
 * killed.
 */
void child_end(struct child *c, unsigned eof_ms, unsigned grace_ms);
/* Waits until it is gone, closes its pipes and forgets it: pid is 0 then. */
void child_reap(struct child *c);

#endif
