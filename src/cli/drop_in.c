/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the drop-in libibverbs.so.1 and librdmacm.so.1 of this build are. */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/build.h"
#include "util/beside.h"
#include "util/container_of.h"

/* The build folder is tried first, because it may itself be below a prefix. */
static const char *const places[] = { "lib", BUILD_DROP_IN_FROM_BINDIR };

int cli_drop_in_dir(char *buf, size_t size)
{
	char probe[2 * PATH_MAX], real[PATH_MAX];

	if (beside_executable(places, ARRAY_SIZE(places), "libibverbs.so.1", probe,
			      sizeof(probe)))
		return -ENOENT;
		/* The folder in which the link stands, not the one it points to. */
	*strrchr(probe, '/') = '\0';
	if (!realpath(probe, real))
		return -ENOENT;
	if (strlen(real) >= size)
		return -ENAMETOOLONG;
	strcpy(buf, real);
	return 0;
}
