/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar check`: reports all errors in configuration files, without opening a device
 * or a data file that they name.
 */
#define LOG_ROOM "check"
#include <getopt.h>
#include <stdio.h>

#include "cli/cli.h"
#include "gateway/config/config.h"
#include "gateway/super_node/schema.h"
#include "gateway/super_node/super_node.h"
#include "util/log.h"

static const char usage[] =
	"usage: busbar check [options] CONFIG...\n"
	"\n"
	"Reads configurations (libconfig or JSON, '-' for standard input) and reports\n"
	"all errors with file, line and key. Nothing is started.\n"
	"\n"
	"  -j, --json   print the configuration as JSON, includes and ${VARIABLES}\n"
	"               put in\n"
	"  -e, --explain [WHAT]\n"
	"               tell what a key, group, node-type, hook or format means\n"
	"               (paths.queuelen, file.in.eof, logging, scale); without WHAT\n"
	"               list them\n"
	"  -q           say nothing about files without errors\n"
	"  -h, --help   this text\n"
	"\n"
	"Exit status: 0 no errors, 2 errors or wrong usage.\n";

static int check(const char *file, bool quiet, bool json)
{
	struct super_node *sn = NULL;
	struct config *c;
	unsigned errors;
	int ret;

	if (config_load(file, &c))
		return CLI_USAGE;
	ret = super_node_new(&sn, c);
	errors = config_errors(c);
	if (ret)
		fprintf(stderr, "%s: %u error%s\n", file, errors,
			errors == 1 ? "" : "s");
	else if (!quiet && !json)
		printf("%s: ok\n", file);
	if (!ret && json) {
		json_dumpf(config_root(c), stdout, JSON_INDENT(2));
		putchar('\n');
	}
	super_node_destroy(sn);
	config_destroy(c);
	return ret ? CLI_USAGE : CLI_OK;
}

int cli_check(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "explain", no_argument, NULL, 'e' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	bool quiet = false, json = false, explain = false;
	int opt, ret = CLI_OK;

	while ((opt = getopt_long(argc, argv, "qjeh", longs, NULL)) != -1) {
		switch (opt) {
		case 'q':
			quiet = true;
			break;
		case 'e':
			explain = true;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return CLI_OK;
		default:
			fputs(usage, stderr);
			return CLI_USAGE;
		}
	}
	if (explain && argc - optind <= 1) {
		log_init(LOG_WARN);
		return config_explain(argv[optind], stdout) ? CLI_USAGE : CLI_OK;
	}
	if (optind == argc || explain) {
		fputs(usage, stderr);
		return CLI_USAGE;
	}
	log_init(LOG_WARN);
	for (int i = optind; i < argc; i++)
		if (check(argv[i], quiet, json))
			ret = CLI_USAGE;
	return ret;
}
