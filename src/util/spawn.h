/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts other programs, and waits for them. By vfork(): this process may have much memory, and
 * a copy of pages that an adapter uses would take them from it. A program gets none of the
 * descriptors that are closed on exec.
 */
#ifndef UTIL_SPAWN_H
#define UTIL_SPAWN_H

#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum spawn_stream {
	SPAWN_INHERITS = -1, /* that of this process */
	SPAWN_NULL = -2,     /* /dev/null */
	SPAWN_PIPE = -3,     /* a pipe to this process */
};

struct spawn {
	char *const *argv;   /* argv[0] is searched in PATH */
	char *const *envp;   /* NULL: the environment of this process */
	const char *folder;  /* NULL: that of this process */
	int streams[3];      /* descriptors that it gets as 0, 1, 2, or enum spawn_stream */
	int *pipes;          /* three: our ends of SPAWN_PIPE, non-blocking; not set: others */
	bool group;          /* it leads a process group of its own */
	bool session;        /* it leads a session of its own, and a group */
	int death_signal;    /* that it gets when the thread that starts it ends; 0: none */
	const cpu_set_t *cpus; /* where it runs; NULL: where this thread may run */
	/* NULL: all signals are at their defaults, and none is blocked. Else these are blocked,
	 * and what this process ignores stays ignored, as if it became the program itself. */
	const sigset_t *blocked;
	/* Called in the child, when it has its streams and its group; 0 or a negative errno. The
	 * child is a copy by fork() then. NULL: nothing to do. */
	int (*prepare)(void *arg);
	void *arg;
};

/* Starts it: its number, for waitpid(), or a negative errno where it does not become the
 * program. Logs nothing. */
pid_t spawn_program(const struct spawn *s);

/* fork(), for a child that goes on in this program, on memory that it shares with us: it gets
 * `death_signal` when this thread ends. */
pid_t spawn_copy(int death_signal);

/* Waits until child `pid` has ended: its status, as of waitpid(); 0 where this process ignores
 * SIGCHLD, as then the kernel keeps none. */
int spawn_wait(pid_t pid);
/* Has it ended, now or within `ms`? Then *status is its status, too, and the number is free. */
bool spawn_has_ended(pid_t pid, int ms, int *status);
/* The exit status; 128 + N, as in shells, where signal N ended it. */
int spawn_exit_status(int status);

/* A descriptor, closed on exec, of a file in memory that holds this; or a negative errno. For
 * the standard input of a program that nobody then has to write to while it runs. */
int spawn_memory_file(const void *bytes, size_t size);

struct spawn_limits {
	unsigned ms;
	size_t bytes;
	bool (*stop)(void); /* asked ten times a second; NULL: never */
};

/*
 * Takes what child `pid` writes to `fd`, its standard output as a SPAWN_PIPE, which is closed,
 * and waits until it has ended. 0 with *text, to be freed and with a NUL byte behind it, *bytes
 * and *status. A negative errno: it was killed, because of -ETIMEDOUT, -EFBIG or -EINTR (stop), or
 * -ENOMEM.
 */
int spawn_collect(pid_t pid, int fd, const struct spawn_limits *limits, char **text,
		  size_t *bytes, int *status);

struct spawn_variable {
	const char *name, *value; /* value NULL: it is removed */
	bool gives_way;           /* one that is set already stays */
};

/* The environment of this process with some changes, which end with a name NULL. To be freed
 * by spawn_environment_free(); NULL without memory. */
char **spawn_environment(const struct spawn_variable *changes);
void spawn_environment_free(char **envp); /* NULL allowed */

/* Stores the path of the file that execvp() would execute. 0, -ENOENT, or -EACCES: only files
 * without permission were found. */
int spawn_find(const char *name, char path[PATH_MAX]);
/* Is there one? */
bool spawn_is_installed(const char *program);

#endif
