/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `busbar trace` says of a flow below its sentence, a line at a time, for text and pages. A
 * line may have a part behind a newline, which belongs to it.
 */
#ifndef CLI_TRACE_LINES_H
#define CLI_TRACE_LINES_H

#include "cli/trace_text.h"

#define TRACE_DETAILED_MAX 20 /* flows whose details are given without --flow */

typedef void trace_say(void *arg, const char *line);

/* Stalls, flood and amplification, with the numbers of their packets. */
void trace_lines_evidence(const struct trace_report *t, const struct analyzer_result *r,
			  trace_say *say, void *arg);
/* The waits behind RNR NAKs and the longest silence. */
void trace_lines_waits(const struct analyzer_result *r, trace_say *say, void *arg);
/* Why the flow was not judged in full. */
void trace_lines_gaps(const struct analyzer_result *r, trace_say *say, void *arg);
/* What holds for the capture as a whole; no line if there is nothing. */
void trace_lines_pages(const struct trace_report *t, trace_say *say, void *arg);
/* Kinds of the verdicts that are shown, each with what to do: "packet damming: Pin the ...". */
void trace_lines_advice(const struct trace_report *t, trace_say *say, void *arg);

/* Is it among the flows that are shown? */
static inline bool trace_is_shown(const struct trace_report *t, const struct analyzer_result *r)
{
	return !t->flow || t->flow == r->number;
}

/* Is it shown with its details? */
static inline bool trace_is_detailed(const struct trace_report *t, const struct analyzer_result *r)
{
	return trace_is_shown(t, r) && (t->flow || r->verdict != ANALYZER_NONE);
}

uint64_t trace_resends(const struct analyzer_result *r);
int64_t trace_lost_ns(const struct analyzer_result *r);
/* The queue pairs: "0x11 > 0x12", "? > 0x12" if the requester's is not known. */
const char *trace_qp(const struct analyzer_result *r, char text[TRACE_TEXT_MAX]);

#endif
