/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar tune`: the command line of src/bench/tune. */
#define LOG_ROOM "tune"
#include "bench/tune/tune.h"

#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "util/container_of.h"
#include "util/log.h"

static const char usage[] =
	"usage: busbar tune [check] [--json] [--no-measure] [--time SECONDS] [--only NAMES]\n"
	"                   [--cpus LIST]\n"
	"       busbar tune list\n"
	"       busbar tune apply [--dry-run] [--only NAMES] [--cpus LIST]\n"
	"       busbar tune undo [--dry-run]\n"
	"       busbar tune hold [--latency US] [--] PROGRAM [ARGUMENTS]\n"
	"       busbar tune exec [--] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Looks at the settings of this host that decide how punctual a gateway is, and\n"
	"measures what takes its processors away. check changes nothing and needs no\n"
	"privilege. apply makes a profile of tuned from them and switches to it (root, package\n"
	"tuned); undo switches back to the profile that was active before. hold runs a program\n"
	"while no processor may sleep deeply; exec runs one in the partition that apply has made.\n"
	"\n"
	"  -j, --json        check: JSON\n"
	"  -m, --no-measure  check: only look, measure nothing\n"
	"  -t, --time S      check: loops run for so many seconds (1)\n"
	"  -o, --only NAMES  these settings, with commas between; 'list' names them\n"
	"  -c, --cpus LIST   processors to keep for gateways, such as 2-5,8\n"
	"  -n, --dry-run     apply, undo: only say what would be done\n"
	"  -l, --latency US  hold: longest time to wake, in microseconds (0)\n"
	"  -r, --root DIR    use a copy of /proc, /sys, /dev, /etc/tuned and tuned-adm in DIR\n"
	"  -h, --help        this text\n"
	"\n"
	"Status: 0; 1 something failed; 2 the command line is wrong.\n"
	"hold, exec: the program's; 126 not executable, 127 not found.\n";

enum action { CHECK, LIST, APPLY, UNDO, HOLD, EXEC };

/* Which options each action takes; all take -r and -h. */
static const struct {
	const char *name, *options;
} actions[] = {
	[CHECK] = { "check", "jmtoc" }, [LIST] = { "list", "" }, [APPLY] = { "apply", "noc" },
	[UNDO] = { "undo", "n" }, [HOLD] = { "hold", "l" }, [EXEC] = { "exec", "" },
};

static const struct option longs[] = {
	{ "json", no_argument, NULL, 'j' },
	{ "no-measure", no_argument, NULL, 'm' },
	{ "time", required_argument, NULL, 't' },
	{ "only", required_argument, NULL, 'o' },
	{ "cpus", required_argument, NULL, 'c' },
	{ "dry-run", no_argument, NULL, 'n' },
	{ "latency", required_argument, NULL, 'l' },
	{ "root", required_argument, NULL, 'r' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool parse_seconds(const char *text, uint64_t *ns)
{
	char *end;
	double seconds = strtod(text, &end);

	if (end == text || *end || !(seconds >= 0.01 && seconds <= 3600)) {
		log_error("--time '%s': expected seconds from 0.01 to 3600", text);
		return false;
	}
	*ns = (uint64_t)(seconds * 1e9);
	return true;
}

static bool parse_latency(const char *text, int32_t *us)
{
	char *end;
	long value = strtol(text, &end, 10);

	if (end == text || *end || value < 0 || value > INT32_MAX) {
		log_error("--latency '%s': expected microseconds, 0 or more", text);
		return false;
	}
	*us = (int32_t)value;
	return true;
}

/* The root without slashes at its end; "/" is the host. */
static const char *parse_root(char *text)
{
	size_t length = strlen(text);

	while (length && text[length - 1] == '/')
		text[--length] = '\0';
	return text;
}

static bool set_option(int opt, struct tune_options *o)
{
	switch (opt) {
	case 'j': o->json = true; break;
	case 'm': o->no_measure = true; break;
	case 't': return parse_seconds(optarg, &o->measure_ns);
	case 'o': o->only = optarg; break;
	case 'c': o->cpus = optarg; break;
	case 'n': o->dry_run = true; break;
	case 'l': return parse_latency(optarg, &o->latency_us);
	default: o->root = parse_root(optarg); break;
	}
	return true;
}

static const char *long_name(int opt)
{
	for (const struct option *l = longs; l->name; l++)
		if (l->val == opt)
			return l->name;
	return "?";
}

/* 0: go on; 1: end with *status. */
static int read_options(int argc, char **argv, enum action action, struct tune_options *o,
			int *status)
{
	bool starts = action == HOLD || action == EXEC;
	int opt;

	*status = CLI_USAGE;
	/* '+': options after PROGRAM belong to the program. */
	while ((opt = getopt_long(argc, argv, "+jmt:o:c:nl:r:h", longs, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			*status = CLI_OK;
			return 1;
		}
		if (opt == '?')
			return 1;
		if (opt != 'r' && !strchr(actions[action].options, opt)) {
			log_error("'busbar tune %s' has no option --%s, see 'busbar tune --help'",
				  actions[action].name, long_name(opt));
			return 1;
		}
		if (!set_option(opt, o))
			return 1;
	}
	if (starts && optind == argc) {
		log_error("'busbar tune %s' needs a program to start", actions[action].name);
		return 1;
	}
	if (!starts && optind < argc) {
		log_error("'busbar tune %s' does not take '%s', see 'busbar tune --help'",
			  actions[action].name, argv[optind]);
		return 1;
	}
	return 0;
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
	if (read_options(argc, argv, (enum action)action, &o, &status))
		return status;
	return run((enum action)action, &o, argv + optind);
}
