/* SPDX-License-Identifier: BSD-2-Clause */
/* Looking for files beside the executable; see beside.h. */
#include "util/beside.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int beside_self(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	path[n > 0 ? n : 0] = '\0';
	return n < 0 ? -errno : 0;
}

int beside_executable(const char *const *places, size_t count, const char *name,
		      char *path, size_t size)
{
	char self[PATH_MAX];
	char *slash;

	if (beside_self(self))
		return -ENOENT;
	slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	for (size_t i = 0; i < count; i++) {
		int n = places[i][0] == '/' ?
				snprintf(path, size, "%s/%s", places[i], name) :
				snprintf(path, size, "%s/%s/%s", self, places[i],
					 name);

		if (n > 0 && (size_t)n < size && !access(path, R_OK))
			return 0;
	}
	return -ENOENT;
}
