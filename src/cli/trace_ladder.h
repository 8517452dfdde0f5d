/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a diagram of packets: printed as a ladder, and data of a page (trace_page.c). */
#ifndef CLI_TRACE_LADDER_H
#define CLI_TRACE_LADDER_H

#include "cli/trace_text.h"

#define TRACE_NOTES_MAX 5

struct trace_row {
	const struct analyzer_rung *rung;
	char label[64];            /* "READ request PSN 1" */
	unsigned notes;
	char note[TRACE_NOTES_MAX][48]; /* "LOST", "again: timeout" */
	bool lost;
	bool pending;              /* a pending period has begun before it and not ended */
	bool opens;                /* one begins with it */
	int64_t silence_ns;        /* no packet came before it for so long; 0: no long time */
};

/* Fills in the rows of a ladder; returns their number. NULL: none. */
unsigned trace_rows(const struct analyzer_ladder *l, struct trace_row row[ANALYZER_LADDER_MAX]);

/* Prints the ladder diagram of the flow whose packets the analyzer has kept: a line for each packet,
 * requester left, responder right. */
void trace_ladder_print(const struct trace_report *t);

#endif
