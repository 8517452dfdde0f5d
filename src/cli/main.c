/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command `busbar`: a table of sub-commands and nothing else.
 *
 * The build leaves out a line whose file it did not build (CLI_HAVE_...).
 */
#include "cli/cli.h"

#include <string.h>

#include "gateway/plugin.h"
#include "util/log.h"

/* In a module, because it needs verbs. */
static int devices(int argc, char **argv)
{
	int (*run)(int argc, char **argv) =
		(int (*)(int, char **))plugin_symbol("command_devices",
						     "cli_devices");

	return run ? run(argc, argv) : CLI_FAILED;
}

static const struct cli_command commands[] = {
#ifdef CLI_HAVE_RUN
	{ "run", "run a gateway from a configuration file", cli_run },
#endif
#ifdef CLI_HAVE_CHECK
	{ "check", "check a configuration file without running it", cli_check },
#endif
#ifdef CLI_HAVE_CTL
	{ "ctl", "ask and command a running gateway", cli_ctl },
#endif
#ifdef CLI_HAVE_SCHEMA
	{ "schema", "print the JSON Schema of configurations", cli_schema },
#endif
	{ "devices", "list RDMA devices, their addresses and who uses them", devices },
	{ "exec", "run any verbs program with busbar's own adapter", cli_exec },
	{ "bench", "measure this machine and the adapter", cli_bench },
#ifdef CLI_HAVE_COMPARE
	{ "compare", "compare what was sent with what arrived", cli_compare },
#endif
#ifdef CLI_HAVE_SIMULATE
	{ "simulate", "make waveform files to replay", cli_simulate },
#endif
	{ "version", "print version and build options", cli_version },
	{ NULL, NULL, NULL },
};

static void print_help(FILE *out)
{
	fputs("usage: busbar COMMAND [ARGUMENTS]\n"
	      "\n"
	      "Carries simulation data between real-time simulators over RDMA, and brings\n"
	      "its own RDMA adapter in user space where there is none.\n"
	      "\n"
	      "commands:\n", out);
	cli_print_commands(commands, out);
	fputs("\n"
	      "'busbar COMMAND --help' and 'man busbar-COMMAND' say more.\n"
	      "BUSBAR_LOG=error|warn|info|debug|trace in the environment sets the log level.\n",
	      out);
}

int main(int argc, char **argv)
{
	log_init(LOG_INFO);
	if (argc < 2) {
		print_help(stderr);
		return CLI_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") ||
	    !strcmp(argv[1], "help")) {
		print_help(stdout);
		return CLI_OK;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
		return cli_version(1, argv + 1);
	return cli_dispatch("busbar", commands, argc, argv);
}
