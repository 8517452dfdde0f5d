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
#include "util/options.h"

struct settings {
	bool quiet, json, explain;
};

static const struct option_entry table[] = {
	{ "-j, --json: print the configuration as JSON, includes and ${VARIABLES} put in",
	  OPTION_FLAG(struct settings, json) },
	{ "-e, --explain: tell what a key, group, node-type, hook or format means (paths.queuelen, file.in.eof, "
			   "logging, scale); without WHAT list them", OPTION_FLAG(struct settings, explain) },
	{ "-q: say nothing about files without errors", OPTION_FLAG(struct settings, quiet) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar check",
	.synopsis = "[-q] [--json] CONFIG...\n--explain [WHAT]",
	.about = "Reads configurations (libconfig or JSON, '-' for standard input) and reports\n"
		 "all errors with file, line and key. Nothing is started.\n",
	.table = table,
	.any_operands = true,
	.end = "Exit status: 0 no errors, 2 errors or wrong usage.\n",
};

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
	struct settings s = { 0 };
	int ret = options_parse(&options, argc, argv, &s, NULL);

	if (ret >= 0)
		return ret;
	if (s.explain ? argc - optind > 1 : optind == argc)
		return options_usage(&options, argv);
	log_init(LOG_WARN);
	if (s.explain)
		return config_explain(argv[optind], stdout) ? CLI_USAGE : CLI_OK;
	ret = CLI_OK;
	for (int i = optind; i < argc; i++)
		if (check(argv[i], s.quiet, s.json))
			ret = CLI_USAGE;
	return ret;
}
