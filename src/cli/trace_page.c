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

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static void set(json_t *o, const char *key, json_t *value)
{
	json_object_set_new(o, key, value);
}

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
	json_t *o = json_object(), *notes = json_array();

	set(o, "number", integer(r->rung->number));
	set(o, "at_ns", json_integer(r->rung->when_ns - analyzer_totals(t->analyzer)->first_ns));
	set(o, "answer", json_boolean(r->rung->answer));
	set(o, "label", report_string(r->label));
	for (unsigned i = 0; i < r->notes; i++)
		json_array_append_new(notes, report_string(r->note[i]));
	set(o, "notes", notes);
	set(o, "lost", json_boolean(r->lost));
	set(o, "pending", json_boolean(r->pending || r->opens));
	set(o, "silence_ns", json_integer(r->silence_ns));
	return o;
}

/* The packets that were kept; null: none were, or those of another flow are wanted. */
static json_t *ladder(const struct trace_report *t, const struct analyzer_result *r)
{
	const struct analyzer_ladder *l = analyzer_ladder(t->analyzer, r->number);
	struct trace_row *rows;
	json_t *o, *packets;
	unsigned count;

	if (!l || (t->ladder && t->ladder != r->number))
		return json_null();
	rows = calloc(ANALYZER_LADDER_MAX, sizeof(*rows));
	if (!rows)
		return NULL;
	count = trace_rows(l, rows);
	o = json_object();
	packets = json_array();
	set(o, "ending", json_boolean(l->ending));
	for (unsigned i = 0; i < count; i++)
		json_array_append_new(packets, packet(t, &rows[i]));
	set(o, "packets", packets);
	free(rows);
	return o;
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
	json_t *lines = json_array();
	char text[512];

	trace_sentence(r, text, sizeof(text));
	set(o, "sentence", report_string(text));
	trace_lines_evidence(t, r, say_line, lines);
	trace_lines_waits(r, say_line, lines);
	trace_lines_gaps(r, say_line, lines);
	set(o, "lines", lines);
	set(o, "advice", report_string(analyzer_kind_advice(r->verdict)));
	set(o, "causes", causes(r));
	set(o, "wire_bytes", integer(r->wire_bytes));
	set(o, "good_bytes", integer(r->good_bytes));
	set(o, "kept", json_boolean(analyzer_ladder(t->analyzer, r->number) != NULL));
	set(o, "ladder", ladder(t, r));
}

static json_t *flow(const struct trace_report *t, const struct analyzer_result *r, bool detailed)
{
	json_t *o = json_object();

	set(o, "number", integer(r->number));
	set(o, "requester", report_string(TRACE_ADDRESS(&r->src)));
	set(o, "responder", report_string(TRACE_ADDRESS(&r->dst)));
	set(o, "queue_pairs", report_string(TRACE_QP(r)));
	set(o, "requests", integer(r->requests));
	set(o, "resends", integer(trace_resends(r)));
	set(o, "timeouts", integer(r->timeouts));
	set(o, "rnr_naks", integer(r->rnr_naks));
	set(o, "sequence_naks", integer(r->sequence_naks));
	set(o, "lost_ns", json_integer(trace_lost_ns(r)));
	set(o, "verdict", json_string(analyzer_kind_name(r->verdict)));
	set(o, "bad", json_boolean(r->verdict < ANALYZER_PITFALLS_END));
	set(o, "detailed", json_boolean(detailed));
	if (detailed)
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
