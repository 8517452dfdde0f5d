/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar schema`: the JSON Schema of configurations, for editors and checkers. */
#define LOG_ROOM "schema"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "gateway/super_node/schema.h"
#include "util/container_of.h"
#include "util/log.h"

static const char usage[] =
	"usage: busbar schema [-c]\n"
	"\n"
	"Prints the JSON Schema (draft 2020-12) of a gateway's configuration: all keys\n"
	"of this build, of its node-types, hooks and formats.\n"
	"\n"
	"  -c, --compact  on one line\n"
	"  -h, --help     this text\n";

int cli_schema(int argc, char **argv)
{
	static const struct option longs[] = {
		{ "compact", no_argument, NULL, 'c' },
		{ "help", no_argument, NULL, 'h' },
		{ NULL, 0, NULL, 0 },
	};
	size_t flags = JSON_INDENT(2);
	json_t *schema;
	int opt, ret;

	while ((opt = getopt_long(argc, argv, "ch", longs, NULL)) != -1) {
		switch (opt) {
		case 'c':
			flags = JSON_COMPACT;
			break;
		case 'h':
			fputs(usage, stdout);
			return CLI_OK;
		default:
			fputs(usage, stderr);
			return CLI_USAGE;
		}
	}
	if (optind != argc) {
		fputs(usage, stderr);
		return CLI_USAGE;
	}
	log_init(LOG_WARN);
	schema = config_schema();
	ret = schema ? json_dumpf(schema, stdout, flags) : -1;
	putchar('\n');
	json_decref(schema);
	return ret || fflush(stdout) ? CLI_FAILED : CLI_OK;
}
