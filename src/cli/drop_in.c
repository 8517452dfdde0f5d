/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the drop-in libibverbs.so.1 and librdmacm.so.1 of this build are. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/build.h"
#include "util/container_of.h"

/* In this order: a build folder that is itself below a prefix wins. */
static const char *const places[] = { "lib", BUILD_DROP_IN_FROM_BINDIR };

int cli_drop_in_dir(char *buf, size_t size)
{
	char self[PATH_MAX], place[PATH_MAX], probe[PATH_MAX + 32];
	char real[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	if (len < 0)
		return -ENOENT;
	self[len] = '\0';
	slash = strrchr(self, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		int n = places[i][0] == '/'
			? snprintf(place, sizeof(place), "%s", places[i])
			: snprintf(place, sizeof(place), "%s/%s", self, places[i]);

		if (n < 0 || (size_t)n >= sizeof(place))
			continue;
		snprintf(probe, sizeof(probe), "%s/libibverbs.so.1", place);
		if (access(probe, R_OK) || !realpath(place, real))
			continue;
		if (strlen(real) >= size)
			return -ENAMETOOLONG;
		strcpy(buf, real);
		return 0;
	}
	return -ENOENT;
}
