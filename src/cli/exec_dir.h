/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The private folder of one `busbar exec`: the entries of soft0 that its program finds
 * below /sys and /dev, and files in which processes note that they listed or opened
 * devices. The keeper, a process of its own, removes the folder when the program and all
 * processes that it started have ended. Before that it reports if no process opened a
 * device. It is needed because `busbar exec` itself becomes the program, so that process
 * number, signals and exit status are the program's own.
 */
#ifndef CLI_EXEC_DIR_H
#define CLI_EXEC_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The variable that names the folder to the program's libraries. */
#define EXEC_DIR_ENV "BUSBAR_EXEC_DIR"
/* The number of random characters at the end of the folder's name. */
#define EXEC_DIR_RANDOM 6

struct exec_dir {
	char path[PATH_MAX / 2];
	const char *program; /* for the message at the end */
	bool quiet;          /* no message at the end */
	bool with_entries;   /* the entries of soft0 were written */
	int lock_fd;         /* the folder, locked; the keeper inherits the lock */
};

/*
 * Makes the folder and starts its keeper. 0, or a negative errno, logged; then there
 * is no folder.
 */
int exec_dir_make(struct exec_dir *d);
/* Makes an empty folder of this user where the others are, and locks it: a folder without a lock is
 * removed by a later keeper. 0 or a negative errno. */
int exec_dir_make_root(char *path, size_t size, int *lock_fd);
/* The program could not be executed: no message at the end. */
void exec_dir_cancel(const struct exec_dir *d);
/* Was this process started below a `busbar exec`? */
bool exec_dir_inherited(void);

void exec_dir_remove(const char *path);

/*
 * In a module, because it needs verbs: writes the entries below /sys and /dev for devices that the
 * kernel does not know (soft0), below the folder `root` ("ROOT/sys/class/infiniband/soft0" ...),
 * from their attributes. 0, or a negative errno, logged.
 */
int cli_exec_tree(const char *root);

#endif
