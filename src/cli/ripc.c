/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar ripc VERB`: services of the message library. The verbs are in a module, because
 * they need verbs and connection management. */
#include "cli/cli.h"

#ifdef CLI_HAVE_RIPC
#define VERB(name) .module = "command_ripc", .symbol = "cli_ripc_" name
#else
static int absent(int argc, char **argv)
{
	(void)argc;
	fprintf(stderr, "busbar ripc %s: this build has no ripc, which needs libibverbs and librdmacm with "
		"their headers\n", argv[0]);
	return CLI_FAILED;
}

#define VERB(name) .fn = absent
#endif

static const struct cli_command verbs[] = {
	{ "ping", "round trips to an echo service", VERB("ping") },
	{ "serve", "an echo service, or files of a folder", VERB("serve") },
	{ "get", "fetch a file from a file server", VERB("get") },
	{ "bridge", "a TCP port that leads browsers to a file server", VERB("bridge") },
	{ "list", "services of this host, or where those of some names are", VERB("list") },
	{ "top", "messages per second of the instances of this host", VERB("top") },
	{ "rendezvous", "knows services for networks without multicast", VERB("rendezvous") },
	{ .name = NULL },
};

int cli_ripc(int argc, char **argv)
{
	return cli_dispatch("busbar ripc", verbs,
			    "COMMAND [OPTIONS]\n\n"
			    "Messages between services over RDMA (busbar/ripc.h).\n", argc, argv);
}
