/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar trace` prints for people; see trace_print.h. In ladder diagrams a packet that got
 * lost ends in X, a pending period has a double left edge, and a line of its own has the length
 * of a long silence. */
#include "cli/trace_print.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/pending.h"
#include "analyzer/words.h"

/* A pause that a diagram breaks off: longer than a round trip or a usual page fault. */
#define SILENCE_NS_MIN INT64_C(1000000)

enum syndrome { RNR = 1, NAK = 3 };

static void label_of(const struct analyzer_rung *r, char *text, size_t size)
{
	unsigned kind = (r->opcode & IB_OPERATION_MASK) == IB_ACKNOWLEDGE ? r->syndrome >> 5 : 0;

	if (kind == RNR)
		snprintf(text, size, "RNR NAK PSN %u, %.2f ms", r->psn,
			 (double)analyzer_rnr_ns(r->syndrome) / 1e6);
	else if (kind == NAK && !(r->syndrome & 31))
		snprintf(text, size, "sequence NAK PSN %u", r->psn);
	else if (kind == NAK)
		snprintf(text, size, "NAK code %u PSN %u", r->syndrome & 31, r->psn);
	else
		snprintf(text, size, "%s PSN %u", ib_opcode_name(r->opcode), r->psn);
}

static void note(struct trace_row *row, const char *before, const char *text)
{
	snprintf(row->note[row->notes], sizeof(row->note[0]), "%s%s", before, text);
	row->notes++;
}

static void notes_of(struct trace_row *row, unsigned notes)
{
	if (notes & ANALYZER_RUNG_AGAIN)
		note(row, "again: ", analyzer_trigger_name(row->rung->trigger));
	if (notes & ANALYZER_RUNG_DISCARDED)
		note(row, "", "dropped by the requester");
	if (notes & ANALYZER_RUNG_OPENS)
		note(row, "", "pending period begins");
	if (notes & ANALYZER_RUNG_CLOSES)
		note(row, "", "pending period ends");
	if (notes & ANALYZER_RUNG_LOST)
		note(row, "", "LOST");
}

unsigned trace_rows(const struct analyzer_ladder *l, struct trace_row row[ANALYZER_LADDER_MAX])
{
	const struct analyzer_rung *r;
	bool pending = false;
	unsigned count = 0;

	for (; l && (r = analyzer_ladder_at(l, count)); count++) {
		struct trace_row *to = &row[count];
		int64_t pause_ns = count ? r->when_ns - to[-1].rung->when_ns : 0;

		memset(to, 0, sizeof(*to));
		to->rung = r;
		label_of(r, to->label, sizeof(to->label));
		notes_of(to, r->notes);
		pending &= !(r->notes & ANALYZER_RUNG_CLOSES);
		to->pending = pending;
		to->opens = (r->notes & ANALYZER_RUNG_OPENS) != 0;
		to->lost = !r->answer && (r->notes & ANALYZER_RUNG_LOST) != 0;
		to->silence_ns = pause_ns >= SILENCE_NS_MIN ? pause_ns : 0;
		pending |= to->opens;
	}
	return count;
}

#define ARROW 44 /* characters between the edges */

/* "-- READ request PSN 1 ------>": the label within an arrow. */
static void arrow_of(const struct trace_row *r, char arrow[ARROW + 1])
{
	char label[sizeof(r->label) + 2];
	size_t length;

	snprintf(label, sizeof(label), " %s ", r->label);
	length = strlen(label) < ARROW - 6 ? strlen(label) : ARROW - 6;
	memset(arrow, '-', ARROW);
	arrow[ARROW] = '\0';
	if (r->rung->answer) {
		arrow[0] = '<';
		memcpy(arrow + ARROW - 2 - length, label, length);
		return;
	}
	memcpy(arrow + 2, label, length);
	arrow[ARROW - 1] = '>';
	if (r->lost) {
		memset(arrow + ARROW - 6, ' ', 6);
		arrow[ARROW - 6] = 'X';
	}
}

static void print_row(const struct trace_report *t, const struct trace_row *r, bool was_pending)
{
	char arrow[ARROW + 1], silence[TRACE_TEXT_MAX + 24];

	if (r->silence_ns) {
		snprintf(silence, sizeof(silence), "%s without a packet",
			 TRACE_DURATION(r->silence_ns));
		printf("%21s  %s%-*s :\n", "", was_pending ? "‖ " : ": ", ARROW, silence);
	}
	arrow_of(r, arrow);
	printf("%8ju %12s  %s%s |", (uintmax_t)r->rung->number, TRACE_WHEN(t, r->rung->when_ns),
	       r->pending ? "‖ " : "| ", arrow);
	for (unsigned i = 0; i < r->notes; i++)
		printf("  %s", r->note[i]);
	putchar('\n');
}

void trace_ladder_print(const struct trace_report *t)
{
	const struct analyzer_ladder *l = analyzer_ladder(t->analyzer, t->ladder);
	struct trace_row *row = calloc(ANALYZER_LADDER_MAX, sizeof(*row));
	unsigned count;

	if (!row) {
		fputs("busbar trace: no memory for the diagram\n", stderr);
		return;
	}
	count = trace_rows(l, row);
	printf("\nflow %u, packets %s:\n\n%8s %12s  %-*s%s\n", t->ladder,
	       l && l->ending ? "around the first stall" : "at the end", "packet", "time s",
	       ARROW + 3 - 9, "requester", "responder");
	for (unsigned i = 0; i < count; i++)
		print_row(t, &row[i], i && (row[i - 1].pending || row[i - 1].opens));
	free(row);
}

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
