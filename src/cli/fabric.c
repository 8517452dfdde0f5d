/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar fabric`: the list of its sub-commands, and those that are one question each. */
#include "cli/fabric.h"

#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "plug/plug.h"
#include "util/log.h"
#include "util/options.h"

#define LIST "/proc/net/unix"
#define LIST_PREFIX "@busbar.fabric."

/* ---- commands of one question ---- */

struct ask_options {
	const char *name;
};

static const struct option_entry ask_table[] = {
	{ "-n, --name NAME: of the fabric (" FABRIC_NAME_DEFAULT ")", OPTION_TEXT(struct ask_options, name) },
	{ .text = NULL },
};

static const struct options ask_options = {
	.program = "busbar fabric",
	.synopsis = "cut|join NODE[:PORT] [--name NAME]\nfail NODE [--name NAME]\nstop [NAME]",
	.about = "cut and join act on the cable of a port, fail cuts all cables of a switch or host, and\n"
		 "join without a port joins all of them.\n",
	.table = ask_table,
	.operands_max = 1,
};

/* argv[0] is the verb. */
static int ask(int argc, char **argv)
{
	bool has_node = strcmp(argv[0], "stop");
	struct ask_options o = { .name = FABRIC_NAME_DEFAULT };
	char question[256];
	int status = options_parse(&ask_options, argc, argv, &o, NULL);

	if (status >= 0)
		return status;
	if (has_node && optind == argc)
		return options_usage(&ask_options, argv);
	if (!has_node && optind < argc)
		o.name = argv[optind];
	snprintf(question, sizeof(question), "%s%s%s", argv[0], has_node ? " " : "",
		 has_node ? argv[optind] : "");
	return fabric_ask_and_print(o.name, question);
}

static const struct option_entry no_options[] = { { .text = NULL } };

static const struct options list_options = {
	.program = "busbar fabric list",
	.synopsis = "",
	.about = "The names of the fabrics that run here.\n",
	.table = no_options,
};

/* The kernel lists each socket of a name, the listening one and those of its connections. */
static int list(int argc, char **argv)
{
	int status = options_parse(&list_options, argc, argv, NULL, NULL);
	char line[512], last[256] = "";
	FILE *f;

	if (status >= 0)
		return status;
	f = fopen(LIST, "re");
	if (!f) {
		log_error(LIST ": %s", strerror(errno));
		return CLI_FAILED;
	}
	while (fgets(line, sizeof(line), f)) {
		const char *name = strstr(line, LIST_PREFIX);
		unsigned flags = 0;

		/* Num: RefCount Protocol Flags; __SO_ACCEPTCON: it listens. */
		if (!name || sscanf(line, "%*s %*s %*s %x", &flags) != 1 || !(flags & 0x10000))
			continue;
		name += strlen(LIST_PREFIX);
		if (strncmp(name, last, sizeof(last))) {
			printf("%s", name);
			strncpy(last, name, sizeof(last) - 1);
		}
	}
	fclose(f);
	return CLI_OK;
}

/* ---- the list ---- */

static const struct cli_command commands[] = {
	{ "run", "run a simulated InfiniBand subnet, into which programs plug", .fn = cli_fabric_run },
	{ "simulate", "carry out an experiment in virtual time, without programs", .fn = cli_fabric_simulate },
	{ "show", "nodes, links, counters and programs of a running one", .fn = cli_fabric_show },
	{ "cut", "cut a cable", .fn = ask },
	{ "join", "join a cable that was cut", .fn = ask },
	{ "fail", "cut all cables of a switch or host", .fn = ask },
	{ "list", "the fabrics that run here", .fn = list },
	{ "stop", "end one", .fn = ask },
	{ .name = NULL },
};

int cli_fabric(int argc, char **argv)
{
	return cli_dispatch("busbar fabric", commands,
			    "COMMAND [ARGUMENTS]\n\n"
			    "InfiniBand subnets in software: switches, links and adapters with credits,\n"
			    "virtual lanes and forwarding tables, as one process.\n", argc, argv);
}
