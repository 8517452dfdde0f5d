/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding a sub-command by name, and the nearest one when it is misspelt. */
#include "cli/cli.h"

#include <string.h>

#include "gateway/plugin/plugin.h"
#include "util/nearest.h"

static void print_help(const char *program, const struct cli_command *table, const char *about, FILE *out)
{
	fprintf(out, "usage: %s %s\ncommands:\n", program, about);
	for (const struct cli_command *c = table; c->name; c++)
		fprintf(out, "  %-12s %s\n", c->name, c->help);
	fprintf(out, "\n'%s COMMAND --help' says more.\n", program);
}

static int run(const struct cli_command *c, int argc, char **argv)
{
	int (*fn)(int, char **) = c->fn ? c->fn : (int (*)(int, char **))plugin_symbol(c->module, c->symbol);

	return fn ? fn(argc, argv) : CLI_FAILED;
}

int cli_dispatch(const char *program, const struct cli_command *table, const char *about, int argc, char **argv)
{
	struct nearest near;
	char hint[100];

	if (argc < 2) {
		print_help(program, table, about, stderr);
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help(program, table, about, stdout);
		return CLI_OK;
	}
	near = NEAREST(argv[1]);
	for (const struct cli_command *c = table; c->name; c++) {
		if (!strcmp(argv[1], c->name))
			return run(c, argc - 1, argv + 1);
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
