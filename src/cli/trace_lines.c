/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar trace` says of a flow below its sentence; see trace_lines.h. */
#include "cli/trace_lines.h"

#include <stdarg.h>
#include <stdio.h>

#include "analyzer/words.h"

#define NOMINAL_NEXT 1.95 /* a factor of half of it fits to the next code, too */
#define EVIDENCE_MAX 5 /* stalls of a flow that are given without --flow */
#define SILENCE_NS_MIN 20000000

struct line {
	char text[512];
	size_t at;
};

__attribute__((format(printf, 2, 3)))
static void add(struct line *l, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(l->text + l->at, sizeof(l->text) - l->at, format, args);
	va_end(args);
	if (n > 0)
		l->at += (size_t)n;
	if (l->at >= sizeof(l->text))
		l->at = sizeof(l->text) - 1;
}

uint64_t trace_resends(const struct analyzer_result *r)
{
	uint64_t all = 0;

	for (int i = 0; i < ANALYZER_TRIGGERS; i++)
		all += r->resends[i];
	return all;
}

int64_t trace_lost_ns(const struct analyzer_result *r)
{
	int64_t all_ns = 0;

	for (int i = 0; i < ANALYZER_TRIGGERS; i++)
		all_ns += r->lost_ns[i];
	return all_ns;
}

const char *trace_qp(const struct analyzer_result *r, char text[TRACE_TEXT_MAX])
{
	if (r->paired)
		snprintf(text, TRACE_TEXT_MAX, "0x%x > 0x%x", r->peer_qpn, r->qpn);
	else
		snprintf(text, TRACE_TEXT_MAX, "? > 0x%x", r->qpn);
	return text;
}

static void number(struct line *l, const char *what, uint64_t packet)
{
	if (packet)
		add(l, " %s %ju,", what, (uintmax_t)packet);
}

static void stall(const struct trace_report *t, const struct analyzer_finding *g, struct line *l)
{
	char begin[TRACE_TEXT_MAX], time[TRACE_TEXT_MAX], unit[TRACE_TEXT_MAX];

	add(l, "%s at %s s: stall %s", analyzer_kind_name(g->kind), trace_when(t, g->begin_ns, begin),
	    trace_duration(g->stall_ns, time));
	if (g->timeouts > 1)
		add(l, " by %u timeouts of the same request", g->timeouts);
	if (g->timeouts)
		add(l, ", timeout code about %u (%s, %.2f times)", g->timeout_code,
		    trace_duration(INT64_C(4096) << g->timeout_code, unit), g->timeout_factor);
	if (g->timeouts && g->timeout_factor >= NOMINAL_NEXT)
		add(l, " or %u with an adapter that waits the nominal time", g->timeout_code + 1);
	if (g->stuck > 1)
		add(l, ", %u requests", g->stuck);
	add(l, ";\npackets:");
	number(l, "pending from", g->packet_open);
	number(l, "to", g->packet_closed);
	number(l, "sent", g->packet_sent);
	number(l, g->kind == ANALYZER_DAMMING_RECOVERED ? "NAK" : "again", g->packet_again);
	number(l, "answer", g->packet_answer);
	add(l, g->packet_answer ? " the first" : " no answer");
}

void trace_lines_evidence(const struct trace_report *t, const struct analyzer_result *r,
			  trace_say *say, void *arg)
{
	unsigned shown = t->flow || r->findings < EVIDENCE_MAX ? r->findings : EVIDENCE_MAX;
	struct line more = { 0 }, flood = { 0 }, writes = { 0 };

	for (unsigned i = 0; i < shown; i++) {
		struct line l = { 0 };

		stall(t, &r->finding[i], &l);
		say(arg, l.text);
	}
	if (r->findings_all > shown) {
		add(&more, "and %ju more stalls", (uintmax_t)(r->findings_all - shown));
		say(arg, more.text);
	}
	if (r->flood_packet) {
		add(&flood, "packet %ju is the first READ that was sent a fourth time; %ju bytes were read in vain",
		    (uintmax_t)r->flood_packet, (uintmax_t)r->flood_bytes);
		say(arg, flood.text);
	}
	if (r->kinds & 1u << ANALYZER_WRITE_AMPLIFICATION) {
		add(&writes, "packet %ju is the first RNR NAK to a WRITE", (uintmax_t)r->write_packet);
		say(arg, writes.text);
	}
}

static void inflation(const struct analyzer_result *r, struct line *l)
{
	char nominal[TRACE_TEXT_MAX];

	add(l, "RNR waits: %ju, %.2f to %.2f times the nominal delay (the last: %s), %.2f on average;"
	    " histogram", (uintmax_t)r->rnr_waits, r->inflation_min, r->inflation_max,
	    trace_duration(r->rnr_nominal_ns, nominal), r->inflation_sum / (double)r->rnr_waits);
	for (unsigned i = 0; i < ANALYZER_INFLATIONS; i++)
		if (r->inflation[i])
			add(l, " %s%u: %ju", i == ANALYZER_INFLATIONS - 1 ? ">=" : "", i,
			    (uintmax_t)r->inflation[i]);
}

void trace_lines_waits(const struct analyzer_result *r, trace_say *say, void *arg)
{
	struct line waits = { 0 }, silence = { 0 };
	char time[TRACE_TEXT_MAX];

	if (r->rnr_waits) {
		inflation(r, &waits);
		say(arg, waits.text);
	}
	if (r->silent_ns >= SILENCE_NS_MIN) {
		add(&silence, "longest silence with an open request: %s, until packet %ju",
		    trace_duration(r->silent_ns, time), (uintmax_t)r->silent_packet);
		say(arg, silence.text);
	}
}

void trace_lines_gaps(const struct analyzer_result *r, trace_say *say, void *arg)
{
	for (unsigned i = 0; analyzer_gap_text(i); i++) {
		struct line l = { 0 };

		if (!(r->gaps & 1u << i))
			continue;
		add(&l, "not judged: %s", analyzer_gap_text(i));
		say(arg, l.text);
	}
}

void trace_lines_pages(const struct trace_report *t, trace_say *say, void *arg)
{
	const struct analyzer_totals *all = analyzer_totals(t->analyzer);
	char time[TRACE_TEXT_MAX];
	struct line l = { 0 };

	if (!all->pages)
		return;
	add(&l, "pages whose READs were answered in vain: %ju, stale for up to %s",
	    (uintmax_t)all->pages, trace_duration(all->stale_ns, time));
	say(arg, l.text);
}

void trace_lines_advice(const struct trace_report *t, trace_say *say, void *arg)
{
	uint32_t kinds = 0;

	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++)
		if (trace_is_shown(t, analyzer_flow(t->analyzer, i)))
			kinds |= 1u << analyzer_flow(t->analyzer, i)->verdict;
	for (unsigned kind = 0; kind < ANALYZER_NONE; kind++) {
		struct line l = { 0 };

		if (!(kinds & 1u << kind))
			continue;
		add(&l, "%s: %s", analyzer_kind_name((enum analyzer_kind)kind),
		    analyzer_kind_advice((enum analyzer_kind)kind));
		say(arg, l.text);
	}
}
