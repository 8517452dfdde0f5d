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
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/trace.h"
#include "util/options.h"

#define INTERVAL_MS 250 /* of --counters */
#define INTERVAL_MS_MAX 3600000

#define FLOW_MAX 1000000

static const struct option_entry table[] = {
	{ "-f, --flow N: only flow N, with all details", OPTION_WHOLE(struct trace_settings, flow, 1, FLOW_MAX) },
	{ "-l, --ladder N: also a ladder diagram of flow N",
	  OPTION_WHOLE(struct trace_settings, ladder, 1, FLOW_MAX) },
	{ "-p, --page FILE.html: also write a page for a browser, with a drawing of the packets of each flow "
				  "with a finding; - for standard output instead",
	  OPTION_TEXT(struct trace_settings, page) },
	{ "-j, --json: print a JSON object; times in nanoseconds", OPTION_FLAG(struct trace_settings, json) },
	{ "-L, --live: run PROGRAM on busbar's adapter as 'busbar exec' does, tell each pitfall when it is "
			"found, and the rest at the end or at Ctrl-C", OPTION_FLAG(struct trace_settings, live) },
	{ "-c, --counters: suspect the same from the counters of adapters while they run, without packets or "
			    "privilege; of all adapters, of these, or of a process on busbar's adapter",
	  OPTION_FLAG(struct trace_settings, counters) },
	{ "-i, --interval MS: milliseconds between two looks (250)",
	  OPTION_WHOLE(struct trace_settings, interval_ms, 1, INTERVAL_MS_MAX) },
	{ "-n, --count N: end after N looks; else at Ctrl-C",
	  OPTION_WHOLE(struct trace_settings, count, 1, UINT32_MAX) },
	{ "--root DIR: look below DIR in the place of /", OPTION_TEXT(struct trace_settings, root) },
	{ .text = NULL },
};

static const struct options options = {
	.program = "busbar trace",
	.synopsis = "[OPTIONS] FILE|-\n"
		    "--live [OPTIONS] -- PROGRAM [ARGUMENTS]\n"
		    "--counters [--interval MS] [--count N] [--json]\n"
		    " [DEVICE[:PORT]|PID]...",
	.about = "Reads a packet capture of RDMA traffic (pcap or pcapng; RoCE, InfiniBand, ibdump's\n"
		 "ERF) and says for each connection what went wrong: packet damming, READ flood and\n"
		 "WRITE amplification of on-demand paging, other timeouts, losses, congestion.\n",
	.table = table,
	.any_operands = true,
	.end = "Exit status: 0 no pitfall found, 1 a pitfall found, 2 wrong usage, 3 the capture is\n"
	       "not readable or damaged, or nothing was found and not all could be judged.\n",
};

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
	if (s->interval_ms || s->count || s->root)
		return refuse("--interval, --count and --root go with --counters");
	s->file = s->name_count == 1 || s->live ? s->names[0] : NULL;
	if (s->live)
		return s->file ? true : refuse("--live needs a program: busbar trace --live -- PROGRAM");
	return s->file ? true : refuse("one file is needed, or - for standard input");
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
	struct trace_settings s = { 0 };
	int status = options_parse(&options, argc, argv, &s, NULL);

	if (status >= 0)
		return status;
	s.names = argv + optind;
	s.name_count = argc - optind;
	if (!agree(&s))
		return CLI_USAGE;
	s.interval_ms = s.interval_ms ? s.interval_ms : INTERVAL_MS;
	if (s.counters)
		return trace_counters(&s);
	return s.live ? trace_live(&s) : trace_file(&s);
}
