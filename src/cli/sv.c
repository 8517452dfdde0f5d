/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar sv`: sampled values from and to files. Its commands are one file each; see sv.h. */
#include "cli/sv.h"

#include <stdio.h>

#include "cli/cli.h"

static const struct cli_command commands[] = {
	{ "list", "the streams in a capture", cli_sv_list },
	{ "record", "a stream becomes a COMTRADE record, or another file", cli_sv_record },
	{ "play", "a COMTRADE record becomes a stream", cli_sv_play },
	{ .name = NULL },
};

static void print_help(FILE *out)
{
	fputs("usage: busbar sv COMMAND [ARGUMENTS]\n"
	      "\n"
	      "Sampled values (IEC 61850-9-2, IEC 61869-9) from captures and to records.\n"
	      "\n"
	      "commands:\n", out);
	cli_print_commands(commands, out);
	fputs("\n'busbar sv COMMAND --help' says more.\n", out);
}

int cli_sv(int argc, char **argv)
{
	return cli_dispatch("busbar sv", commands, print_help, argc, argv);
}
