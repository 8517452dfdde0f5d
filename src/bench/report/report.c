/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar report`: command line, and the file that it writes. */
#define LOG_ROOM "bench/report"
#include "bench/report/report.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench/kind/parameters.h"
#include "bench/report/data.h"
#include "bench/report/page.h"
#include "bench/report/recording.h"
#include "bench/report/subnet.h"
#include "util/log.h"
#include "util/options.h"
#include "util/replace_file.h"

#define LIMIT_US_DEFAULT 50.0

struct settings {
	const char *out, *format, *types;
	double limit_us;
	bool recording;
	bool forced;     /* --recording was given */
	char *path;      /* where it is written to; owned */
	char *command;   /* the command line; owned */
};

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	stopped = number;
}

static bool is_stopped(void)
{
	return stopped;
}

static const struct option_entry table[] = {
	{ "-o, --out FILE: write FILE; default DIR/report.html, report.html of two runs and of "
	  "files; - is standard output",
	  OPTION_TEXT(struct settings, out) },
	{ "-r, --recording: the arguments are recordings, whatever they look like: written by a "
	  "node of type file, or by the hook stats in its format json",
	  OPTION_FLAG(struct settings, forced) },
	{ "-f, --format FMT: format of recordings: villas.human, csv ... or {\"type\": \"csv\", "
	  "...}; default by the file's name",
	  OPTION_TEXT(struct settings, format) },
	{ "-t, --types TYPES: types of their values, such as 12f3i; default floats",
	  OPTION_TEXT(struct settings, types) },
	{ "-l, --limit US: of recordings: latencies above it are counted, in microseconds; 50",
	  OPTION_REAL(struct settings, limit_us, 0.001, 1e9) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar report",
	.synopsis = "DIR [DIR] [--out FILE.html]\nFILE... [--out FILE.html]",
	.about = "Shows the results of a benchmark's run (DIR), two runs over each other, what a gateway\n"
		 "recorded, or a subnet (FILE: what busbar fabric show or simulate prints with --json), as\n"
		 "one HTML file, which needs no other file and no network.\n",
	.table = table,
	.end = "Exit status: 0 written, 1 failed, 2 wrong usage.\n",
	.any_operands = true,
};

/* "busbar report: WHAT 'ARGUMENT'". */
static int usage(const char *what, const char *argument)
{
	fprintf(stderr, "busbar report: %s '%s'; see 'busbar report --help'\n", what, argument);
	return OPTIONS_WRONG;
}

/* A run is a folder; what is no folder, but there, is a recording. */
static bool is_recording(const char *path)
{
	struct stat st;

	return !stat(path, &st) && !S_ISDIR(st.st_mode);
}

static int check_arguments(int count, char **arguments, struct settings *s)
{
	if (!count && s->recording)
		return usage("there is no file after", "--recording");
	if (!count) {
		fputs("busbar report: the folder of a run is missing; see 'busbar report --help'\n",
		      stderr);
		return OPTIONS_WRONG;
	}
	s->recording |= is_recording(arguments[0]);
	for (int i = 1; i < count && !s->recording; i++)
		if (is_recording(arguments[i]))
			return usage("a run and a recording do not go together; no folder is",
				     arguments[i]);
	if (!s->recording && count > 2)
		return usage("one folder, or two, too many is", arguments[2]);
	if (!s->recording && (s->format || s->types))
		return usage("only of recordings there is", s->format ? "--format" : "--types");
	return OPTIONS_GO_ON;
}

/* OPTIONS_GO_ON, or the exit status. */
static int parse(int argc, char **argv, struct settings *s)
{
	int status = options_parse(&options, argc, argv, s, NULL);

	s->recording = s->forced;
	return status == OPTIONS_GO_ON ? check_arguments(argc - optind, argv + optind, s) : status;
}

static char *command_line(int argc, char **argv)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	fputs("busbar report", out);
	for (int i = 1; i < argc; i++) {
		putc(' ', out);
		parameters_print_word(out, argv[i]);
	}
	if (!fclose(out))
		return text;
	free(text);
	return NULL;
}

static int load_recordings(json_t *data, const struct settings *s, int argc, char **argv)
{
	const struct recording_options o = {
		.format = s->format,
		.types = s->types,
		.limit_ns = (int64_t)(s->limit_us * 1000),
		.command = s->command,
	};
	json_t *run = report_run_add(data, argc - optind == 1 ? argv[optind] : "recordings", NULL);
	int ret = run ? 0 : -ENOMEM;

	for (int i = optind; i < argc && !ret; i++)
		ret = stopped ? -EINTR : recording_add(run, argv[i], &o);
	return ret;
}

/* Files of subnets; -ENOENT: the first one is none. */
static int load_subnets(json_t *data, int argc, char **argv)
{
	int ret = 0;

	for (int i = optind; i < argc && !ret; i++) {
		ret = stopped ? -EINTR : subnet_add(data, argv[i]);
		if (ret == -ENOENT && i > optind)
			return log_fail(-EINVAL, "%s is no JSON of a subnet, as %s is; a page shows only one kind",
					argv[i], argv[optind]);
	}
	if (!ret)
		json_object_set_new(data, "kind", json_string("subnet"));
	return ret;
}

static int load(json_t *data, const struct settings *s, int argc, char **argv)
{
	int ret;

	if (s->recording && !s->forced && !s->format && !s->types) {
		ret = load_subnets(data, argc, argv);
		if (ret != -ENOENT)
			return ret;
	}
	if (s->recording)
		return load_recordings(data, s, argc, argv);
	return argc - optind == 2 ? report_load_two(data, argv[optind], argv[optind + 1]) :
				    report_load(data, argv[optind]);
}

static size_t cases_of(const json_t *data)
{
	const json_t *run;
	size_t i, n = 0;

	json_array_foreach(json_object_get(data, "runs"), i, run)
		n += json_array_size(json_object_get(run, "cases"));
	return n;
}

static void print_made(const json_t *data, const char *path, size_t size)
{
	size_t subnets = json_array_size(json_object_get(data, "subnets"));

	printf("%s: %zu %s, %zu KiB\n", path, subnets ? subnets : cases_of(data),
	       !subnets ? "cases" : subnets == 1 ? "subnet" : "subnets", size / 1024);
}

static int write_page(const json_t *data, const struct settings *s)
{
	char *text = NULL;
	size_t size = 0;
	int ret = report_page_make(data, &text, &size);

	if (!ret)
		ret = replace_file(s->path, text, size, is_stopped);
	free(text);
	if (ret && ret != -EINTR)
		log_error("the report %s cannot be written: %s", s->path, strerror(-ret));
	if (!ret && strcmp(s->path, "-"))
		print_made(data, s->path, size);
	return ret;
}

static int prepare(int argc, char **argv, struct settings *s)
{
	s->command = command_line(argc, argv);
	if (s->out)
		s->path = strdup(s->out);
	else if (s->recording || argc - optind == 2)
		s->path = strdup("report.html");
	else if (asprintf(&s->path, "%s/report.html", argv[optind]) < 0)
		s->path = NULL;
	return s->command && s->path ? 0 : -ENOMEM;
}

static int make(int argc, char **argv, struct settings *s)
{
	int ret = prepare(argc, argv, s);
	json_t *data = json_pack("{s:i, s:o, s:s, s:[]}", "layout", REPORT_LAYOUT, "command",
				 report_string(s->command), "kind", s->recording ? "recording" :
				 "run", "runs");

	ret = ret ?: (data ? load(data, s, argc, argv) : -ENOMEM) ?: write_page(data, s);
	json_decref(data);
	free(s->path);
	free(s->command);
	return ret;
}

int bench_report_main(int argc, char **argv)
{
	const struct sigaction a = { .sa_handler = on_signal };
	struct sigaction before_int, before_term;
	struct settings s = { .limit_us = LIMIT_US_DEFAULT };
	int status = parse(argc, argv, &s), ret;

	if (status != OPTIONS_GO_ON)
		return status;
	stopped = 0;
	sigaction(SIGINT, NULL, &before_int);
	sigaction(SIGTERM, NULL, &before_term);
	/* What the caller ignores (nohup, a job in the background) stays ignored. */
	if (before_int.sa_handler != SIG_IGN)
		sigaction(SIGINT, &a, NULL);
	if (before_term.sa_handler != SIG_IGN)
		sigaction(SIGTERM, &a, NULL);
	ret = make(argc, argv, &s);
	status = stopped ? 128 + stopped : ret ? 1 : 0;
	sigaction(SIGINT, &before_int, NULL);
	sigaction(SIGTERM, &before_term, NULL);
	return status;
}
