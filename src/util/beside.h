/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that belong to this executable, from a build folder and when installed. */
#ifndef UTIL_BESIDE_H
#define UTIL_BESIDE_H

#include <limits.h>
#include <stddef.h>

/* The path of this executable. 0 or a negative errno. */
int beside_self(char path[PATH_MAX]);

/*
 * Looks for the readable file `name` in the `count` folders of `places`, in this order;
 * each is absolute or relative to the folder of the executable. Stores the file's path
 * in path[size]. 0, or -ENOENT: no folder has it.
 */
int beside_executable(const char *const *places, size_t count, const char *name,
		      char *path, size_t size);

#endif
