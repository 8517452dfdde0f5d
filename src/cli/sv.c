/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar sv`: sampled values from and to files. Its commands are one file each; see sv.h. */
#include "cli/sv.h"

#include <stdio.h>

#include "cli/cli.h"

static const struct cli_command commands[] = {
	{ "list", "the streams in a capture", .fn = cli_sv_list },
	{ "record", "a stream becomes a COMTRADE record, or another file", .fn = cli_sv_record },
	{ "play", "a COMTRADE record becomes a stream", .fn = cli_sv_play },
	{ .name = NULL },
};

int cli_sv(int argc, char **argv)
{
	return cli_dispatch("busbar sv", commands,
			    "COMMAND [ARGUMENTS]\n\n"
			    "Sampled values (IEC 61850-9-2, IEC 61869-9) from captures and to records.\n",
			    argc, argv);
}
