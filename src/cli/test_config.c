/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar test-config` (villas-test-config) and `busbar conf2json` (villas-conf2json):
 * check and print a configuration without running it.
 */
#include <getopt.h>

#include "cli/tool.h"
#include "gateway/config/config.h"
#include "gateway/super_node/super_node.h"

static const char test_usage[] =
	"[OPTIONS] CONFIG\n"
	"\n"
	"Reads a configuration (libconfig or JSON, '-' for standard input) and reports\n"
	"all errors with file, line and key. Exit status 0 when there are none, else 1.\n"
	"\n"
	"  -c        check what settings mean together, too (always done)\n"
	"  -D        print the configuration as JSON\n";

static const char json_usage[] =
	"CONFIG\n"
	"\n"
	"Prints a configuration (libconfig or JSON, '-' for standard input) as JSON;\n"
	"includes and ${VARIABLES} are put in.\n"
	"\n";

int cli_test_config(int argc, char **argv)
{
	struct super_node *sn = NULL;
	struct config *c;
	bool dump = false;
	int opt, status;

	tool_begin(argv);
	while ((opt = getopt(argc, argv, TOOL_OPTIONS "cD")) != -1) {
		switch (opt) {
		case 'c':
			break;
		case 'D':
			dump = true;
			break;
		default:
			status = tool_option(argv, opt, test_usage);
			if (status >= 0)
				return status;
		}
	}
	if (optind + 1 != argc) {
		tool_print_usage(argv, test_usage, stderr);
		return CLI_USAGE;
	}
	if (config_load(argv[optind], &c))
		return CLI_FAILED;
	status = super_node_new(&sn, c) ? CLI_FAILED : CLI_OK;
	if (dump)
		status = tool_print_json(argv, config_root(c)) ?: status;
	super_node_destroy(sn);
	config_destroy(c);
	return status;
}

int cli_conf2json(int argc, char **argv)
{
	struct config *c;
	int opt, status;

	tool_begin(argv);
	while ((opt = getopt(argc, argv, TOOL_OPTIONS)) != -1) {
		status = tool_option(argv, opt, json_usage);
		if (status >= 0)
			return status;
	}
	if (optind + 1 != argc) {
		tool_print_usage(argv, json_usage, stderr);
		return CLI_USAGE;
	}
	if (config_load(argv[optind], &c))
		return CLI_FAILED;
	status = tool_print_json(argv, config_root(c));
	config_destroy(c);
	return status;
}
