/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding a sub-command by name, and the nearest one when it is misspelt. */
#include "cli/cli.h"

#include <string.h>

#include "util/container_of.h"

#define NAME_MAX_LEN 31

/* Insertions, deletions, replacements and swaps of neighbours between names. */
static unsigned edit_distance(const char *a, const char *b)
{
	unsigned rows[3][NAME_MAX_LEN + 2];
	size_t la = strnlen(a, NAME_MAX_LEN), lb = strnlen(b, NAME_MAX_LEN);

	for (size_t j = 0; j <= lb; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= la; i++) {
		unsigned *now = rows[i % 3], *last = rows[(i + 2) % 3];
		unsigned *older = rows[(i + 1) % 3];

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= lb; j++) {
			unsigned d = last[j - 1] + (a[i - 1] != b[j - 1]);

			d = MIN(d, MIN(last[j], now[j - 1]) + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] &&
			    a[i - 2] == b[j - 1])
				d = MIN(d, older[j - 2] + 1);
			now[j] = d;
		}
	}
	return rows[la % 3][lb];
}

static const char *nearest(const struct cli_command *table, const char *name)
{
	unsigned best = 4;
	const char *found = NULL;

	for (const struct cli_command *c = table; c->name; c++) {
		unsigned d = edit_distance(name, c->name);

		/* Three changes in a four-letter word prove nothing. */
		if (d < best && d * 2 <= strlen(c->name)) {
			best = d;
			found = c->name;
		}
	}
	return found;
}

void cli_print_commands(const struct cli_command *table, FILE *out)
{
	for (const struct cli_command *c = table; c->name; c++)
		fprintf(out, "  %-12s %s\n", c->name, c->help);
}

int cli_dispatch(const char *program, const struct cli_command *table, int argc,
		 char **argv)
{
	const char *hint;

	for (const struct cli_command *c = table; c->name; c++)
		if (!strcmp(argv[1], c->name))
			return c->fn(argc - 1, argv + 1);
	hint = nearest(table, argv[1]);
	if (hint)
		fprintf(stderr, "%s: '%s' is not a command, did you mean '%s'?\n",
			program, argv[1], hint);
	else
		fprintf(stderr, "%s: '%s' is not a command, see '%s --help'\n",
			program, argv[1], program);
	return CLI_USAGE;
}
