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

#include "cli/trace_ladder.h"
#include "cli/trace_page.h"
#include "cli/trace_print.h"

#define BUFFER_BYTES (4 * CAPTURE_RECORD_MAX)

struct settings {
	const char *file;
	const char *page; /* NULL: none */
	unsigned flow, ladder;
	bool json;
};

static void print_help(FILE *out)
{
	fputs("usage: busbar trace [OPTIONS] FILE|-\n"
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
	      "Exit status: 0 no pitfall found, 1 a pitfall found, 2 wrong usage, 3 the capture is\n"
	      "not readable or damaged, or nothing was found and not all could be judged.\n",
	      out);
}

static bool is_standard_output(const char *page)
{
	return page && !strcmp(page, "-");
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

/* 0: go on; else the exit status plus 1. */
static int parse(int argc, char **argv, struct settings *s)
{
	static const struct option options[] = {
		{ "flow", required_argument, NULL, 'f' },
		{ "ladder", required_argument, NULL, 'l' },
		{ "page", required_argument, NULL, 'p' },
		{ "json", no_argument, NULL, 'j' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	while ((c = getopt_long(argc, argv, "f:l:p:jh", options, NULL)) >= 0) {
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
		case 'h': print_help(stdout); return CLI_OK + 1;
		default: print_help(stderr); return CLI_USAGE + 1;
		}
	}
	if (s->json && is_standard_output(s->page)) {
		fprintf(stderr, "busbar trace: --page - and --json both write to standard output\n");
		return CLI_USAGE + 1;
	}
	if (argc - optind == 1) {
		s->file = argv[optind];
		return 0;
	}
	fprintf(stderr, "busbar trace: one file is needed, or - for standard input\n");
	return CLI_USAGE + 1;
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
static unsigned ladder_of(const struct settings *s)
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

static enum cli_status report(const struct settings *s, const struct analyzer_capture *c,
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

static int open_file(struct settings *s)
{
	if (strcmp(s->file, "-"))
		return open(s->file, O_RDONLY | O_CLOEXEC);
	s->file = "standard input";
	return STDIN_FILENO;
}

int cli_trace(int argc, char **argv)
{
	struct settings s = { 0 };
	int status = parse(argc, argv, &s), fd, error;
	static struct analyzer_capture c;
	struct analyzer *a;
	uint8_t *buffer;

	if (status)
		return status - 1;
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
