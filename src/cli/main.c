/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The command `busbar`: a table of sub-commands. Called as villas-NAME it is the tool
 * NAME, called as villas it takes the tool's name as its first argument.
 *
 * What needs the gateway is left out of a build without it (CLI_HAVE_GATEWAY).
 */
#include "cli/cli.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#ifdef CLI_HAVE_GATEWAY
#include "bench/report/report.h"
#endif
#include "gateway/config/config.h"
#include "util/log.h"

#ifdef CLI_HAVE_ZMQ
#define ZMQ_TOOLS \
	{ "zmq-keygen", "make a key pair for the node-type zeromq", .fn = cli_zmq_keygen },
#else
#define ZMQ_TOOLS
#endif

#ifdef CLI_HAVE_GATEWAY
#define TOOLS \
	{ "node", "run a gateway (as run)", .fn = cli_node }, \
	{ "pipe", "one node between standard input and output", .fn = cli_pipe }, \
	{ "signal", "generate signals", .fn = cli_signal }, \
	{ "hook", "put samples through a hook", .fn = cli_hook }, \
	{ "convert", "convert samples from one format into another", .fn = cli_convert }, \
	{ "compare", "compare files sample by sample", .fn = cli_compare }, \
	{ "test-config", "check a configuration file", .fn = cli_test_config }, \
	{ "conf2json", "print a configuration file as JSON", .fn = cli_conf2json }, \
	{ "graph", "draw the nodes and paths of a configuration file", .fn = cli_graph }, \
	{ "relay", "relay WebSocket messages between gateways and pages", .fn = cli_relay }, \
	ZMQ_TOOLS
#else
#define TOOLS
#endif

static const struct cli_command tools[] = {
	TOOLS
	{ .name = NULL },
};

static const struct cli_command commands[] = {
#ifdef CLI_HAVE_GATEWAY
	{ "run", "run a gateway from a configuration file", .fn = cli_run },
	{ "check", "check a configuration file without running it", .fn = cli_check },
	{ "ctl", "ask and command a running gateway", .fn = cli_ctl },
	{ "schema", "print the JSON Schema of configurations", .fn = cli_schema },
	{ "scl", "control blocks of engineering files of substations", .fn = cli_scl },
#endif
	/* In a module, because it needs verbs. */
	{ "devices", "list RDMA devices, their addresses and who uses them", .module = "command_devices",
	  .symbol = "cli_devices" },
	{ "doctor", "why two hosts do not reach each other", .fn = cli_doctor },
	{ "exec", "run any verbs program with busbar's own adapter", .fn = cli_exec },
#ifdef CLI_HAVE_GATEWAY
	/* In a module, so that gateways, whose memory may be locked, do not carry it. */
	{ "fabric", "run an InfiniBand subnet in software", .module = "command_fabric", .symbol = "cli_fabric" },
#endif
	{ "bench", "measure this machine and the adapter", .fn = cli_bench },
#ifdef CLI_HAVE_GATEWAY
	{ "report", "show results and recordings as a page with figures", .fn = bench_report_main },
#endif
	{ "ripc", "messages between services over RDMA: ping, files, browsers", .fn = cli_ripc },
	{ "tune", "look at and set what makes this host punctual", .fn = cli_tune },
#ifdef CLI_HAVE_GATEWAY
	{ "delivery", "what of a sent file arrived, and how late", .fn = cli_delivery },
	{ "simulate", "make waveform files to replay", .fn = cli_simulate },
	{ "sv", "sampled values: streams of captures, from and to COMTRADE records", .fn = cli_sv },
	{ "trace", "what went wrong on RDMA connections, from packets or counters", .fn = cli_trace },
#endif
	TOOLS
	{ "version", "print version and build options", .fn = cli_version },
	{ .name = NULL },
};

static const char about[] =
	"COMMAND [ARGUMENTS]\n"
	"\n"
	"Carries simulation data between real-time simulators over RDMA, and brings\n"
	"its own RDMA adapter in user space where there is none. 'man busbar-COMMAND' says more\n"
	"of a command. BUSBAR_LOG=error|warn|info|debug|trace in the environment sets the log\n"
	"level.\n";

/* As cli_dispatch(), also for the version and for `help` as a word. */
static int dispatch(const char *program, const struct cli_command *table, const char *text, int argc,
		    char **argv)
{
	char help[] = "--help";

	if (argc > 1 && (!strcmp(argv[1], "-V") || !strcmp(argv[1], "--version")))
		return cli_version(1, argv + 1);
	if (argc > 1 && !strcmp(argv[1], "help"))
		argv[1] = help;
	return cli_dispatch(program, table, text, argc, argv);
}

static const struct cli_command *find_tool(const char *name)
{
	const struct cli_command *c = tools;

	/* The names of these tools until 2019. */
	if (!strcmp(name, "test-cmp"))
		name = "compare";
	else if (!strcmp(name, "config-check"))
		name = "test-config";
	while (c->name && strcmp(c->name, name))
		c++;
	return c->name ? c : NULL;
}

/* Called as `villas-NAME ARGUMENTS`, which is argv[0] then. */
static int run_tool(const struct cli_command *tool, int argc, char **argv)
{
	static char name[64];

	snprintf(name, sizeof(name), "villas-%s", tool->name);
	argv[0] = name;
#ifdef CLI_HAVE_GATEWAY
	/* Existing configurations may have keys of other versions: these are warnings. */
	config_pass_unknown_keys(true);
#endif
	return tool->fn(argc, argv);
}

/* `villas NAME ARGUMENTS`: the arguments are passed on unchanged. */
static int run_wrapper(int argc, char **argv)
{
	const struct cli_command *tool = argc > 1 ? find_tool(argv[1]) : NULL;

	if (tool)
		return run_tool(tool, argc - 1, argv + 1);
	return dispatch("villas", tools, "COMMAND [ARGUMENTS]\n", argc, argv);
}

/*
 * Opens a place holder for each standard stream that the caller has closed. Otherwise the
 * next descriptor that is opened would get its number and be used as the stream. Use of
 * the place holder fails like that of a closed descriptor, and it is closed in programs
 * that are executed.
 */
static void occupy_standard_streams(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", O_CLOEXEC | (fd == STDIN_FILENO ?
						O_WRONLY : O_RDONLY));
}

int main(int argc, char **argv)
{
	const char *slash = argc ? strrchr(argv[0], '/') : NULL;
	const char *called = slash ? slash + 1 : argc ? argv[0] : "";
	const struct cli_command *tool = NULL;

	occupy_standard_streams();
	log_init(LOG_INFO);
	if (!strncmp(called, "villas-", 7))
		tool = find_tool(called + 7);
	if (tool)
		return run_tool(tool, argc, argv);
	if (!strcmp(called, "villas"))
		return run_wrapper(argc, argv);
	return dispatch("busbar", commands, about, argc, argv);
}
