/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of what `busbar trace` prints: addresses, times, sentences. */
#ifndef CLI_TRACE_TEXT_H
#define CLI_TRACE_TEXT_H

#include <stddef.h>

#include "analyzer/analyzer.h"
#include "analyzer/capture.h"

#define TRACE_TEXT_MAX 64

/* What the command prints: the results and the settings. */
struct trace_report {
	const char *file;
	const struct analyzer *analyzer;
	const struct analyzer_capture *capture;
	unsigned flow; /* the only flow to print; 0: all */
	unsigned ladder; /* the only flow with a diagram; 0: see the users */
};

/* An address: "LID 4", "10.0.0.1", "fe80::1". */
const char *trace_address(const struct analyzer_address *a, char text[TRACE_TEXT_MAX]);
/* A length of time with its unit: "0.538 s", "4.424 ms", "12 us". */
const char *trace_duration(int64_t ns, char text[TRACE_TEXT_MAX]);
/* Seconds since the first RDMA packet of the capture: "0.541748". */
const char *trace_when(const struct trace_report *t, int64_t ns, char text[TRACE_TEXT_MAX]);
/* What was read: "7 packets, 7 of RDMA, in 0.542 s; 1 flow". */
void trace_head(const struct trace_report *t, char *text, size_t size);
/* One sentence: the verdict on a flow. */
void trace_sentence(const struct analyzer_result *r, char *text, size_t size);
/* Why a capture cannot be read on; with file, offset and field. */
void trace_damage(const struct trace_report *t, char *text, size_t size);

/* Reasons why the capture as a whole is not judged in full; each is given to `say`. Returns
 * their number. */
unsigned trace_doubts(const struct trace_report *t, void (*say)(void *arg, const char *text), void *arg);

#endif
