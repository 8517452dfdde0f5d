/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar exec --verdict`: a child becomes the program; this process stays, waits for it, passes
 * signals on, reports how each process that used verbs handled its first error, and ends as the
 * program did.
 */
#ifndef CLI_EXEC_VERDICT_H
#define CLI_EXEC_VERDICT_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "util/options.h"

struct exec_verdict {
	bool on, json;
	const char *file; /* NULL: standard error */
	int out_fd;
	char folder[PATH_MAX / 2]; /* of the facts (verdict/facts.h) */
	int lock_fd;
};

/* One process that used verbs: its file "PID.NUMBER" in the folder. */
struct exec_observed {
	char name[32];
	pid_t pid;
	int fd;          /* its pidfd, or -1: it has ended */
	uint64_t end_ns; /* 0: not seen */
	int status;      /* as of waitpid(); -1: not known */
};

struct exec_watch {
	const char *folder;
	pid_t program;
	struct exec_observed *observed;
	unsigned count;
	int signals_fd, folder_fd;
};

/* Of the member `on` of a struct exec_verdict: "FILE", "json" or "json:FILE", or no value. */
int exec_verdict_take(const struct option_given *g);
/* Makes the folder and forks. Returns in the child, which is to become the program; 0, or a
 * negative errno, logged, in this process. */
int exec_verdict_start(struct exec_verdict *v);

/* ---- exec_watch.c ---- */
/* Waits until the program has ended; returns its status as of waitpid(). */
int exec_watch_run(struct exec_watch *w);
/* All signals are blocked and signals_fd is open. 0 or a negative errno. */
int exec_watch_open(struct exec_watch *w, const char *folder);

/* Judges all processes that used verbs. `status`: of the program, as of waitpid(). */
void exec_report(const struct exec_verdict *v, const struct exec_watch *w, int status);

#endif
