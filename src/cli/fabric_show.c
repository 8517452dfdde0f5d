/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar fabric show`: asks for everything, once or again and again. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/fabric.h"
#include "util/log.h"
#include "util/options.h"

struct show_options {
	bool json, all, watch;
};

static const struct option_entry table[] = {
	{ "-j, --json: as JSON", OPTION_FLAG(struct show_options, json) },
	{ "-a, --all: also ports that carried nothing", OPTION_FLAG(struct show_options, all) },
	{ "-w, --watch: every second what changed, until Ctrl-C", OPTION_FLAG(struct show_options, watch) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar fabric show",
	.synopsis = "[OPTIONS] [NAME]",
	.about = "Shows the nodes of a running fabric, the state of their ports, what they carried, and\n"
		 "the programs that are plugged in.\n",
	.table = table,
	.operands_max = 1,
};

static json_t *ask(const char *name)
{
	json_error_t error;
	size_t bytes;
	char *text = fabric_ask(name, "show", &bytes);
	json_t *o;

	if (!text)
		return NULL;
	o = json_loadb(text, bytes, 0, &error);
	if (!o)
		log_error("the fabric's answer is no JSON: %s", error.text);
	free(text);
	return o;
}

static int show_json(const char *name)
{
	size_t bytes;
	char *text = fabric_ask(name, "show", &bytes);

	if (!text)
		return CLI_FAILED;
	fwrite(text, 1, bytes, stdout);
	free(text);
	return CLI_OK;
}

static int watch(const char *name, bool all)
{
	json_t *before = ask(name), *now;

	while (before) {
		if (nanosleep(&(struct timespec){ .tv_sec = 1 }, NULL))
			break;
		now = ask(name);
		if (now) {
			fabric_print(now, before, all);
			putchar('\n');
			if (fflush(stdout)) {
				json_decref(now);
				break;
			}
		}
		json_decref(before);
		before = now;
	}
	json_decref(before);
	return CLI_FAILED; /* the fabric has ended */
}

int cli_fabric_show(int argc, char **argv)
{
	struct show_options set = { 0 };
	int status = options_parse(&options, argc, argv, &set, NULL);
	const char *name = FABRIC_NAME_DEFAULT;
	json_t *o;

	if (status >= 0)
		return status;
	if (set.json && set.watch)
		return options_wrong(&options, argv, "--watch prints no JSON");
	if (optind < argc)
		name = argv[optind];
	if (set.json)
		return show_json(name);
	if (set.watch)
		return watch(name, set.all);
	o = ask(name);
	if (!o)
		return CLI_FAILED;
	fabric_print(o, NULL, set.all);
	json_decref(o);
	return CLI_OK;
}
