/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * `busbar trace`: reads a packet capture of RDMA traffic and says what went wrong on each
 * connection. This file is the command line and the reading of the file; src/analyzer has
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
#include "cli/trace_ladder.h"
#include "cli/trace_page.h"
#include "cli/trace_print.h"

#define BUFFER_BYTES (4 * CAPTURE_RECORD_MAX)
#define INTERVAL_MS 250 /* of --counters */
#define INTERVAL_MS_MAX 3600000

static void print_help(FILE *out)
{
	fputs("usage: busbar trace [OPTIONS] FILE|-\n"
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

static bool is_standard_output(const char *page)
{
	return page && !strcmp(page, "-");
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
	if (s->json && is_standard_output(s->page))
		return refuse("--page - and --json both write to standard output");
	if (s->counters)
		return !s->page && !s->flow && !s->ladder ? true :
			       refuse("--counters sees no packets: it has no --flow, --ladder and --page");
	if (s->timed || s->count || s->root)
		return refuse("--interval, --count and --root go with --counters");
	s->file = s->name_count == 1 ? s->names[0] : NULL;
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
		{ "counters", no_argument, NULL, 'c' },
		{ "interval", required_argument, NULL, 'i' },
		{ "count", required_argument, NULL, 'n' },
		{ "root", required_argument, NULL, 'r' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "f:l:p:jci:n:h", options, NULL)) >= 0) {
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

/* 0, or a negative errno of read(). */
static int read_all(int fd, uint8_t *buffer, struct analyzer_capture *c, struct analyzer *a)
{
	size_t have = 0;

	for (;;) {
		ssize_t got = read(fd, buffer + have, BUFFER_BYTES - have);
		size_t used;

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		have += (size_t)got;
		used = analyzer_capture_feed(c, a, buffer, have);
		memmove(buffer, buffer + used, have - used);
		have -= used;
		if (c->corrupt)
			return 0;
	}
	analyzer_capture_end(c, have);
	return 0;
}

static void say_nothing(void *arg, const char *text)
{
}

static enum cli_status status_of(const struct trace_report *t)
{
	bool pitfall = false, gap = false;

	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++) {
		const struct analyzer_result *r = analyzer_flow(t->analyzer, i);

		pitfall |= (t->flow == 0 || t->flow == r->number) && r->verdict < ANALYZER_PITFALLS_END;
		gap |= r->gaps != 0;
	}
	if (t->capture->corrupt)
		return CLI_INCOMPLETE;
	if (pitfall)
		return CLI_FAILED;
	return gap || trace_doubts(t, say_nothing, NULL) ? CLI_INCOMPLETE : CLI_OK;
}

/* A page draws the flow that is named; without a name each with a finding. */
static unsigned ladder_of(const struct trace_settings *s)
{
	if (!s->page || s->ladder)
		return s->ladder;
	return s->flow ? s->flow : ANALYZER_LADDER_ALL;
}

static volatile sig_atomic_t stopped;

static void on_stop(int signal_number)
{
	stopped = signal_number;
}

static bool is_stopped(void)
{
	return stopped;
}

/* The page is written as a whole or not at all, also at Ctrl-C. */
static enum cli_status write_page(const struct trace_report *t, const char *page, enum cli_status status)
{
	const struct sigaction stop = { .sa_handler = on_stop };
	int error;

	fflush(stdout);
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	error = trace_page(t, page, is_stopped);
	if (error == -EINTR)
		return (enum cli_status)(128 + stopped);
	return error ? CLI_INCOMPLETE : status;
}

static bool has_flow(const struct analyzer *a, const char *option, unsigned flow)
{
	if (flow <= analyzer_flows(a))
		return true;
	fprintf(stderr, "busbar trace: --%s %u: the capture has %u flow%s\n", option, flow,
		analyzer_flows(a), analyzer_flows(a) == 1 ? "" : "s");
	return false;
}

static enum cli_status report(const struct trace_settings *s, const struct analyzer_capture *c,
			      struct analyzer *a)
{
	const struct trace_report t = { .file = s->file, .analyzer = a, .capture = c, .flow = s->flow,
					.ladder = s->ladder };
	enum cli_status status = status_of(&t);
	char damage[300];

	if (!has_flow(a, "flow", s->flow) || !has_flow(a, "ladder", s->ladder))
		return CLI_USAGE;
	if (s->json && trace_json(&t, status)) {
		fprintf(stderr, "busbar trace: no memory for the result\n");
		return CLI_INCOMPLETE;
	}
	if (!s->json && !is_standard_output(s->page)) {
		trace_print(&t);
		if (s->ladder)
			trace_ladder_print(&t);
	}
	if (c->corrupt) {
		fflush(stdout);
		trace_damage(&t, damage, sizeof(damage));
		fprintf(stderr, "busbar trace: %s; the %ju packets before it were analysed\n", damage,
			(uintmax_t)c->packets);
	}
	return s->page ? write_page(&t, s->page, status) : status;
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

int cli_trace(int argc, char **argv)
{
	struct trace_settings s = { .interval_ms = INTERVAL_MS };
	int status = parse(argc, argv, &s), fd, error;
	static struct analyzer_capture c;
	struct analyzer *a;
	uint8_t *buffer;

	if (status)
		return status - 1;
	if (s.counters)
		return trace_counters(&s);
	fd = open_file(&s);
	if (fd < 0) {
		fprintf(stderr, "busbar trace: %s: %s\n", s.file, strerror(errno));
		return CLI_INCOMPLETE;
	}
	outlive_interrupt(fd);
	analyzer_capture_begin(&c);
	a = analyzer_new(ladder_of(&s));
	buffer = malloc(BUFFER_BYTES);
	error = a && buffer ? read_all(fd, buffer, &c, a) : -ENOMEM;
	if (error) {
		fprintf(stderr, "busbar trace: %s: offset %ju: %s\n", s.file, (uintmax_t)c.reader.offset,
			strerror(-error));
		status = CLI_INCOMPLETE;
	} else {
		analyzer_finish(a);
		status = report(&s, &c, a);
	}
	free(buffer);
	analyzer_free(a);
	if (fd != STDIN_FILENO)
		close(fd);
	return status;
}
