/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar node` (villas-node): `busbar run` under the name and with the options of
 * villas-node. Existing scripts wait for its end; with an HTTP server it goes on, as users
 * ask for its state then. Also lists what this build can do.
 */
#include <fcntl.h>
#include <getopt.h>
#include <stddef.h>
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
#include "util/log.h"
#include "util/options.h"

struct settings {
	const char *control, *http, *level;
	bool off;
};

static int print_capabilities(const struct option_given *g)
{
	json_t *o = control_capabilities(control_request_names());
	int status = o ? tool_print_json((char *[]){ (char *)g->program }, o) : CLI_FAILED;

	json_decref(o);
	return status;
}

/* `description`: where a type has it; types in modules are not loaded for the list. */
static void print_plugins(const char *title, const struct plugin *table, size_t description)
{
	printf("\nSupported %s:\n", title);
	for (const struct plugin *p = table; p->name; p++)
		printf(" - %-18s%s\n", p->name,
		       p->type ? *(const char *const *)((const char *)p->type + description) :
				 "(in a module)");
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

static void print_what_there_is(void)
{
	print_plugins("node-types", node_plugins, offsetof(struct node_type, description));
	print_plugins("IO formats", format_plugins, offsetof(struct format_type, description));
	print_plugins("hooks", hook_plugins, offsetof(struct hook_type, description));
	print_requests();
}

/* The level is named as `busbar run` names it. */
static int take_level(const struct option_given *g)
{
	struct settings *s = g->to;

	s->off = !strcmp(g->value, "off");
	s->level = s->off || !strcmp(g->value, "critical") ? "error" : g->value;
	return log_level_parse(s->level) >= 0 ? OPTIONS_GO_ON : tool_take_level(g);
}

static const struct option_entry table[] = {
	{ "--control SOCKET: path of the control socket, '@name' for an abstract one; without CONFIG it is "
			      "@villas-node-PID, else that of CONFIG", OPTION_TEXT(struct settings, control) },
	{ "--http[=LISTEN]: offer HTTP at PORT, ADDRESS or ADDRESS:PORT", OPTION_TEXT(struct settings, http) },
	{ "-C: print what this build can do, as JSON", OPTION_CALL(print_capabilities, NULL) },
	TOOL_OPTIONS_WITH(take_level),
};

static const struct options options = {
	.synopsis = "[OPTIONS] [CONFIG]",
	.about = "Runs the gateway that CONFIG describes (libconfig or JSON, '-' for standard\n"
		 "input) until SIGINT or SIGTERM, or until all paths have ended: not then with\n"
		 "idle_stop = false in CONFIG, nor with HTTP unless CONFIG says idle_stop = true.\n"
		 "Without CONFIG, and without an active path in it, it waits to be given one:\n"
		 "busbar ctl SOCKET restart CONFIG, or POST /api/v2/restart.\n",
	.table = table,
	.operands_max = 1,
	.print_more = print_what_there_is,
};

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
	char control[256] = "", http[128] = "";
	char run[] = "run", option[] = "-d", *args[8];
	struct settings s = { 0 };
	int status, n = 0;

	tool_begin(argv);
	status = options_parse(&options, argc, argv, &s, NULL);
	if (status >= 0)
		return status;
	args[n++] = run;
	if (s.level) {
		args[n++] = option;
		args[n++] = (char *)s.level;
	}
	if (s.http) {
		snprintf(http, sizeof(http), "--http%s%s", *s.http ? "=" : "", s.http);
		args[n++] = http;
	} else {
		super_node_set_idle_stop(SUPER_NODE_IDLE_STOP_UNSERVED);
	}
	if (s.control)
		snprintf(control, sizeof(control), "--control=%s", s.control);
	else if (optind == argc)
		snprintf(control, sizeof(control), "--control=@villas-node-%d", (int)getpid());
	if (*control)
		args[n++] = control;
	if (optind < argc)
		args[n++] = argv[optind];
	args[n] = NULL;
	if (s.off)
		silence();
	return cli_run(n, args);
}
