/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Starts another program. By vfork(): this process may have much memory, and a copy of pages
 * that an adapter uses would take them from it. The program gets all signals at their defaults
 * and none of the descriptors that are closed on exec.
 */
#ifndef UTIL_SPAWN_H
#define UTIL_SPAWN_H

#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

enum spawn_stream {
	SPAWN_INHERITS = -1, /* that of this process */
	SPAWN_NULL = -2,     /* /dev/null */
};

struct spawn {
	char *const *argv;   /* argv[0] is searched in PATH */
	char *const *envp;   /* NULL: the environment of this process */
	const char *folder;  /* NULL: that of this process */
	int streams[3];      /* descriptors that it gets as 0, 1, 2, or enum spawn_stream */
	bool group;          /* it leads a process group of its own */
	int death_signal;    /* that it gets when the thread that starts it ends; 0: none */
	const cpu_set_t *cpus; /* where it runs; NULL: where this thread may run */
};

/* Starts it: its number, for waitpid(), or a negative errno where it does not become the
 * program. Logs nothing. */
pid_t spawn_program(const struct spawn *s);

struct spawn_variable {
	const char *name, *value; /* value NULL: it is removed */
	bool gives_way;           /* one that is set already stays */
};

/* The environment of this process with some changes, which end with a name NULL. To be freed
 * by spawn_environment_free(); NULL without memory. */
char **spawn_environment(const struct spawn_variable *changes);
void spawn_environment_free(char **envp); /* NULL allowed */

/* Is there a program of this name in PATH? */
bool spawn_is_installed(const char *program);

#endif
