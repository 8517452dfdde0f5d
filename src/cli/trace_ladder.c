/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ladder diagram of `busbar trace --ladder`: a line for each packet, requester left,
 * responder right. A packet that got lost ends in X, a pending period has a double left edge.
 */
#include "cli/trace_ladder.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/pending.h"
#include "analyzer/words.h"

#define ARROW 44 /* characters between the edges */

enum syndrome { RNR = 1, NAK = 3 };

static void label_of(const struct analyzer_rung *r, char *text, size_t size)
{
	unsigned kind = (r->opcode & IB_OPERATION_MASK) == IB_ACKNOWLEDGE ? r->syndrome >> 5 : 0;

	if (kind == RNR)
		snprintf(text, size, " RNR NAK PSN %u, %.2f ms ", r->psn,
			 (double)analyzer_rnr_ns(r->syndrome) / 1e6);
	else if (kind == NAK && !(r->syndrome & 31))
		snprintf(text, size, " sequence NAK PSN %u ", r->psn);
	else if (kind == NAK)
		snprintf(text, size, " NAK code %u PSN %u ", r->syndrome & 31, r->psn);
	else
		snprintf(text, size, " %s PSN %u ", analyzer_opcode_name(r->opcode), r->psn);
}

/* "-- READ request PSN 1 ------>": the label within an arrow. */
static void arrow_of(const struct analyzer_rung *r, char arrow[ARROW + 1])
{
	char label[64];
	size_t length;

	label_of(r, label, sizeof(label));
	length = strlen(label) < ARROW - 6 ? strlen(label) : ARROW - 6;
	memset(arrow, '-', ARROW);
	arrow[ARROW] = '\0';
	if (r->answer) {
		arrow[0] = '<';
		memcpy(arrow + ARROW - 2 - length, label, length);
		return;
	}
	memcpy(arrow + 2, label, length);
	arrow[ARROW - 1] = '>';
	if (r->notes & ANALYZER_RUNG_LOST) {
		memset(arrow + ARROW - 6, ' ', 6);
		arrow[ARROW - 6] = 'X';
	}
}

static void notes_of(const struct analyzer_rung *r)
{
	if (r->notes & ANALYZER_RUNG_AGAIN)
		printf("  again: %s", analyzer_trigger_name(r->trigger));
	if (r->notes & ANALYZER_RUNG_DISCARDED)
		printf("  dropped by the requester");
	if (r->notes & ANALYZER_RUNG_OPENS)
		printf("  pending period begins");
	if (r->notes & ANALYZER_RUNG_CLOSES)
		printf("  pending period ends");
	if (r->notes & ANALYZER_RUNG_LOST)
		printf("  LOST");
}

void trace_ladder_print(const struct trace_report *t)
{
	const struct analyzer_ladder *l = analyzer_ladder(t->analyzer);
	char arrow[ARROW + 1], when[TRACE_TEXT_MAX];
	const struct analyzer_rung *r;
	bool pending = false;

	printf("\nflow %u, packets %s:\n\n%8s %12s  %-*s%s\n", l->flow,
	       l->ending ? "around the first stall" : "at the end", "packet", "time s",
	       ARROW + 3 - 9, "requester", "responder");
	for (unsigned i = 0; (r = analyzer_ladder_at(l, i)); i++) {
		arrow_of(r, arrow);
		pending &= !(r->notes & ANALYZER_RUNG_CLOSES);
		printf("%8ju %12s  %s%s |", (uintmax_t)r->number, trace_when(t, r->when_ns, when),
		       pending ? "‖ " : "| ", arrow);
		notes_of(r);
		putchar('\n');
		pending |= (r->notes & ANALYZER_RUNG_OPENS) != 0;
	}
	if (!l->added)
		puts("         (the capture has no such flow)");
}
