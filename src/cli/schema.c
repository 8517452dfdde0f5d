/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar schema`: the JSON Schema of configurations, for editors and checkers. */
#define LOG_ROOM "schema"
#include <stdio.h>

#include "cli/cli.h"
#include "gateway/super_node/schema.h"
#include "util/log.h"
#include "util/options.h"

struct settings {
	bool compact;
};

static const struct option_entry table[] = {
	{ "-c, --compact: on one line", OPTION_FLAG(struct settings, compact) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar schema",
	.synopsis = "[-c]",
	.about = "Prints the JSON Schema (draft 2020-12) of a gateway's configuration: all keys\n"
		 "of this build, of its node-types, hooks and formats.\n",
	.table = table,
};

int cli_schema(int argc, char **argv)
{
	struct settings s = { 0 };
	int ret = options_parse(&options, argc, argv, &s, NULL);
	json_t *schema;

	if (ret >= 0)
		return ret;
	log_init(LOG_WARN);
	schema = config_schema();
	ret = schema ? json_dumpf(schema, stdout, s.compact ? JSON_COMPACT : JSON_INDENT(2)) : -1;
	putchar('\n');
	json_decref(schema);
	return ret || fflush(stdout) ? CLI_FAILED : CLI_OK;
}
