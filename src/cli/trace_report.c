/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading a capture, the report of `busbar trace` in the forms that were asked for, and its exit
 * status. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/trace.h"
#include "cli/trace_print.h"

#define BUFFER_BYTES (4 * CAPTURE_RECORD_MAX)

int trace_input_open(struct trace_input *in, int fd, unsigned ladder)
{
	memset(in, 0, sizeof(*in));
	in->fd = fd;
	analyzer_capture_begin(&in->capture);
	in->analyzer = analyzer_new(ladder);
	in->buffer = malloc(BUFFER_BYTES);
	return in->analyzer && in->buffer ? 0 : -ENOMEM;
}

ssize_t trace_input_read(struct trace_input *in)
{
	ssize_t got = read(in->fd, in->buffer + in->have, BUFFER_BYTES - in->have);
	size_t used;

	if (got <= 0)
		return got < 0 ? -errno : 0;
	in->have += (size_t)got;
	used = analyzer_capture_feed(&in->capture, in->analyzer, in->buffer, in->have);
	memmove(in->buffer, in->buffer + used, in->have - used);
	in->have -= used;
	return got;
}

void trace_input_end(struct trace_input *in)
{
	if (!in->capture.corrupt)
		analyzer_capture_end(&in->capture, in->have);
	analyzer_finish(in->analyzer);
}

void trace_input_close(struct trace_input *in)
{
	free(in->buffer);
	analyzer_free(in->analyzer);
	if (in->fd != STDIN_FILENO)
		close(in->fd);
}

unsigned trace_wanted_ladder(const struct trace_settings *s)
{
	if (!s->page || s->ladder)
		return s->ladder;
	return s->flow ? s->flow : ANALYZER_LADDER_ALL;
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

int trace_conclude(const struct trace_settings *s, const struct analyzer_capture *c,
		   const struct analyzer *a)
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
	if (!s->json && !trace_page_only(s)) {
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
	return (int)(s->page ? write_page(&t, s->page, status) : status);
}
