/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The private folder of one `busbar exec`: what its program finds of soft0 below /sys
 * and /dev, and who of its processes did what with a device. A keeper, a process
 * aside, removes it when the program and all that it started have ended, and says
 * first whether anybody opened a device: the program itself takes the place of
 * `busbar exec`, so that its number, its signals and its status are its own.
 */
#ifndef CLI_EXEC_DIR_H
#define CLI_EXEC_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

/* Names the folder to the program's libraries. */
#define EXEC_DIR_ENV "BUSBAR_EXEC_DIR"
/* How many characters at the end of its name are chosen at random. */
#define EXEC_DIR_RANDOM 6

struct exec_dir {
	char path[PATH_MAX / 2];
	const char *program; /* for the message at the end */
	bool quiet;          /* without it */
	bool with_entries;   /* devices were written */
	int lock_fd;         /* the folder; its keeper holds the lock */
};

/*
 * Makes the folder and starts its keeper. 0, or a negative errno, logged; then there
 * is no folder.
 */
int exec_dir_make(struct exec_dir *d);
/* The program did not start: nothing is to be said. */
void exec_dir_cancel(const struct exec_dir *d);
/* Is this process below a `busbar exec` already? */
bool exec_dir_inherited(void);

/* ---- exec_keeper.c ---- */
/* Waits and removes; does not return. `owner` is to become the program. */
_Noreturn void exec_keeper_run(const struct exec_dir *d, pid_t owner, int owner_fd);
void exec_dir_remove(const char *path);

#endif
