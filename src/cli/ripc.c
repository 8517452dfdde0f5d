/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar ripc VERB`: services of the message library. The verbs are in a module, because
 * they need verbs and connection management. */
#include "cli/cli.h"

#ifdef CLI_HAVE_RIPC
#include "gateway/plugin/plugin.h"

static int call(const char *symbol, int argc, char **argv)
{
	int (*run)(int argc, char **argv) =
		(int (*)(int, char **))plugin_symbol("command_ripc", symbol);

	return run ? run(argc, argv) : CLI_FAILED;
}

#define VERB(name) \
	static int name(int argc, char **argv) \
	{ \
		return call("cli_ripc_" #name, argc, argv); \
	}
#else
#define VERB(name) \
	static int name(int argc, char **argv) \
	{ \
		(void)argc; \
		fprintf(stderr, "busbar ripc %s: this build has no ripc, which needs libibverbs " \
			"and librdmacm with their headers\n", argv[0]); \
		return CLI_FAILED; \
	}
#endif
VERB(ping)
VERB(serve)
VERB(get)
VERB(list)
VERB(top)
VERB(bridge)
VERB(rendezvous)

static const struct cli_command verbs[] = {
	{ "ping", "round trips to an echo service", ping },
	{ "serve", "an echo service, or files of a folder", serve },
	{ "get", "fetch a file from a file server", get },
	{ "bridge", "a TCP port that leads browsers to a file server", bridge },
	{ "list", "services of this host, or where those of some names are", list },
	{ "top", "messages per second of the instances of this host", top },
	{ "rendezvous", "knows services for networks without multicast", rendezvous },
	{ .name = NULL },
};

static void print_help(FILE *out)
{
	fputs("usage: busbar ripc VERB [OPTIONS]\n\n"
	      "Messages between services over RDMA (busbar/ripc.h).\n\nverbs:\n", out);
	cli_print_commands(verbs, out);
	fputs("\n'busbar ripc VERB --help' and 'man busbar-ripc' say more.\n", out);
}

int cli_ripc(int argc, char **argv)
{
	return cli_dispatch("busbar ripc", verbs, print_help, argc, argv);
}
