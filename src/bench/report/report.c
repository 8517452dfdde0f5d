/* SPDX-License-Identifier: BSD-2-Clause */
/* `busbar report`: command line, and the file that it writes. */
#define LOG_ROOM "bench/report"
#include "bench/report/report.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/report/gnuplot.h"
#include "bench/report/page.h"
#include "bench/report/recording.h"
#include "bench/report/table.h"
#include "util/log.h"
#include "util/replace_file.h"

#define STATUS_USAGE 2
#define LIMIT_US_DEFAULT 50.0
#define LIMIT_US_MAX 1e9

struct settings {
	const char *out, *svg_dir, *format, *types;
	double limit_us;
	bool recording;
	char *path;      /* where it is written to; owned */
	char *command;   /* the command line; owned */
};

static void print_help(FILE *out)
{
	fputs("usage: busbar report DIR [--out FILE.html]\n"
	      "       busbar report --recording FILE... [--out FILE.html]\n"
	      "\n"
	      "Shows the results of a benchmark's run (DIR), or what a gateway recorded, as one\n"
	      "HTML file with figures, which needs no other file and no network.\n"
	      "\n"
	      "  -o, --out FILE        write FILE; default DIR/report.html, report.html of\n"
	      "                        recordings; - is standard output\n"
	      "  -r, --recording       FILEs were written by a node of type file, or by the\n"
	      "                        hook stats in its format json\n"
	      "  -f, --format FMT      format of recordings: villas.human, csv ... or\n"
	      "                        {\"type\": \"csv\", ...}; default by the file's name\n"
	      "  -t, --types TYPES     types of their values, such as 12f3i; default floats\n"
	      "  -l, --limit US        of recordings: latencies above it are counted, in\n"
	      "                        microseconds; 50\n"
	      "  -s, --svg DIR         write each figure as an SVG file into DIR, too\n"
	      "  -h, --help            this text\n"
	      "\n"
	      "Figures need the program gnuplot (Debian: gnuplot-nox); without it there are\n"
	      "tables. Exit status: 0 written, 1 failed or a figure is missing, 2 wrong usage.\n",
	      out);
}

/* "busbar report: WHAT 'ARGUMENT'"; the exit status plus 1. */
static int usage(const char *what, const char *argument)
{
	fprintf(stderr, "busbar report: %s '%s'; see 'busbar report --help'\n", what, argument);
	return STATUS_USAGE + 1;
}

/* 0: go on; else the exit status plus 1. */
static int parse(int argc, char **argv, struct settings *s)
{
	static const struct option options[] = {
		{ "out", required_argument, NULL, 'o' },
		{ "recording", no_argument, NULL, 'r' },
		{ "format", required_argument, NULL, 'f' },
		{ "types", required_argument, NULL, 't' },
		{ "limit", required_argument, NULL, 'l' },
		{ "svg", required_argument, NULL, 's' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	char *end;
	int c;

	s->limit_us = LIMIT_US_DEFAULT;
	while ((c = getopt_long(argc, argv, "o:rf:t:l:s:h", options, NULL)) >= 0) {
		switch (c) {
		case 'o': s->out = optarg; break;
		case 'r': s->recording = true; break;
		case 'f': s->format = optarg; break;
		case 't': s->types = optarg; break;
		case 's': s->svg_dir = optarg; break;
		case 'h': print_help(stdout); return 1;
		case 'l':
			s->limit_us = strtod(optarg, &end);
			if (end != optarg && !*end && s->limit_us >= 0.001 &&
			    s->limit_us <= LIMIT_US_MAX)
				break;
			return usage("no number of microseconds from 0.001 to 1e9 is the "
				     "--limit", optarg);
		default:
			print_help(stderr);
			return STATUS_USAGE + 1;
		}
	}
	if (optind == argc && s->recording)
		return usage("there is no file after", "--recording");
	if (optind == argc) {
		fputs("busbar report: the folder of a run is missing; see 'busbar report --help'\n",
		      stderr);
		return STATUS_USAGE + 1;
	}
	if (!s->recording && argc - optind > 1)
		return usage("one folder at a time, too many is", argv[optind + 1]);
	if (!s->recording && (s->format || s->types))
		return usage("only with --recording there is", s->format ? "--format" : "--types");
	return 0;
}

static char *command_line(int argc, char **argv)
{
	json_t *words = json_pack("[s, s]", "busbar", "report");
	char *text;

	for (int i = 1; i < argc; i++) {
		json_t *word = json_string(argv[i]); /* NULL: not UTF-8 */

		json_array_append_new(words, word ? word : json_null());
	}
	text = table_command(words);
	json_decref(words);
	return text;
}

static int load_recordings(struct report *r, const struct settings *s, int argc, char **argv)
{
	struct recording_options o = {
		.format = s->format,
		.types = s->types,
		.limit_ns = (int64_t)(s->limit_us * 1000),
		.command = s->command,
	};
	int ret = 0;

	r->floor_ns = NAN;
	r->title = strdup(argc - optind == 1 ? argv[optind] : "recordings");
	for (int i = optind; i < argc && !ret; i++)
		ret = report_gnuplot_stopped() ? -EINTR : recording_add(r, argv[i], &o);
	return ret ? ret : report_group_cases(r);
}

static int make_page(struct page *p, char **text, size_t *size)
{
	int ret;

	p->out = open_memstream(text, size);
	if (!p->out)
		return -ENOMEM;
	ret = page_write(p);
	if (fclose(p->out) && !ret)
		ret = -ENOMEM;
	return ret;
}

static bool is_stopped(void)
{
	return report_gnuplot_stopped();
}

static int status_of(const struct page *p, const char *path, int ret)
{
	if (ret == -EINTR || report_gnuplot_stopped())
		return 128 + (report_gnuplot_stopped() ? report_gnuplot_stopped() : SIGINT);
	if (ret) {
		log_error("the report %s cannot be written: %s", path, strerror(-ret));
		return 1;
	}
	if (!p->draw)
		log_warn("gnuplot was not found: the figures are left out, the report has "
			 "tables; install gnuplot-nox");
	if (p->failed)
		log_error("%zu figures could not be drawn or written", p->failed);
	if (strcmp(path, "-"))
		printf("%s: %zu cases, %zu figures\n", path, p->report->case_count, p->figures);
	return p->failed ? 1 : 0;
}

static int show(const struct report *r, const struct settings *s)
{
	struct page p = {
		.report = r,
		.command = s->command,
		.svg_dir = s->svg_dir,
		.draw = report_gnuplot_found(),
	};
	char *text = NULL;
	size_t size = 0;
	int ret;

	if (s->svg_dir && mkdir(s->svg_dir, 0777) && errno != EEXIST) {
		log_error("folder %s cannot be made: %s", s->svg_dir, strerror(errno));
		return 1;
	}
	ret = make_page(&p, &text, &size);
	if (!ret)
		ret = replace_file(s->path, text, size, is_stopped);
	free(text);
	return status_of(&p, s->path, ret);
}

static int prepare(int argc, char **argv, struct settings *s)
{
	s->command = command_line(argc, argv);
	if (s->out)
		s->path = strdup(s->out);
	else if (s->recording)
		s->path = strdup("report.html");
	else if (asprintf(&s->path, "%s/report.html", argv[optind]) < 0)
		s->path = NULL;
	return s->command && s->path ? 0 : -ENOMEM;
}

int bench_report_main(int argc, char **argv)
{
	struct settings s = { 0 };
	struct report r = { 0 };
	int status = parse(argc, argv, &s), ret;

	if (status)
		return status - 1;
	report_gnuplot_begin();
	ret = prepare(argc, argv, &s);
	if (!ret)
		ret = s.recording ? load_recordings(&r, &s, argc, argv) :
				    report_load(&r, argv[optind]);
	if (!ret)
		status = show(&r, &s);
	else
		status = report_gnuplot_stopped() ? 128 + report_gnuplot_stopped() : 1;
	report_free(&r);
	free(s.path);
	free(s.command);
	report_gnuplot_end();
	return status;
}
