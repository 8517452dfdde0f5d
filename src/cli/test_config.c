/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar test-config` (villas-test-config) and `busbar conf2json` (villas-conf2json):
 * check and print a configuration without running it.
 */
#include <getopt.h>

#include "cli/tool.h"
#include "gateway/config/config.h"
#include "gateway/super_node/super_node.h"
#include "util/options.h"

struct settings {
	bool dump, check;
};

static const struct option_entry test_table[] = {
	{ "-c: check what settings mean together, too (always done)", OPTION_FLAG(struct settings, check) },
	{ "-D: print the configuration as JSON", OPTION_FLAG(struct settings, dump) },
	TOOL_OPTIONS,
};

static const struct options test_options = {
	.synopsis = "[OPTIONS] CONFIG",
	.about = "Reads a configuration (libconfig or JSON, '-' for standard input) and reports\n"
		 "all errors with file, line and key. Exit status 0 when there are none, else 1.\n",
	.table = test_table,
	.operands_min = 1,
	.operands_max = 1,
};

static const struct option_entry json_table[] = { TOOL_OPTIONS };

static const struct options json_options = {
	.synopsis = "CONFIG",
	.about = "Prints a configuration (libconfig or JSON, '-' for standard input) as JSON;\n"
		 "includes and ${VARIABLES} are put in.\n",
	.table = json_table,
	.operands_min = 1,
	.operands_max = 1,
};

int cli_test_config(int argc, char **argv)
{
	struct super_node *sn = NULL;
	struct settings s = { 0 };
	struct config *c;
	int status;

	tool_begin(argv);
	status = options_parse(&test_options, argc, argv, &s, NULL);
	if (status >= 0)
		return status;
	if (config_load(argv[optind], &c))
		return CLI_FAILED;
	status = super_node_new(&sn, c) ? CLI_FAILED : CLI_OK;
	if (s.dump)
		status = tool_print_json(argv, config_root(c)) ?: status;
	super_node_destroy(sn);
	config_destroy(c);
	return status;
}

int cli_conf2json(int argc, char **argv)
{
	struct config *c;
	int status;

	tool_begin(argv);
	status = options_parse(&json_options, argc, argv, NULL, NULL);
	if (status >= 0)
		return status;
	if (config_load(argv[optind], &c))
		return CLI_FAILED;
	status = tool_print_json(argv, config_root(c));
	config_destroy(c);
	return status;
}
