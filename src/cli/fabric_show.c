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

static const char help[] =
	"usage: busbar fabric show [OPTIONS] [NAME]\n\n"
	"Shows the nodes of a running fabric, the state of their ports, what they carried, and\n"
	"the programs that are plugged in.\n\n"
	"  -j, --json      as JSON\n"
	"  -a, --all       also ports that carried nothing\n"
	"  -w, --watch     every second what changed, until Ctrl-C\n"
	"  -h, --help      this text\n";

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
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },  { "all", no_argument, NULL, 'a' },
		{ "watch", no_argument, NULL, 'w' }, { "help", no_argument, NULL, 'h' }, { 0 },
	};
	bool json = false, all = false, again = false;
	const char *name = FABRIC_NAME_DEFAULT;
	json_t *o;
	int opt;

	while ((opt = getopt_long(argc, argv, "jawh", longs, NULL)) != -1)
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'a':
			all = true;
			break;
		case 'w':
			again = true;
			break;
		case 'h':
			fputs(help, stdout);
			return CLI_OK;
		default:
			return CLI_USAGE;
		}
	if (argc - optind > 1 || (json && again)) {
		fputs(help, stderr);
		return CLI_USAGE;
	}
	if (optind < argc)
		name = argv[optind];
	if (json)
		return show_json(name);
	if (again)
		return watch(name, all);
	o = ask(name);
	if (!o)
		return CLI_FAILED;
	fabric_print(o, NULL, all);
	json_decref(o);
	return CLI_OK;
}
