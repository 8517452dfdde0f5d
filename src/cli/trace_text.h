/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of what `busbar trace` prints: addresses, times, sentences. */
#ifndef CLI_TRACE_TEXT_H
#define CLI_TRACE_TEXT_H

#include <jansson.h>
#include <stddef.h>

#include "analyzer/analyzer.h"
#include "analyzer/capture.h"

#define TRACE_TEXT_MAX 64
#define TRACE_BUFFER ((char[TRACE_TEXT_MAX]){ "" })

/* What the command prints: the results and the settings. */
struct trace_report {
	const char *file;
	const struct analyzer *analyzer;
	const struct analyzer_capture *capture;
	unsigned flow; /* the only flow to print; 0: all */
	unsigned ladder; /* the only flow with a diagram; 0: see the users */
};

/* Texts in a buffer, which the macros make in the block around them: printf("%s",
 * TRACE_DURATION(ns)). */
/* An address: "LID 4", "10.0.0.1", "fe80::1". */
const char *trace_address(const struct analyzer_address *a, char text[TRACE_TEXT_MAX]);
#define TRACE_ADDRESS(address) trace_address(address, TRACE_BUFFER)
/* A length of time with its unit: "0.538 s", "4.424 ms", "12 us". */
const char *trace_duration(int64_t ns, char text[TRACE_TEXT_MAX]);
#define TRACE_DURATION(ns) trace_duration(ns, TRACE_BUFFER)
/* Seconds since the first RDMA packet of the capture: "0.541748". */
const char *trace_when(const struct trace_report *t, int64_t ns, char text[TRACE_TEXT_MAX]);
#define TRACE_WHEN(report, ns) trace_when(report, ns, TRACE_BUFFER)
/* What was read: "7 packets, 7 of RDMA, in 0.542 s; 1 flow". */
void trace_head(const struct trace_report *t, char *text, size_t size);
/* Prints an object on one line, and takes it over. */
void trace_print_line(json_t *o);
/* One sentence: the verdict on a flow. */
void trace_sentence(const struct analyzer_result *r, char *text, size_t size);
/* Why a capture cannot be read on; with file, offset and field. */
void trace_damage(const struct trace_report *t, char *text, size_t size);

/* Reasons why the capture as a whole is not judged in full; each is given to `say`. Returns
 * their number. */
unsigned trace_doubts(const struct trace_report *t, void (*say)(void *arg, const char *text), void *arg);

/* ---- what is said of a flow below its sentence, a line at a time, for text and pages; a line
 * may have a part behind a newline, which belongs to it ---- */

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
#define TRACE_QP(result) trace_qp(result, TRACE_BUFFER)

#endif
