/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses, times and sentences of `busbar trace`, and what it says of a flow; see
 * trace_text.h. */
#include "cli/trace_text.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>

#include "analyzer/words.h"

#define FAMILY_LID 1
#define FAMILY_IP4 4

const char *trace_address(const struct analyzer_address *a, char text[TRACE_TEXT_MAX])
{
	if (a->family == FAMILY_LID)
		snprintf(text, TRACE_TEXT_MAX, "LID %u", (unsigned)(a->bytes[0] << 8 | a->bytes[1]));
	else
		inet_ntop(a->family == FAMILY_IP4 ? AF_INET : AF_INET6, a->bytes, text,
			  TRACE_TEXT_MAX);
	return text;
}

const char *trace_duration(int64_t ns, char text[TRACE_TEXT_MAX])
{
	if (ns >= 100000000)
		snprintf(text, TRACE_TEXT_MAX, "%.3f s", (double)ns / 1e9);
	else if (ns >= 100000)
		snprintf(text, TRACE_TEXT_MAX, "%.3f ms", (double)ns / 1e6);
	else
		snprintf(text, TRACE_TEXT_MAX, "%.3g us", (double)ns / 1e3);
	return text;
}

const char *trace_when(const struct trace_report *t, int64_t ns, char text[TRACE_TEXT_MAX])
{
	snprintf(text, TRACE_TEXT_MAX, "%.6f",
		 (double)(ns - analyzer_totals(t->analyzer)->first_ns) / 1e9);
	return text;
}

void trace_head(const struct trace_report *t, char *text, size_t size)
{
	const struct analyzer_totals *all = analyzer_totals(t->analyzer);
	unsigned flows = analyzer_flows(t->analyzer);

	snprintf(text, size, "%ju packets, %ju of RDMA, in %s; %u flow%s",
		 (uintmax_t)t->capture->packets, (uintmax_t)all->packets,
		 TRACE_DURATION(all->last_ns - all->first_ns), flows, flows == 1 ? "" : "s");
}

void trace_print_line(json_t *o)
{
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

/* The first finding of the kind; NULL: none was kept. */
static const struct analyzer_finding *finding(const struct analyzer_result *r, enum analyzer_kind kind)
{
	for (unsigned i = 0; i < r->findings; i++)
		if (r->finding[i].kind == kind)
			return &r->finding[i];
	return NULL;
}

static int64_t sum_ns(const struct analyzer_result *r, enum analyzer_kind kind, unsigned *count)
{
	int64_t all_ns = 0;

	*count = 0;
	for (unsigned i = 0; i < r->findings; i++) {
		if (r->finding[i].kind != kind)
			continue;
		all_ns += r->finding[i].stall_ns;
		++*count;
	}
	return all_ns;
}

static void damming(const struct analyzer_result *r, char *text, size_t size)
{
	const struct analyzer_finding *g = finding(r, ANALYZER_DAMMING);
	unsigned count;
	int64_t all_ns = sum_ns(r, ANALYZER_DAMMING, &count);

	if (!g) {
		snprintf(text, size, "Packet damming, beyond the findings that are kept.");
		return;
	}
	snprintf(text, size, "Packet damming (%s side%s, confidence %s): %s PSN %u was sent %s after a pending "
		 "period of %s PSN %u began, got lost, and only the timeout sent it again: %s lost in "
		 "%u stall%s.",
		 analyzer_side_key(g->side), g->side == ANALYZER_SIDE_UNKNOWN ? "" : " on-demand paging",
		 analyzer_confidence_key(g->confidence), ib_opcode_name(g->opcode), g->psn,
		 TRACE_DURATION(g->after_ns), ib_opcode_name(g->opcode_before), g->psn_before,
		 TRACE_DURATION(all_ns), count, count == 1 ? "" : "s");
}

static void timeout(const struct analyzer_result *r, char *text, size_t size)
{
	const struct analyzer_finding *g = finding(r, ANALYZER_TIMEOUT);
	char losses[TRACE_TEXT_MAX] = "";
	unsigned count;
	int64_t all_ns = sum_ns(r, ANALYZER_TIMEOUT, &count);

	if (r->sequence_naks)
		snprintf(losses, sizeof(losses), " The path loses packets: %ju sequence NAKs.",
			 (uintmax_t)r->sequence_naks);
	if (!g) {
		snprintf(text, size, "Timeouts, beyond the findings that are kept.");
		return;
	}
	snprintf(text, size, "%s PSN %u %s and was sent again by the timeout, without a pending period before "
		 "it: %s lost by %ju timeout%s. This is no sign of on-demand paging.%s",
		 ib_opcode_name(g->opcode), g->psn,
		 r->answers ? "got no answer that arrived" : "was never answered",
		 TRACE_DURATION(all_ns), (uintmax_t)r->timeouts, r->timeouts == 1 ? "" : "s",
		 losses);
}

static void flood(const struct analyzer_result *r, char *text, size_t size)
{
	snprintf(text, size, "READ flood: %ju READ%s answered and sent again at least three times, on "
		 "this and %u other connections at the same time: %ju resends in %s.",
		 (uintmax_t)r->flood_requests, r->flood_requests == 1 ? " was" : "s were each",
		 r->flood_flows - 1,
		 (uintmax_t)r->resends[ANALYZER_BY_DISCARD],
		 TRACE_DURATION(r->flood_end_ns - r->flood_begin_ns));
}

static void amplification(const struct analyzer_result *r, char *text, size_t size)
{
	snprintf(text, size, "WRITE amplification: %ju RNR NAKs made the requester send %ju WRITE packets again, "
		 "%.1f times each (N(M+1)/2 gives %ju packets, seen: %ju): %s lost.",
		 (uintmax_t)r->write_naks, (uintmax_t)r->write_resends,
		 (double)r->write_resends / (double)r->write_distinct,
		 (uintmax_t)(r->write_distinct * (r->write_naks + 1) / 2),
		 (uintmax_t)(r->write_distinct + r->write_resends),
		 TRACE_DURATION(r->lost_ns[ANALYZER_BY_RNR]));
}

static void recovered(const struct analyzer_result *r, char *text, size_t size)
{
	const struct analyzer_finding *g = finding(r, ANALYZER_DAMMING_RECOVERED);

	if (g)
		snprintf(text, size, "Near packet damming: %s PSN %u was lost behind a pending period of PSN %u, and "
			 "a later request brought it back after %s by a sequence NAK.",
			 ib_opcode_name(g->opcode), g->psn, g->psn_before,
			 TRACE_DURATION(g->stall_ns));
	else
		snprintf(text, size, "Near packet damming, beyond the findings that are kept.");
}

static void page_fault(const struct analyzer_result *r, char *text, size_t size)
{
	snprintf(text, size, "No pitfall: %ju page fault%s (or late receives) at the responder and %ju at the "
		 "requester cost %s.",
		 (uintmax_t)r->rnr_faults, r->rnr_faults == 1 ? "" : "s",
		 (uintmax_t)r->resends[ANALYZER_BY_DISCARD],
		 TRACE_DURATION(r->lost_ns[ANALYZER_BY_RNR] + r->lost_ns[ANALYZER_BY_DISCARD]));
}

static void loss(const struct analyzer_result *r, char *text, size_t size)
{
	snprintf(text, size, "Packets were lost and sent again at once: %ju sequence NAKs, %ju lost answers, %s "
		 "lost. No pitfall.", (uintmax_t)r->sequence_naks, (uintmax_t)r->resends[ANALYZER_BY_GAP],
		 TRACE_DURATION(r->lost_ns[ANALYZER_BY_SEQUENCE] + r->lost_ns[ANALYZER_BY_GAP]));
}

static void receiver(const struct analyzer_result *r, char *text, size_t size)
{
	snprintf(text, size, "The receiver was not ready: %ju RNR NAKs came at once, as for a missing receive; %s "
		 "lost. No pitfall.", (uintmax_t)r->rnr_receives,
		 TRACE_DURATION(r->lost_ns[ANALYZER_BY_RNR]));
}

static void incomplete(const struct analyzer_result *r, char *text, size_t size)
{
	const char *why = "";

	for (unsigned i = 0; analyzer_gap_text(i); i++)
		if (r->gaps & 1u << i) {
			why = analyzer_gap_text(i);
			break;
		}
	snprintf(text, size, "Not judged in full: %s.", why);
}

void trace_sentence(const struct analyzer_result *r, char *text, size_t size)
{
	switch (r->verdict) {
	case ANALYZER_DAMMING: damming(r, text, size); break;
	case ANALYZER_READ_FLOOD: flood(r, text, size); break;
	case ANALYZER_WRITE_AMPLIFICATION: amplification(r, text, size); break;
	case ANALYZER_TIMEOUT: timeout(r, text, size); break;
	case ANALYZER_DAMMING_RECOVERED: recovered(r, text, size); break;
	case ANALYZER_REFUSED:
		snprintf(text, size, "The responder refused a request (NAK code %u).", r->refusal);
		break;
	case ANALYZER_LOSS: loss(r, text, size); break;
	case ANALYZER_RNR: receiver(r, text, size); break;
	case ANALYZER_CONGESTION:
		snprintf(text, size, "Congestion: %ju marked packets, %ju notifications. No pitfall.",
			 (uintmax_t)r->marks, (uintmax_t)r->notifications);
		break;
	case ANALYZER_PAGE_FAULT: page_fault(r, text, size); break;
	case ANALYZER_INCOMPLETE: incomplete(r, text, size); break;
	case ANALYZER_NONE: snprintf(text, size, "Nothing found."); break;
	}
}

void trace_damage(const struct trace_report *t, char *text, size_t size)
{
	const struct capture_error *e = &t->capture->reader.error;

	snprintf(text, size, "%s: offset %ju: %s is %ju (0x%jx): %s", t->file, (uintmax_t)e->offset, e->field,
		 (uintmax_t)e->value, (uintmax_t)e->value, e->why);
}

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

/* A line of one piece. */
__attribute__((format(printf, 3, 4)))
static void say_line(trace_say *say, void *arg, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	say(arg, text);
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
	add(l, "%s at %s s: stall %s", analyzer_kind_name(g->kind), TRACE_WHEN(t, g->begin_ns),
	    TRACE_DURATION(g->stall_ns));
	if (g->timeouts > 1)
		add(l, " by %u timeouts of the same request", g->timeouts);
	if (g->timeouts)
		add(l, ", timeout code about %u (%s, %.2f times)", g->timeout_code,
		    TRACE_DURATION(INT64_C(4096) << g->timeout_code), g->timeout_factor);
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

	for (unsigned i = 0; i < shown; i++) {
		struct line l = { 0 };

		stall(t, &r->finding[i], &l);
		say(arg, l.text);
	}
	if (r->findings_all > shown)
		say_line(say, arg, "and %ju more stalls", (uintmax_t)(r->findings_all - shown));
	if (r->flood_packet)
		say_line(say, arg, "packet %ju is the first READ that was sent a fourth time; "
			 "%ju bytes were read in vain", (uintmax_t)r->flood_packet,
			 (uintmax_t)r->flood_bytes);
	if (r->kinds & 1u << ANALYZER_WRITE_AMPLIFICATION)
		say_line(say, arg, "packet %ju is the first RNR NAK to a WRITE",
			 (uintmax_t)r->write_packet);
}

static void inflation(const struct analyzer_result *r, struct line *l)
{
	add(l, "RNR waits: %ju, %.2f to %.2f times the nominal delay (the last: %s), %.2f on average;"
	    " histogram", (uintmax_t)r->rnr_waits, r->inflation_min, r->inflation_max,
	    TRACE_DURATION(r->rnr_nominal_ns), r->inflation_sum / (double)r->rnr_waits);
	for (unsigned i = 0; i < ANALYZER_INFLATIONS; i++)
		if (r->inflation[i])
			add(l, " %s%u: %ju", i == ANALYZER_INFLATIONS - 1 ? ">=" : "", i,
			    (uintmax_t)r->inflation[i]);
}

void trace_lines_waits(const struct analyzer_result *r, trace_say *say, void *arg)
{
	struct line waits = { 0 };

	if (r->rnr_waits) {
		inflation(r, &waits);
		say(arg, waits.text);
	}
	if (r->silent_ns >= SILENCE_NS_MIN)
		say_line(say, arg, "longest silence with an open request: %s, until packet %ju",
			 TRACE_DURATION(r->silent_ns), (uintmax_t)r->silent_packet);
}

void trace_lines_gaps(const struct analyzer_result *r, trace_say *say, void *arg)
{
	for (unsigned i = 0; analyzer_gap_text(i); i++)
		if (r->gaps & 1u << i)
			say_line(say, arg, "not judged: %s", analyzer_gap_text(i));
}

void trace_lines_pages(const struct trace_report *t, trace_say *say, void *arg)
{
	const struct analyzer_totals *all = analyzer_totals(t->analyzer);

	if (all->pages)
		say_line(say, arg,
			 "pages whose READs were answered in vain: %ju, stale for up to %s",
			 (uintmax_t)all->pages, TRACE_DURATION(all->stale_ns));
}

void trace_lines_advice(const struct trace_report *t, trace_say *say, void *arg)
{
	uint32_t kinds = 0;

	for (unsigned i = 0; i < analyzer_flows(t->analyzer); i++)
		if (trace_is_shown(t, analyzer_flow(t->analyzer, i)))
			kinds |= 1u << analyzer_flow(t->analyzer, i)->verdict;
	for (enum analyzer_kind kind = 0; kind < ANALYZER_NONE; kind++)
		if (kinds & 1u << kind)
			say_line(say, arg, "%s: %s", analyzer_kind_name(kind),
				 analyzer_kind_advice(kind));
}

unsigned trace_doubts(const struct trace_report *t, void (*say)(void *arg, const char *text), void *arg)
{
	const struct analyzer_capture *c = t->capture;
	const struct analyzer_totals *all = analyzer_totals(t->analyzer);
	const struct {
		uint64_t count;
		const char *text;
	} doubts[] = {
		{ analyzer_capture_lost(c), "packets were lost by the capture, as it says itself" },
		{ c->cut, "packets end before their RDMA header (a snapshot length that is too small)" },
		{ c->malformed, "packets have an opcode that is not known" },
		{ c->links_unknown, "packets have a link type that is not read" },
		{ c->untimed, "packets have no time" },
		{ all->flows_refused, "packets belong to flows beyond the number that is kept" },
		{ all->requests_bounded, "bound, that of the memory for requests, was reached: the oldest were forgotten" },
		{ analyzer_flows(t->analyzer) ? 0 : all->others,
		  "packets are of services without acknowledgements (UD, UC), and there are no others" },
		{ !all->packets, "capture without a packet of RDMA" },
	};
	unsigned said = 0;

	for (size_t i = 0; i < sizeof(doubts) / sizeof(doubts[0]); i++) {
		if (!doubts[i].count)
			continue;
		say_line(say, arg, "%ju %s", (uintmax_t)doubts[i].count, doubts[i].text);
		said++;
	}
	return said;
}
