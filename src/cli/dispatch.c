/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding a sub-command by name, and the nearest one when it is misspelt. */
#include "cli/cli.h"

#include <string.h>

#include "util/nearest.h"

void cli_print_commands(const struct cli_command *table, FILE *out)
{
	for (const struct cli_command *c = table; c->name; c++)
		fprintf(out, "  %-12s %s\n", c->name, c->help);
}

int cli_dispatch(const char *program, const struct cli_command *table,
		 void (*print_help)(FILE *out), int argc, char **argv)
{
	struct nearest near;
	char hint[100];

	if (argc < 2) {
		print_help(stderr);
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help(stdout);
		return CLI_OK;
	}
	near = NEAREST(argv[1]);
	for (const struct cli_command *c = table; c->name; c++) {
		if (!strcmp(argv[1], c->name))
			return c->fn(argc - 1, argv + 1);
		nearest_try(&near, c->name);
	}
	nearest_hint(&near, hint, sizeof(hint));
	if (*hint)
		fprintf(stderr, "%s: '%s' is not a command%s\n", program, argv[1],
			hint);
	else
		fprintf(stderr, "%s: '%s' is not a command, see '%s --help'\n",
			program, argv[1], program);
	return CLI_USAGE;
}
