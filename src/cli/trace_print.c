/* SPDX-License-Identifier: BSD-2-Clause */
/* What `busbar trace` prints for people; see trace_print.h. */
#include "cli/trace_print.h"

#include <stdio.h>
#include <string.h>

#include "analyzer/words.h"

#define NOMINAL_NEXT 1.95 /* a factor of half of it fits to the next code, too */
#define EVIDENCE_MAX 5 /* stalls of a flow that are printed without --flow */
#define DETAILED_MAX 20 /* flows whose sentences are printed without --flow */

static void head(const struct trace_report *t)
{
	const struct analyzer_totals *all = analyzer_totals(t->analyzer);
	char time[TRACE_TEXT_MAX];

	printf("%s: %ju packets, %ju of RDMA, in %s; %u flow%s\n\n", t->file,
	       (uintmax_t)t->capture->packets, (uintmax_t)all->packets,
	       trace_duration(all->last_ns - all->first_ns, time), analyzer_flows(t->analyzer),
	       analyzer_flows(t->analyzer) == 1 ? "" : "s");
}

static uint64_t resends(const struct analyzer_result *r)
{
	uint64_t all = 0;

	for (int i = 0; i < ANALYZER_TRIGGERS; i++)
		all += r->resends[i];
	return all;
}

static int64_t lost_ns(const struct analyzer_result *r)
{
	int64_t all_ns = 0;

	for (int i = 0; i < ANALYZER_TRIGGERS; i++)
		all_ns += r->lost_ns[i];
	return all_ns;
}

static void row(const struct analyzer_result *r)
{
	char src[TRACE_TEXT_MAX], dst[TRACE_TEXT_MAX], lost[TRACE_TEXT_MAX], qp[24];

	if (r->paired)
		snprintf(qp, sizeof(qp), "0x%x > 0x%x", r->peer_qpn, r->qpn);
	else
		snprintf(qp, sizeof(qp), "? > 0x%x", r->qpn);
	printf("%5u %-16s %-16s %-20s %9ju %8ju %7ju %6ju %6ju %11s  %s\n", r->number,
	       trace_address(&r->src, src), trace_address(&r->dst, dst), qp, (uintmax_t)r->requests,
	       (uintmax_t)resends(r), (uintmax_t)r->timeouts, (uintmax_t)r->rnr_naks,
	       (uintmax_t)r->sequence_naks, trace_duration(lost_ns(r), lost),
	       analyzer_kind_name(r->verdict));
}

static bool wanted(const struct trace_report *t, const struct analyzer_result *r)
{
	return !t->flow || t->flow == r->number;
}

static void table(const struct trace_report *t)
{
	printf("%5s %-16s %-16s %-20s %9s %8s %7s %6s %6s %11s  %s\n", "flow", "requester", "responder",
	       "QP", "requests", "resends", "timeout", "RNR", "seqNAK", "time lost", "verdict");
	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++)
		if (wanted(t, analyzer_flow(t->analyzer, i)))
			row(analyzer_flow(t->analyzer, i));
}

static void number(const char *what, uint64_t packet)
{
	if (packet)
		printf(" %s %ju,", what, (uintmax_t)packet);
}

static void evidence(const struct trace_report *t, const struct analyzer_finding *g)
{
	char begin[TRACE_TEXT_MAX], stall[TRACE_TEXT_MAX], unit[TRACE_TEXT_MAX];

	printf("    %s at %s s: stall %s", analyzer_kind_name(g->kind), trace_when(t, g->begin_ns, begin),
	       trace_duration(g->stall_ns, stall));
	if (g->timeouts > 1)
		printf(" by %u timeouts of the same request", g->timeouts);
	if (g->timeouts)
		printf(", timeout code about %u (%s, %.2f times)", g->timeout_code,
		       trace_duration(INT64_C(4096) << g->timeout_code, unit), g->timeout_factor);
	if (g->timeouts && g->timeout_factor >= NOMINAL_NEXT)
		printf(" or %u with an adapter that waits the nominal time", g->timeout_code + 1);
	if (g->stuck > 1)
		printf(", %u requests", g->stuck);
	printf(";\n      packets:");
	number("pending from", g->packet_open);
	number("to", g->packet_closed);
	number("sent", g->packet_sent);
	number(g->kind == ANALYZER_DAMMING_RECOVERED ? "NAK" : "again", g->packet_again);
	number("answer", g->packet_answer);
	puts(g->packet_answer ? " the first" : " no answer");
}

static void inflation(const struct analyzer_result *r)
{
	char nominal[TRACE_TEXT_MAX];

	if (!r->rnr_waits)
		return;
	printf("    RNR waits: %ju, %.2f to %.2f times the nominal delay (the last: %s), %.2f on average;"
	       " histogram", (uintmax_t)r->rnr_waits, r->inflation_min, r->inflation_max,
	       trace_duration(r->rnr_nominal_ns, nominal), r->inflation_sum / (double)r->rnr_waits);
	for (unsigned i = 0; i < ANALYZER_INFLATIONS; i++)
		if (r->inflation[i])
			printf(" %s%u: %ju", i == ANALYZER_INFLATIONS - 1 ? ">=" : "", i,
			       (uintmax_t)r->inflation[i]);
	putchar('\n');
}

static void losses(const struct analyzer_result *r)
{
	char time[TRACE_TEXT_MAX];
	const char *comma = "    time lost by cause: ";

	for (int i = 0; i < ANALYZER_TRIGGERS; i++) {
		if (!r->resends[i])
			continue;
		printf("%s%s %s (%ju packets)", comma, analyzer_trigger_name((enum analyzer_trigger)i),
		       trace_duration(r->lost_ns[i], time), (uintmax_t)r->resends[i]);
		comma = ", ";
	}
	if (*comma == ',')
		printf("\n    bytes: %ju on the wire, %ju of payload that count once\n",
		       (uintmax_t)r->wire_bytes, (uintmax_t)r->good_bytes);
}

static void doubts_of(const struct analyzer_result *r)
{
	for (unsigned i = 0; analyzer_gap_text(i); i++)
		if (r->gaps & 1u << i)
			printf("    not judged: %s\n", analyzer_gap_text(i));
}

static void details(const struct trace_report *t, const struct analyzer_result *r)
{
	unsigned shown = t->flow || r->findings < EVIDENCE_MAX ? r->findings : EVIDENCE_MAX;
	char text[512], time[TRACE_TEXT_MAX];

	trace_sentence(r, text, sizeof(text));
	printf("\nflow %u: %s\n", r->number, text);
	for (unsigned i = 0; i < shown; i++)
		evidence(t, &r->finding[i]);
	if (r->findings_all > shown)
		printf("    and %ju more stalls\n", (uintmax_t)(r->findings_all - shown));
	if (r->flood_packet)
		printf("    packet %ju is the first READ that was sent a fourth time; %ju bytes were read in vain\n",
		       (uintmax_t)r->flood_packet, (uintmax_t)r->flood_bytes);
	if (r->kinds & 1u << ANALYZER_WRITE_AMPLIFICATION)
		printf("    packet %ju is the first RNR NAK to a WRITE\n", (uintmax_t)r->write_packet);
	losses(r);
	inflation(r);
	if (r->silent_ns >= 20000000)
		printf("    longest silence with an open request: %s, until packet %ju\n",
		       trace_duration(r->silent_ns, time), (uintmax_t)r->silent_packet);
	doubts_of(r);
}

static void pages(const struct trace_report *t)
{
	const struct analyzer_totals *all = analyzer_totals(t->analyzer);
	char time[TRACE_TEXT_MAX];

	if (all->pages)
		printf("pages whose READs were answered in vain: %ju, stale for up to %s\n",
		       (uintmax_t)all->pages, trace_duration(all->stale_ns, time));
}

static void say_doubt(void *arg, const char *text)
{
	printf("not judged: %s\n", text);
}

static void advice(const struct trace_report *t)
{
	uint32_t kinds = 0;
	bool any = false;

	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++)
		if (wanted(t, analyzer_flow(t->analyzer, i)))
			kinds |= 1u << analyzer_flow(t->analyzer, i)->verdict;
	for (unsigned kind = 0; kind < ANALYZER_NONE; kind++) {
		if (!(kinds & 1u << kind))
			continue;
		printf("%s%s: %s\n", any ? "" : "\nwhat to do:\n", analyzer_kind_name((enum analyzer_kind)kind),
		       analyzer_kind_advice((enum analyzer_kind)kind));
		any = true;
	}
}

void trace_print(const struct trace_report *t)
{
	unsigned printed = 0, left = 0;

	head(t);
	if (analyzer_flows(t->analyzer))
		table(t);
	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++) {
		const struct analyzer_result *r = analyzer_flow(t->analyzer, i);

		if (!wanted(t, r) || (r->verdict == ANALYZER_NONE && !t->flow))
			continue;
		if (printed == DETAILED_MAX) {
			left++;
			continue;
		}
		details(t, r);
		printed++;
	}
	if (left)
		printf("\n%u more flows with findings: --flow N shows one, --json all\n", left);
	putchar('\n');
	pages(t);
	trace_doubts(t, say_doubt, NULL);
	advice(t);
}
