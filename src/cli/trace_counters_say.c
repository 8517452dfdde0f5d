/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar trace --counters` prints; see trace_counters.h. */
#include "cli/trace_counters.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "analyzer/words.h"
#include "cli/trace_text.h"

static const enum analyzer_kind judged[] = { ANALYZER_DAMMING, ANALYZER_READ_FLOOD,
					     ANALYZER_WRITE_AMPLIFICATION, ANALYZER_TIMEOUT };
#define JUDGED (sizeof(judged) / sizeof(judged[0]))

static json_t *growth(const struct watched *w, const uint64_t *grown)
{
	json_t *o = json_object();

	for (unsigned i = 0; i < w->counters.count; i++)
		if (grown[i])
			json_object_set_new(o, w->counters.counter[i].name, json_integer((json_int_t)grown[i]));
	return o;
}

static void print_line(json_t *o)
{
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

/* `comma`: what is before the first. */
static void print_growth(const struct watched *w, const uint64_t *grown, const char *comma)
{

	for (unsigned i = 0; i < w->counters.count; i++) {
		if (!grown[i])
			continue;
		printf("%s%s +%" PRIu64, comma, w->counters.counter[i].name, grown[i]);
		comma = ", ";
	}
}

void trace_counters_begin(const struct watched *w, unsigned count, unsigned interval_ms, bool as_json)
{
	json_t *list = as_json ? json_array() : NULL;

	if (!as_json)
		printf("watching");
	for (unsigned i = 0; i < count; i++) {
		if (as_json)
			json_array_append_new(list, json_string(w[i].counters.name));
		else
			printf("%s %s", i ? "," : "", w[i].counters.name);
	}
	if (as_json)
		print_line(json_pack("{s:o, s:i}", "watching", list, "interval_ms", (int)interval_ms));
	else
		printf(" every %u ms, until Ctrl-C\n", interval_ms);
	fflush(stdout);
}

void trace_counters_interval(const struct watched *w, const struct analyzer_interval *i,
			     const uint64_t *grown, enum analyzer_kind kind, bool as_json)
{
	if (as_json) {
		print_line(json_pack("{s:s, s:I, s:I, s:s, s:o}", "adapter", w->counters.name,
				     "begin_ns", (json_int_t)i->begin_ns, "end_ns", (json_int_t)i->end_ns,
				     "kind", analyzer_kind_key(kind), "counters", growth(w, grown)));
	} else {
		printf("%10.3f s  %s: ", (double)i->end_ns / 1e9, w->counters.name);
		print_growth(w, grown, "");
		if (kind < ANALYZER_PITFALLS_END)
			printf("  suspected: %s", analyzer_kind_name(kind));
		else if (kind != ANALYZER_NONE)
			printf("  %s", analyzer_kind_name(kind));
		putchar('\n');
	}
	fflush(stdout);
}

void trace_counters_missing(const struct watched *w)
{
	if (*w->counters.missing)
		fprintf(stderr, "busbar trace: %s has no counter %s\n", w->counters.name, w->counters.missing);
	for (size_t i = 0; i < JUDGED; i++) {
		const char *why = analyzer_counters_doubt(w->known, judged[i]);

		if (why)
			fprintf(stderr, "busbar trace: %s: %s is not judged: %s\n", w->counters.name,
				analyzer_kind_name(judged[i]), why);
	}
}

static void sentence(const struct watched *w, enum analyzer_kind kind, char *text, size_t size)
{
	const struct analyzer_counters *c = &w->judged;
	char quiet[TRACE_TEXT_MAX];

	switch (kind) {
	case ANALYZER_DAMMING:
		snprintf(text, size, "%ju timeout%s came behind %s and no packet was reported lost; the port was "
			 "quiet for %s before.", (uintmax_t)c->stalls, c->stalls == 1 ? "" : "s",
			 c->side == ANALYZER_SERVER ? "RNR NAKs" : "page faults",
			 trace_duration(c->quiet_max_ns, quiet));
		break;
	case ANALYZER_READ_FLOOD:
		snprintf(text, size, "Requests were repeated more than four times each, without RNR NAKs.");
		break;
	case ANALYZER_WRITE_AMPLIFICATION:
		snprintf(text, size, "Requests were repeated more than four times each, behind RNR NAKs.");
		break;
	case ANALYZER_TIMEOUT:
		snprintf(text, size, "Timeouts without RNR NAKs, page faults or losses before them. This is no sign "
			 "of on-demand paging.");
		break;
	case ANALYZER_LOSS:
		snprintf(text, size, "Packets were lost on the way. No pitfall.");
		break;
	case ANALYZER_NONE:
		snprintf(text, size, "Nothing found.");
		break;
	default:
		snprintf(text, size, "Waits of the usual length. No pitfall.");
		break;
	}
}

static json_t *intervals(const struct analyzer_counters *c)
{
	json_t *o = json_object();

	for (int kind = 0; kind < ANALYZER_NONE; kind++)
		if (c->intervals[kind])
			json_object_set_new(o, analyzer_kind_key((enum analyzer_kind)kind),
					    json_integer((json_int_t)c->intervals[kind]));
	return o;
}

static json_t *not_judged(const struct watched *w)
{
	json_t *list = json_array();

	for (size_t i = 0; i < JUDGED; i++)
		if (analyzer_counters_doubt(w->known, judged[i]))
			json_array_append_new(list, json_string(analyzer_kind_key(judged[i])));
	return list;
}

static json_t *verdict_json(const struct watched *w)
{
	enum analyzer_kind kind = analyzer_counters_verdict(&w->judged);
	char text[300];

	sentence(w, kind, text, sizeof(text));
	return json_pack("{s:s, s:s, s:b, s:s, s:s, s:s, s:I, s:I, s:o, s:o, s:s, s:o, s:b}",
			 "adapter", w->counters.name, "verdict", analyzer_kind_key(kind),
			 "suspected", kind < ANALYZER_PITFALLS_END, "confidence",
			 analyzer_confidence_key(analyzer_counters_confidence(&w->judged, kind)),
			 "sentence", text, "advice", analyzer_kind_advice(kind), "stalls",
			 (json_int_t)w->judged.stalls, "quiet_ns", (json_int_t)w->judged.quiet_max_ns,
			 "intervals", intervals(&w->judged), "counters", growth(w, w->grown),
			 "missing", w->counters.missing, "not_judged", not_judged(w), "ended", w->gone);
}

static void print_verdict(const struct watched *w)
{
	enum analyzer_kind kind = analyzer_counters_verdict(&w->judged);
	bool pitfall = kind < ANALYZER_PITFALLS_END;
	char text[300];

	sentence(w, kind, text, sizeof(text));
	printf("\n%s: %s%s", w->counters.name, pitfall ? "suspected: " : "", analyzer_kind_name(kind));
	if (pitfall)
		printf(" (confidence %s)",
		       analyzer_confidence_key(analyzer_counters_confidence(&w->judged, kind)));
	if (kind != ANALYZER_NONE)
		printf(". %s", text);
	print_growth(w, w->grown, "\n    ");
	puts(w->failed ? "; then the adapter was gone" : w->gone ? "; then the process ended" : "");
	if (pitfall)
		printf("what to do: %s\nA packet capture names the connection: busbar trace CAPTURE.\n",
		       analyzer_kind_advice(kind));
}

void trace_counters_verdicts(const struct watched *w, unsigned count, int64_t duration_ns, int status,
			     bool as_json)
{
	json_t *list = as_json ? json_array() : NULL;

	for (unsigned i = 0; i < count; i++) {
		if (as_json)
			json_array_append_new(list, verdict_json(&w[i]));
		else
			print_verdict(&w[i]);
	}
	if (as_json)
		print_line(json_pack("{s:i, s:I, s:o}", "status", status, "duration_ns",
				     (json_int_t)duration_ns, "adapters", list));
}
