/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef CLI_TRACE_PRINT_H
#define CLI_TRACE_PRINT_H

#include "cli/trace_text.h"

/* Prints the table of flows, the verdict on each with its evidence, and what is not known. */
void trace_print(const struct trace_report *t);
/* The same as one JSON object. 0 or -ENOMEM. */
int trace_json(const struct trace_report *t, int status);
/* Writes the report as one HTML page that needs no other file; "-": to standard output. 0 or a
 * negative errno, with a message; -EINTR: `stopped` has become true. */
int trace_page(const struct trace_report *t, const char *path, bool (*stopped)(void));

/* The rows of a diagram of packets: printed as a ladder, and data of a page (trace_page.c). */

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

/* Prints the ladder diagram of the flow whose packets the analyzer has kept: a line for each
 * packet, requester left, responder right. */
void trace_ladder_print(const struct trace_report *t);

#endif
