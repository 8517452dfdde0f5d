/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar trace` prints for people; see trace_print.h. */
#include "cli/trace_print.h"

#include <stdio.h>

#include "analyzer/words.h"

static void head(const struct trace_report *t)
{
	char text[512];

	trace_head(t, text, sizeof(text));
	printf("%s: %s\n\n", t->file, text);
}

static void row(const struct analyzer_result *r)
{
	printf("%5u %-16s %-16s %-20s %9ju %8ju %7ju %6ju %6ju %11s  %s\n", r->number,
	       TRACE_ADDRESS(&r->src), TRACE_ADDRESS(&r->dst), TRACE_QP(r),
	       (uintmax_t)r->requests, (uintmax_t)trace_resends(r), (uintmax_t)r->timeouts,
	       (uintmax_t)r->rnr_naks, (uintmax_t)r->sequence_naks,
	       TRACE_DURATION(trace_lost_ns(r)), analyzer_kind_name(r->verdict));
}

static void table(const struct trace_report *t)
{
	printf("%5s %-16s %-16s %-20s %9s %8s %7s %6s %6s %11s  %s\n", "flow", "requester", "responder",
	       "QP", "requests", "resends", "timeout", "RNR", "seqNAK", "time lost", "verdict");
	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++)
		if (trace_is_shown(t, analyzer_flow(t->analyzer, i)))
			row(analyzer_flow(t->analyzer, i));
}

static void losses(const struct analyzer_result *r)
{
	const char *comma = "    time lost by cause: ";

	for (int i = 0; i < ANALYZER_TRIGGERS; i++) {
		if (!r->resends[i])
			continue;
		printf("%s%s %s (%ju packets)", comma, analyzer_trigger_name((enum analyzer_trigger)i),
		       TRACE_DURATION(r->lost_ns[i]), (uintmax_t)r->resends[i]);
		comma = ", ";
	}
	if (*comma == ',')
		printf("\n    bytes: %ju on the wire, %ju of payload that count once\n",
		       (uintmax_t)r->wire_bytes, (uintmax_t)r->good_bytes);
}

/* Indented; the part behind a newline by two columns more. */
static void say_indented(void *arg, const char *line)
{
	printf("    ");
	for (; *line; line++)
		printf(*line == '\n' ? "\n      " : "%c", *line);
	putchar('\n');
}

static void say(void *arg, const char *line)
{
	puts(line);
}

static void details(const struct trace_report *t, const struct analyzer_result *r)
{
	char text[512];

	trace_sentence(r, text, sizeof(text));
	printf("\nflow %u: %s\n", r->number, text);
	trace_lines_evidence(t, r, say_indented, NULL);
	losses(r);
	trace_lines_waits(r, say_indented, NULL);
	trace_lines_gaps(r, say_indented, NULL);
}

static void say_doubt(void *arg, const char *text)
{
	printf("not judged: %s\n", text);
}

static void say_advice(void *arg, const char *line)
{
	bool *any = arg;

	printf("%s%s\n", *any ? "" : "\nwhat to do:\n", line);
	*any = true;
}

void trace_print(const struct trace_report *t)
{
	unsigned printed = 0, left = 0;
	bool advice = false;

	head(t);
	if (analyzer_flows(t->analyzer))
		table(t);
	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++) {
		const struct analyzer_result *r = analyzer_flow(t->analyzer, i);

		if (!trace_is_detailed(t, r))
			continue;
		if (printed == TRACE_DETAILED_MAX) {
			left++;
			continue;
		}
		details(t, r);
		printed++;
	}
	if (left)
		printf("\n%u more flows with findings: --flow N shows one, --json all\n", left);
	putchar('\n');
	trace_lines_pages(t, say, NULL);
	trace_doubts(t, say_doubt, NULL);
	trace_lines_advice(t, say_advice, &advice);
}
