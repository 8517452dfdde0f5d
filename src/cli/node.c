/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar node` (villas-node): `busbar run` under the name and with the options of
 * villas-node. Existing scripts wait for its end; with an HTTP server it goes on, as users
 * ask for its state then. Also lists what this build can do.
 */
#include <fcntl.h>
#include <getopt.h>
#include <string.h>
#include <unistd.h>

#include "cli/tool.h"
#include "gateway/control/api.h"
#include "gateway/control/status.h"
#include "gateway/plugin/format.h"
#include "gateway/plugin/hook.h"
#include "gateway/plugin/node.h"
#include "gateway/plugin/plugin.h"
#include "gateway/super_node/super_node.h"
#include "util/container_of.h"
#include "util/log.h"

static const char usage[] =
	"[OPTIONS] [CONFIG]\n"
	"\n"
	"Runs the gateway that CONFIG describes (libconfig or JSON, '-' for standard\n"
	"input) until SIGINT or SIGTERM, or until all paths have ended: not then with\n"
	"idle_stop = false in CONFIG, nor with HTTP unless CONFIG says idle_stop = true.\n"
	"Without CONFIG, and without an active path in it, it waits to be given one:\n"
	"busbar ctl SOCKET restart CONFIG, or POST /api/v2/restart.\n"
	"\n"
	"  --control=SOCKET  path of the control socket, '@name' for an abstract one; without\n"
	"            CONFIG it is @villas-node-PID, else that of CONFIG\n"
	"  --http[=LISTEN]   offer HTTP at PORT, ADDRESS or ADDRESS:PORT\n"
	"  -C        print what this build can do, as JSON\n";

static int print_capabilities(char **argv)
{
	json_t *o = control_capabilities(control_request_names());
	int status = o ? tool_print_json(argv, o) : CLI_FAILED;

	json_decref(o);
	return status;
}

/* `describe` is called with the type; types in modules are not loaded for the list. */
static void print_plugins(const char *title, const struct plugin *table,
			  const char *(*describe)(const void *type))
{
	printf("\nSupported %s:\n", title);
	for (const struct plugin *p = table; p->name; p++)
		printf(" - %-18s%s\n", p->name,
		       p->type ? describe(p->type) : "(in a module)");
}

static const char *describe_node(const void *type)
{
	return ((const struct node_type *)type)->description;
}

static const char *describe_hook(const void *type)
{
	return ((const struct hook_type *)type)->description;
}

static const char *describe_format(const void *type)
{
	return ((const struct format_type *)type)->description;
}

static void print_requests(void)
{
	json_t *names = control_request_names(), *name;
	size_t i;

	printf("\nSupported API commands:\n");
	json_array_foreach(names, i, name)
		printf(" - %s\n", json_string_value(name));
	json_decref(names);
}

static int print_help(char **argv)
{
	tool_print_usage(argv, usage, stdout);
	print_plugins("node-types", node_plugins, describe_node);
	print_plugins("IO formats", format_plugins, describe_format);
	print_plugins("hooks", hook_plugins, describe_hook);
	print_requests();
	return CLI_OK;
}

/* The name of a level in `busbar run`; NULL: unknown. */
static const char *level_name(const char *text)
{
	if (!strcmp(text, "off") || !strcmp(text, "critical"))
		return "error";
	return log_level_parse(text) >= 0 ? text : NULL;
}

/* For -d off: redirects standard error, with the log, to /dev/null. */
static void silence(void)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	dup2(fd, STDERR_FILENO);
	close(fd);
}

int cli_node(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "control", required_argument, NULL, 'c' },
		{ "http", optional_argument, NULL, 'w' },
		{ NULL, 0, NULL, 0 },
	};
	char run[] = "run", option[] = "-d";
	char control[256] = "", http[128] = "";
	char *level = NULL, *args[8];
	int opt, status, n = 0;
	bool off = false;

	tool_begin(argv);
	while ((opt = getopt_long(argc, argv, TOOL_OPTIONS "C", longs, NULL)) !=
	       -1) {
		switch (opt) {
		case 'c':
			snprintf(control, sizeof(control), "--control=%s", optarg);
			break;
		case 'w':
			snprintf(http, sizeof(http), "--http%s%s", optarg ? "=" : "",
				 optarg ? optarg : "");
			break;
		case 'C':
			return print_capabilities(argv);
		case 'h':
			return print_help(argv);
		case 'd':
			off = !strcmp(optarg, "off");
			level = (char *)level_name(optarg);
			if (level)
				break;
			return tool_option(argv, opt, usage);
		default:
			status = tool_option(argv, opt, usage);
			if (status >= 0)
				return status;
		}
	}
	if (argc - optind > 1) {
		tool_print_usage(argv, usage, stderr);
		return CLI_USAGE;
	}
	args[n++] = run;
	if (level) {
		args[n++] = option;
		args[n++] = level;
	}
	if (*http)
		args[n++] = http;
	else
		super_node_set_idle_stop(SUPER_NODE_IDLE_STOP_UNSERVED);
	if (optind == argc && !*control)
		snprintf(control, sizeof(control), "--control=@villas-node-%d",
			 (int)getpid());
	if (*control)
		args[n++] = control;
	if (optind < argc)
		args[n++] = argv[optind];
	args[n] = NULL;
	if (off)
		silence();
	optind = 0; /* getopt() begins anew */
	return cli_run(n, args);
}
