/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The page of `busbar trace --page`: what the command found, as data in the page of reports
 * (bench/report/page.h), which draws it. Nothing here is HTML. The page's own description of the
 * data is src/page/report/trace.ts.
 */
#include "cli/trace_print.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/words.h"
#include "bench/report/data.h"
#include "bench/report/page.h"
#include "util/replace_file.h"

static void say_line(void *arg, const char *line)
{
	json_array_append_new(arg, report_string(line));
}

static void say_doubt(void *arg, const char *line)
{
	char text[400];

	snprintf(text, sizeof(text), "not judged: %s", line);
	say_line(arg, text);
}

/* ---- packets ---- */

static json_t *packet(const struct trace_report *t, const struct trace_row *r)
{
	json_t *notes = json_array();

	for (unsigned i = 0; i < r->notes; i++)
		json_array_append_new(notes, report_string(r->note[i]));
	return json_pack("{s:I, s:I, s:b, s:o, s:o, s:b, s:b, s:I}",
			 "number", (json_int_t)r->rung->number,
			 "at_ns", (json_int_t)(r->rung->when_ns - analyzer_totals(t->analyzer)->first_ns),
			 "answer", r->rung->answer, "label", report_string(r->label), "notes", notes,
			 "lost", r->lost, "pending", r->pending || r->opens,
			 "silence_ns", (json_int_t)r->silence_ns);
}

/* The packets that were kept; null: none were, or those of another flow are wanted. */
static json_t *ladder(const struct trace_report *t, const struct analyzer_result *r)
{
	const struct analyzer_ladder *l = analyzer_ladder(t->analyzer, r->number);
	struct trace_row *rows;
	json_t *packets;
	unsigned count;

	if (!l || (t->ladder && t->ladder != r->number))
		return json_null();
	rows = calloc(ANALYZER_LADDER_MAX, sizeof(*rows));
	if (!rows)
		return NULL;
	count = trace_rows(l, rows);
	packets = json_array();
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(packets, packet(t, &rows[i]));
	free(rows);
	return json_pack("{s:b, s:o}", "ending", l->ending, "packets", packets);
}

/* ---- flows ---- */

static json_t *causes(const struct analyzer_result *r)
{
	json_t *all = json_array();

	for (int i = 0; i < ANALYZER_TRIGGERS; i++)
		if (r->resends[i])
			json_array_append_new(all, json_pack("{s:s, s:I, s:I}", "cause",
				analyzer_trigger_name((enum analyzer_trigger)i), "packets",
				(json_int_t)r->resends[i], "lost_ns", (json_int_t)r->lost_ns[i]));
	return all;
}

static void set_details(json_t *o, const struct trace_report *t, const struct analyzer_result *r)
{
	json_t *lines = json_array(), *details;
	char text[512];

	trace_sentence(r, text, sizeof(text));
	trace_lines_evidence(t, r, say_line, lines);
	trace_lines_waits(r, say_line, lines);
	trace_lines_gaps(r, say_line, lines);
	details = json_pack("{s:o, s:o, s:o, s:o, s:I, s:I, s:b, s:o}", "sentence", report_string(text),
			    "lines", lines, "advice", report_string(analyzer_kind_advice(r->verdict)),
			    "causes", causes(r), "wire_bytes", (json_int_t)r->wire_bytes,
			    "good_bytes", (json_int_t)r->good_bytes,
			    "kept", analyzer_ladder(t->analyzer, r->number) != NULL,
			    "ladder", ladder(t, r));
	json_object_update(o, details);
	json_decref(details);
}

static json_t *flow(const struct trace_report *t, const struct analyzer_result *r, bool detailed)
{
	json_t *o = json_pack("{s:i, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:b, s:b}",
			      "number", (int)r->number, "requester", TRACE_ADDRESS(&r->src),
			      "responder", TRACE_ADDRESS(&r->dst), "queue_pairs", TRACE_QP(r),
			      "requests", (json_int_t)r->requests, "resends", (json_int_t)trace_resends(r),
			      "timeouts", (json_int_t)r->timeouts, "rnr_naks", (json_int_t)r->rnr_naks,
			      "sequence_naks", (json_int_t)r->sequence_naks,
			      "lost_ns", (json_int_t)trace_lost_ns(r),
			      "verdict", analyzer_kind_name(r->verdict),
			      "bad", r->verdict < ANALYZER_PITFALLS_END, "detailed", detailed);

	if (o && detailed)
		set_details(o, t, r);
	return o;
}

/* Those that are shown; *more: so many have findings and no details. */
static json_t *flows(const struct trace_report *t, unsigned *more)
{
	json_t *all = json_array();
	unsigned detailed = 0;

	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++) {
		const struct analyzer_result *r = analyzer_flow(t->analyzer, i);
		bool wanted = trace_is_detailed(t, r) || t->ladder == r->number;

		if (!trace_is_shown(t, r) && t->ladder != r->number)
			continue;
		detailed += wanted;
		wanted &= detailed <= TRACE_DETAILED_MAX || t->ladder == r->number;
		json_array_append_new(all, flow(t, r, wanted));
	}
	*more = detailed > TRACE_DETAILED_MAX ? detailed - TRACE_DETAILED_MAX : 0;
	return all;
}

static json_t *whole(const struct trace_report *t)
{
	json_t *lines = json_array();
	char text[300], line[400];

	trace_lines_pages(t, say_line, lines);
	trace_doubts(t, say_doubt, lines);
	if (t->capture->corrupt) {
		trace_damage(t, text, sizeof(text));
		snprintf(line, sizeof(line), "%s; the packets before it were analysed", text);
		say_line(lines, line);
	}
	return lines;
}

/* The data of the page; NULL without memory. */
static json_t *data_of(const struct trace_report *t)
{
	unsigned more;
	char head[512];
	json_t *all = flows(t, &more);

	trace_head(t, head, sizeof(head));
	return json_pack("{s:i, s:s, s:s, s:[], s:{s:o, s:o, s:o, s:I, s:o}}", "layout", REPORT_LAYOUT,
			 "command", "busbar trace --page", "kind", "trace", "runs", "trace",
			 "file", report_string(t->file), "head", report_string(head), "flows", all,
			 "more", (json_int_t)more, "whole", whole(t));
}

int trace_page(const struct trace_report *t, const char *path, bool (*stopped)(void))
{
	char *text = NULL;
	size_t size;
	json_t *data = data_of(t);
	int error = data ? report_page_make(data, &text, &size) : -ENOMEM;

	json_decref(data);
	if (!error)
		error = replace_file(path, text, size, stopped);
	free(text);
	if (error && error != -EINTR)
		fprintf(stderr, "busbar trace: the page %s cannot be written: %s\n",
			strcmp(path, "-") ? path : "for standard output", strerror(-error));
	return error;
}
