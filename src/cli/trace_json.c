/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar trace --json` prints; times in nanoseconds. See trace_print.h. */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analyzer/words.h"
#include "cli/trace_print.h"

static json_t *integer(uint64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *finding(const struct analyzer_finding *g)
{
	const bool timed = g->timeouts, behind = g->kind != ANALYZER_TIMEOUT;

	return json_pack("{s:s, s:s, s:s, s:I, s:I, s:i, s:s, s:i, s:i, s:o*, s:o*, s:o*, s:s*, s:o*,"
			 " s:{s:I, s:I, s:I, s:I, s:I}}",
			 "kind", analyzer_kind_key(g->kind),
			 "side", analyzer_side_key(g->side),
			 "confidence", analyzer_confidence_key(g->confidence),
			 "begin_ns", (json_int_t)g->begin_ns,
			 "stall_ns", (json_int_t)g->stall_ns,
			 "psn", (int)g->psn, "operation", ib_opcode_name(g->opcode),
			 "requests", (int)g->stuck, "timeouts", (int)g->timeouts,
			 "timeout_code", timed ? integer(g->timeout_code) : NULL,
			 "timeout_factor", timed ? json_real(g->timeout_factor) : NULL,
			 "psn_before", behind ? integer(g->psn_before) : NULL,
			 "operation_before", behind ? ib_opcode_name(g->opcode_before) : NULL,
			 "sent_after_ns", behind ? integer((uint64_t)g->after_ns) : NULL,
			 "packets", "pending", (json_int_t)g->packet_open,
			 "pending_end", (json_int_t)g->packet_closed,
			 "sent", (json_int_t)g->packet_sent, "again", (json_int_t)g->packet_again,
			 "answer", (json_int_t)g->packet_answer);
}

static json_t *findings(const struct analyzer_result *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < r->findings; i++)
		json_array_append_new(list, finding(&r->finding[i]));
	return list;
}

static json_t *kinds(const struct analyzer_result *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < ANALYZER_NONE; i++)
		if (r->kinds & 1u << i)
			json_array_append_new(list, json_string(analyzer_kind_key((enum analyzer_kind)i)));
	return list;
}

static json_t *not_judged(const struct analyzer_result *r)
{
	json_t *list = json_array();

	for (unsigned i = 0; analyzer_gap_key(i); i++)
		if (r->gaps & 1u << i)
			json_array_append_new(list, json_string(analyzer_gap_key(i)));
	return list;
}

static json_t *by_trigger(const uint64_t *counts)
{
	json_t *j = json_object();

	for (int i = 0; i < ANALYZER_TRIGGERS; i++)
		json_object_set_new(j, analyzer_trigger_key((enum analyzer_trigger)i), integer(counts[i]));
	return j;
}

static json_t *rnr(const struct analyzer_result *r)
{
	json_t *bins = json_array();

	for (unsigned i = 0; i < ANALYZER_INFLATIONS; i++)
		json_array_append_new(bins, integer(r->inflation[i]));
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:o}", "naks", (json_int_t)r->rnr_naks,
			 "page_faults", (json_int_t)r->rnr_faults,
			 "missing_receives", (json_int_t)r->rnr_receives,
			 "nominal_ns", (json_int_t)r->rnr_nominal_ns,
			 "waits", (json_int_t)r->rnr_waits,
			 "inflation_min", r->inflation_min, "inflation_max", r->inflation_max,
			 "inflation_mean", r->rnr_waits ? r->inflation_sum / (double)r->rnr_waits : 0.0,
			 "inflation_histogram", bins);
}

static json_t *flood(const struct analyzer_result *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:i, s:I}", "requests", (json_int_t)r->flood_requests,
			 "resends", (json_int_t)r->flood_resends,
			 "bytes_in_vain", (json_int_t)r->flood_bytes,
			 "duration_ns", (json_int_t)(r->flood_end_ns - r->flood_begin_ns),
			 "flows", (int)r->flood_flows, "packet", (json_int_t)r->flood_packet);
}

static json_t *writes(const struct analyzer_result *r)
{
	return json_pack("{s:I, s:I, s:I, s:I, s:I}", "requests", (json_int_t)r->write_distinct,
			 "resends", (json_int_t)r->write_resends, "rnr_naks", (json_int_t)r->write_naks,
			 "expected", (json_int_t)(r->write_distinct * (r->write_naks + 1) / 2),
			 "packet", (json_int_t)r->write_packet);
}

static void counts(json_t *j, const struct analyzer_result *r)
{
	const struct {
		const char *key;
		uint64_t value;
	} rows[] = {
		{ "packets", r->packets }, { "requests", r->requests },
		{ "request_packets", r->request_packets }, { "answers", r->answers },
		{ "wire_bytes", r->wire_bytes }, { "good_bytes", r->good_bytes },
		{ "timeouts", r->timeouts }, { "sequence_naks", r->sequence_naks },
		{ "refusals", r->refusals }, { "congestion_marks", r->marks },
		{ "congestion_notifications", r->notifications }, { "captured_twice", r->twice },
		{ "requests_missing", r->requests_missing }, { "answers_missing", r->answers_missing },
		{ "silence_ns", (uint64_t)r->silent_ns }, { "silence_packet", r->silent_packet },
		{ "findings_all", r->findings_all },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		json_object_set_new(j, rows[i].key, integer(rows[i].value));
}

static json_t *flow(const struct analyzer_result *r)
{
	char sentence[512];
	uint64_t lost[ANALYZER_TRIGGERS];
	json_t *j;

	trace_sentence(r, sentence, sizeof(sentence));
	for (int i = 0; i < ANALYZER_TRIGGERS; i++)
		lost[i] = (uint64_t)r->lost_ns[i];
	j = json_pack("{s:i, s:s, s:s, s:I, s:o, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}",
		      "flow", (int)r->number, "requester", TRACE_ADDRESS(&r->src),
		      "responder", TRACE_ADDRESS(&r->dst), "responder_qp", (json_int_t)r->qpn,
		      "requester_qp", r->paired ? integer(r->peer_qpn) : json_null(),
		      "verdict", analyzer_kind_key(r->verdict), "sentence", sentence,
		      "advice", analyzer_kind_advice(r->verdict), "kinds", kinds(r),
		      "not_judged", not_judged(r), "findings", findings(r),
		      "resends", by_trigger(r->resends), "lost_ns", by_trigger(lost), "rnr", rnr(r),
		      "read_flood", flood(r), "writes", writes(r));
	if (j)
		counts(j, r);
	return j;
}

static void append(void *list, const char *text)
{
	json_array_append_new(list, json_string(text));
}

/* All but the flows, which are many, and the damage. NULL: no memory. */
static json_t *head(const struct trace_report *t, int status)
{
	const struct analyzer_totals *all = analyzer_totals(t->analyzer);
	json_t *doubts = json_array(), *name = json_string(t->file);

	if (!name) /* JSON takes only UTF-8 */
		name = json_string("(the name is not UTF-8)");
	trace_doubts(t, append, doubts);
	return json_pack("{s:o, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:o}", "file", name,
			 "status", status, "packets", (json_int_t)t->capture->packets,
			 "rdma_packets", (json_int_t)all->packets,
			 "begin_ns", (json_int_t)all->first_ns,
			 "duration_ns", (json_int_t)(all->last_ns - all->first_ns),
			 "faulted_pages", (json_int_t)all->pages,
			 "stale_ns", (json_int_t)all->stale_ns, "not_judged", doubts);
}

/* Each is gone when it was printed: thousands of them would need gigabytes together. */
static int print_flows(const struct trace_report *t)
{
	bool any = false;

	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++) {
		json_t *j = !t->flow || t->flow == i + 1 ? flow(analyzer_flow(t->analyzer, i)) : NULL;

		if (!j && (!t->flow || t->flow == i + 1))
			return -ENOMEM;
		if (!j)
			continue;
		fputs(any ? ",\n" : "\n", stdout);
		json_dumpf(j, stdout, JSON_INDENT(2));
		json_decref(j);
		any = true;
	}
	return 0;
}

static void print_damage(const struct trace_report *t)
{
	json_t *j;
	char damage[300];

	if (!t->capture->corrupt)
		return;
	trace_damage(t, damage, sizeof(damage));
	j = json_string(damage);
	fputs(",\n  \"damage\": ", stdout);
	if (!j || json_dumpf(j, stdout, JSON_ENCODE_ANY))
		fputs("null", stdout);
	json_decref(j);
}

int trace_json(const struct trace_report *t, int status)
{
	json_t *j = head(t, status);
	char *text = j ? json_dumps(j, JSON_INDENT(2)) : NULL;
	int error;

	json_decref(j);
	if (!text)
		return -ENOMEM;
	/* The brace that closes it comes last. */
	printf("%.*s,\n  \"flows\": [", (int)strlen(text) - 2, text);
	free(text);
	error = print_flows(t);
	fputs("\n  ]", stdout);
	print_damage(t);
	fputs("\n}\n", stdout);
	return error;
}
