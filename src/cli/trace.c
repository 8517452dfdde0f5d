/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar trace`: reads a packet capture of RDMA traffic and says what went wrong on each
 * connection. This file is the command line and the reading of a file; src/analyzer has
 * the rules.
 */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/trace.h"
#include "cli/trace_input.h"

#define INTERVAL_MS 250 /* of --counters */
#define INTERVAL_MS_MAX 3600000

static void print_help(FILE *out)
{
	fputs("usage: busbar trace [OPTIONS] FILE|-\n"
	      "       busbar trace --live [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
	      "       busbar trace --counters [--interval MS] [--count N] [--json]\n"
	      "                    [DEVICE[:PORT]|PID]...\n"
	      "\n"
	      "Reads a packet capture of RDMA traffic (pcap or pcapng; RoCE, InfiniBand, ibdump's\n"
	      "ERF) and says for each connection what went wrong: packet damming, READ flood and\n"
	      "WRITE amplification of on-demand paging, other timeouts, losses, congestion.\n"
	      "\n"
	      "  -f, --flow N     only flow N, with all details\n"
	      "  -l, --ladder N   also a ladder diagram of flow N\n"
	      "  -p, --page FILE.html\n"
	      "                   also write a page for a browser, with a drawing of the packets of\n"
	      "                   each flow with a finding; - for standard output instead\n"
	      "  -j, --json       print a JSON object; times in nanoseconds\n"
	      "  -h, --help       this text\n"
	      "\n"
	      "  -L, --live       run PROGRAM on busbar's adapter as 'busbar exec' does, tell each\n"
	      "                   pitfall when it is found, and the rest at the end or at Ctrl-C\n"
	      "  -c, --counters   suspect the same from the counters of adapters while they run,\n"
	      "                   without packets or privilege; of all adapters, of these, or of\n"
	      "                   a process on busbar's adapter\n"
	      "  -i, --interval MS\n"
	      "                   milliseconds between two looks, from 1 on (250)\n"
	      "  -n, --count N    end after N looks; else at Ctrl-C\n"
	      "      --root DIR   look below DIR in the place of /\n"
	      "\n"
	      "Exit status: 0 no pitfall found, 1 a pitfall found, 2 wrong usage, 3 the capture is\n"
	      "not readable or damaged, or nothing was found and not all could be judged.\n",
	      out);
}

static bool amount_of(const char *option, const char *text, unsigned max, unsigned *value)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end != text && !*end && *text != '-' && n >= 1 && n <= max) {
		*value = (unsigned)n;
		return true;
	}
	fprintf(stderr, "busbar trace: --%s '%s' is not a number from 1 to %u\n", option, text, max);
	return false;
}

static bool number_of(const char *option, const char *text, unsigned *value)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end != text && !*end && *text != '-' && n >= 1 && n <= 1000000) {
		*value = (unsigned)n;
		return true;
	}
	fprintf(stderr, "busbar trace: --%s '%s' is not the number of a flow, from 1 on\n", option, text);
	return false;
}

static bool refuse(const char *why)
{
	fprintf(stderr, "busbar trace: %s\n", why);
	return false;
}

/* Do the options go together? */
static bool agree(struct trace_settings *s)
{
	if (s->json && trace_page_only(s))
		return refuse("--page - and --json both write to standard output");
	if (s->counters && s->live)
		return refuse("--live captures packets, and --counters takes none: one of both");
	if (s->counters)
		return !s->page && !s->flow && !s->ladder ? true :
			       refuse("--counters sees no packets: it has no --flow, --ladder and --page");
	if (s->timed || s->count || s->root)
		return refuse("--interval, --count and --root go with --counters");
	s->file = s->name_count == 1 || s->live ? s->names[0] : NULL;
	if (s->live)
		return s->file ? true : refuse("--live needs a program: busbar trace --live -- PROGRAM");
	return s->file ? true : refuse("one file is needed, or - for standard input");
}

/* 0: go on; else the exit status plus 1. */
static int parse(int argc, char **argv, struct trace_settings *s)
{
	static const struct option options[] = {
		{ "flow", required_argument, NULL, 'f' },
		{ "ladder", required_argument, NULL, 'l' },
		{ "page", required_argument, NULL, 'p' },
		{ "json", no_argument, NULL, 'j' },
		{ "live", no_argument, NULL, 'L' },
		{ "counters", no_argument, NULL, 'c' },
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'n' },
		{ "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "f:l:p:jLci:n:h", options, NULL)) >= 0) {
		switch (c) {
		case 'f':
			if (!number_of("flow", optarg, &s->flow))
				return CLI_USAGE + 1;
			break;
		case 'l':
			if (!number_of("ladder", optarg, &s->ladder))
				return CLI_USAGE + 1;
			break;
		case 'p': s->page = optarg; break;
		case 'j': s->json = true; break;
		case 'L': s->live = true; break;
		case 'c': s->counters = true; break;
		case 'i':
			if (!amount_of("interval", optarg, INTERVAL_MS_MAX, &s->interval_ms))
				return CLI_USAGE + 1;
			s->timed = true;
			break;
		case 'n':
			if (!amount_of("count", optarg, UINT32_MAX, &s->count))
				return CLI_USAGE + 1;
			break;
		case 'r': s->root = optarg; break;
		case 'h': print_help(stdout); return CLI_OK + 1;
		default: print_help(stderr); return CLI_USAGE + 1;
		}
	}
	s->names = argv + optind;
	s->name_count = argc - optind;
	return agree(s) ? 0 : CLI_USAGE + 1;
}

static void on_interrupt(int signal_number)
{
}

/*
 * A first Ctrl-C reaches the program that captures into our pipe as well: it ends, and what it
 * has written until then is read and judged. A second one ends this process.
 */
static void outlive_interrupt(int fd)
{
	struct sigaction once = { .sa_handler = on_interrupt, .sa_flags = SA_RESETHAND | SA_RESTART };
	struct stat st;

	if (!fstat(fd, &st) && S_ISFIFO(st.st_mode))
		sigaction(SIGINT, &once, NULL);
}

static int open_file(struct trace_settings *s)
{
	if (strcmp(s->file, "-"))
		return open(s->file, O_RDONLY | O_CLOEXEC);
	s->file = "standard input";
	return STDIN_FILENO;
}

static int trace_file(struct trace_settings *s)
{
	static struct trace_input in;
	int fd = open_file(s), status = CLI_INCOMPLETE;
	ssize_t got;

	if (fd < 0) {
		fprintf(stderr, "busbar trace: %s: %s\n", s->file, strerror(errno));
		return CLI_INCOMPLETE;
	}
	outlive_interrupt(fd);
	got = trace_input_open(&in, fd, trace_wanted_ladder(s));
	if (!got)
		do
			got = trace_input_read(&in);
		while ((got > 0 || got == -EINTR) && !in.capture.corrupt);
	if (got < 0) {
		fprintf(stderr, "busbar trace: %s: offset %ju: %s\n", s->file,
			(uintmax_t)in.capture.reader.offset, strerror((int)-got));
	} else {
		trace_input_end(&in);
		status = trace_conclude(s, &in.capture, in.analyzer);
	}
	trace_input_close(&in);
	return status;
}

int cli_trace(int argc, char **argv)
{
	struct trace_settings s = { .interval_ms = INTERVAL_MS };
	int status = parse(argc, argv, &s);

	if (status)
		return status - 1;
	if (s.counters)
		return trace_counters(&s);
	return s.live ? trace_live(&s) : trace_file(&s);
}
