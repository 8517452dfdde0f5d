/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar tune`: the command line of src/bench/tune. */
#define LOG_ROOM "tune"
#include "bench/tune/tune.h"

#include <getopt.h>
#include <string.h>

#include "cli/cli.h"
#include "util/container_of.h"
#include "util/log.h"
#include "util/options.h"

enum action { CHECK, LIST, APPLY, UNDO, HOLD, EXEC };

static const struct {
	const char *name, *options; /* those that the action takes; all take --root */
} actions[] = {
	[CHECK] = { "check", "jmtoc" }, [LIST] = { "list", "" }, [APPLY] = { "apply", "noc" },
	[UNDO] = { "undo", "n" }, [HOLD] = { "hold", "l" }, [EXEC] = { "exec", "" },
};

/* Takes the root without slashes at its end; "/" is the host. */
static int take_root(const struct option_given *g)
{
	char *text = (char *)g->value;
	size_t length = strlen(text);

	while (length && text[length - 1] == '/')
		text[--length] = '\0';
	*(const char **)option_member(g) = text;
	return OPTIONS_GO_ON;
}

static const struct option_entry table[] = {
	{ "-j, --json: check: JSON", OPTION_FLAG(struct tune_options, json) },
	{ "-m, --no-measure: check: only look, measure nothing", OPTION_FLAG(struct tune_options, no_measure) },
	{ "-t, --time S: check: loops run for so many seconds (1)",
	  OPTION_SECONDS(struct tune_options, measure_ns, 0.01, 3600) },
	{ "-o, --only NAMES: these settings, with commas between; 'list' names them",
	  OPTION_TEXT(struct tune_options, only) },
	{ "-c, --cpus LIST: processors to keep for gateways, such as 2-5,8",
	  OPTION_TEXT(struct tune_options, cpus) },
	{ "-n, --dry-run: apply, undo: only say what would be done",
	  OPTION_FLAG(struct tune_options, dry_run) },
	{ "-l, --latency US: hold: longest time to wake, in microseconds (0)",
	  OPTION_WHOLE(struct tune_options, latency_us, 0, INT32_MAX) },
	{ "-r, --root DIR: use a copy of /proc, /sys, /dev, /etc/tuned and tuned-adm in DIR",
	  OPTION_TAKE(struct tune_options, root, take_root) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar tune",
	.synopsis = "[check] [--json] [--no-measure] [--time SECONDS] [--only NAMES]\n"
		    " [--cpus LIST]\n"
		    "list\n"
		    "apply [--dry-run] [--only NAMES] [--cpus LIST]\n"
		    "undo [--dry-run]\n"
		    "hold [--latency US] [--] PROGRAM [ARGUMENTS]\n"
		    "exec [--] PROGRAM [ARGUMENTS]",
	.about = "Looks at the settings of this host that decide how punctual a gateway is, and\n"
		 "measures what takes its processors away. check changes nothing and needs no\n"
		 "privilege. apply makes a profile of tuned from them and switches to it (root, package\n"
		 "tuned); undo switches back to the profile that was active before. hold runs a program\n"
		 "while no processor may sleep deeply; exec runs one in the partition that apply has made.\n",
	.table = table,
	.any_operands = true,
	.in_order = true, /* options behind PROGRAM belong to the program */
	.end = "Status: 0; 1 something failed; 2 the command line is wrong.\n"
	       "hold, exec: the program's; 126 not executable, 127 not found.\n",
};

/* Are the options that were given, and the operands, those of this action? Logs if not. */
static bool agree(enum action action, uint64_t given, const char *operand)
{
	bool starts = action == HOLD || action == EXEC;
	const char *name = actions[action].name;

	for (size_t i = 0; table[i].text; i++) {
		char letter = table[i].text[1];

		if (!(given >> i & 1) || letter == 'r' || strchr(actions[action].options, letter))
			continue;
		log_error("'busbar tune %s' has no option %.*s, see 'busbar tune --help'", name,
			  (int)strcspn(table[i].text + 4, " :"), table[i].text + 4);
		return false;
	}
	if (starts && !operand)
		log_error("'busbar tune %s' needs a program to start", name);
	else if (!starts && operand)
		log_error("'busbar tune %s' does not take '%s', see 'busbar tune --help'", name, operand);
	return starts == !!operand;
}

static int run(enum action action, const struct tune_options *o, char **program)
{
	switch (action) {
	case LIST:
		tune_list(stdout);
		return CLI_OK;
	case APPLY: return tune_apply_main(o, stdout);
	case UNDO: return tune_undo_main(o, stdout);
	case HOLD: return tune_hold_main(o, program);
	case EXEC: return tune_exec_main(o, program);
	default: return tune_check_main(o, stdout);
	}
}

int cli_tune(int argc, char **argv)
{
	struct tune_options o = TUNE_OPTIONS_DEFAULT;
	size_t action = CHECK;
	uint64_t given;
	int status;

	if (argc > 1 && argv[1][0] != '-') {
		while (action < ARRAY_SIZE(actions) && strcmp(argv[1], actions[action].name))
			action++;
		if (action == ARRAY_SIZE(actions)) {
			log_error("'busbar tune' has no '%s': check, list, apply, undo, hold or exec",
				  argv[1]);
			return CLI_USAGE;
		}
		argc--;
		argv++;
	}
	status = options_parse(&options, argc, argv, &o, &given);
	if (status >= 0)
		return status;
	if (!agree((enum action)action, given, argv[optind]))
		return CLI_USAGE;
	return run((enum action)action, &o, argv + optind);
}
