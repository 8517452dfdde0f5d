/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ladder diagram of `busbar trace --ladder`: a line for each packet, requester left,
 * responder right. A packet that got lost ends in X, a pending period has a double left edge,
 * and a line of its own has the length of a long silence.
 */
#include "cli/trace_ladder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/trace_rows.h"

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
	char arrow[ARROW + 1], text[TRACE_TEXT_MAX], silence[TRACE_TEXT_MAX + 24];

	if (r->silence_ns) {
		snprintf(silence, sizeof(silence), "%s without a packet",
			 trace_duration(r->silence_ns, text));
		printf("%21s  %s%-*s :\n", "", was_pending ? "‖ " : ": ", ARROW, silence);
	}
	arrow_of(r, arrow);
	printf("%8ju %12s  %s%s |", (uintmax_t)r->rung->number, trace_when(t, r->rung->when_ns, text),
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
