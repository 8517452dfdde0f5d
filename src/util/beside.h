/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that belong to this executable, from a build folder and when installed. */
#ifndef UTIL_BESIDE_H
#define UTIL_BESIDE_H

#include <stddef.h>

/*
 * Looks for the readable file `name` in the `count` folders of `places`, in this
 * order; each is absolute or seen from the folder of the executable. path[size]
 * becomes the path of the file. 0, or -ENOENT when no place has it.
 */
int beside_executable(const char *const *places, size_t count, const char *name,
		      char *path, size_t size);

#endif
