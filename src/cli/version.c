/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar version`: build options, and what was left out of this build. */
#include "cli/cli.h"

#include "cli/build.h"
#include "util/clock.h"

int cli_version(int argc, char **argv)
{
	char dir[4096];

	if (argc > 1) {
		fprintf(stderr, "usage: busbar version\n");
		return CLI_USAGE;
	}
	clock_init();
	printf("busbar %s\n", BUILD_VERSION);
	printf("  compiler           %s\n", BUILD_COMPILER);
	printf("  build type         %s, sanitizers %s\n", BUILD_TYPE,
	       BUILD_SANITIZE);
	printf("  left out           %s\n", BUILD_LEFT_OUT);
	printf("  time source        %s\n", clock_source());
	printf("  drop-in libraries  %s\n",
	       cli_drop_in_dir(dir, sizeof(dir)) ? "not found" : dir);
	return CLI_OK;
}
