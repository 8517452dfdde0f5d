/* SPDX-License-Identifier: BSD-2-Clause */
/* Packets to flows, and results; see analyzer.h. */
#include "analyzer/analyzer.h"

#include <stdlib.h>
#include <sys/random.h>

#include "analyzer/answer.h"
#include "analyzer/copies.h"
#include "analyzer/request.h"
#include "analyzer/scout.h"
#include "analyzer/table.h"
#include "analyzer/verdict.h"

#define REQUESTS_MAX_ALL (1u << 20)

#define DISORDER_NS_MAX INT64_C(1000000000)
#define QUEUE_PACKETS 4096 /* a power of two */
#define QUEUE_NS_MAX INT64_C(1000000000) /* of a packet, while packets come */

/* A packet that waits until the directions of its connection are known. */
struct waiting {
	struct analyzer_packet packet;
	struct analyzer_flow *flow; /* NULL: a congestion notification */
	bool untimed;
};

struct analyzer {
	struct analyzer_shared all;
	struct analyzer_table table;
	struct analyzer_totals totals;
	unsigned ladder_flow, ladders;
	bool untimed;
	uint32_t origin;      /* of the first packet */
	bool several_origins;
	uint64_t queued, analysed;
	struct waiting queue[QUEUE_PACKETS];
	unsigned flows;
	struct analyzer_flow *flow[ANALYZER_FLOWS_MAX]; /* by number */
};

struct analyzer *analyzer_new(unsigned ladder_flow)
{
	struct analyzer *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->all.budget.left = REQUESTS_MAX_ALL;
	a->ladder_flow = ladder_flow;
	if (getrandom(&a->table.seed, sizeof(a->table.seed), GRND_NONBLOCK) < 0)
		a->table.seed = (uintptr_t)a;
	return a;
}

void analyzer_free(struct analyzer *a)
{
	if (!a)
		return;
	for (uint32_t i = 0; i < a->table.count; i++) {
		free(a->table.flow[i]->requests.ring);
		free(a->table.flow[i]->scout);
		free(a->table.flow[i]->copies);
		free(a->table.flow[i]->ladder);
		free(a->table.flow[i]->result.finding);
		free(a->table.flow[i]);
	}
	free(a);
}

void analyzer_untimed(struct analyzer *a, bool untimed)
{
	a->untimed = untimed;
}

static void number(struct analyzer *a, struct analyzer_flow *f)
{
	if (f->result.number || a->flows == ANALYZER_FLOWS_MAX)
		return;
	a->flow[a->flows++] = f;
	f->result.number = a->flows;
	if (a->ladder_flow != a->flows &&
	    (a->ladder_flow != ANALYZER_LADDER_ALL || a->ladders == ANALYZER_LADDERS_MAX))
		return;
	f->ladder = calloc(1, sizeof(*f->ladder));
	a->ladders++;
}

/* A packet of a connection comes: how long was there none while a request was open? */
static void measure_silence(struct analyzer_flow *f, const struct analyzer_packet *p)
{
	int64_t silent_ns = p->when_ns - f->seen_ns;

	if (f->seen_ns && silent_ns > f->result.silent_ns && analyzer_requests_open(&f->requests)) {
		f->result.silent_ns = silent_ns;
		f->result.silent_packet = p->number;
	}
	f->seen_ns = p->when_ns;
}

static void count(struct analyzer_flow *f, const struct analyzer_packet *p)
{
	f->result.packets++;
	f->result.wire_bytes += p->bytes;
	f->result.marks += p->marked || p->ib.fecn;
	f->result.last_ns = p->when_ns;
	measure_silence(f, p);
	if (f->partner && f->partner != f)
		measure_silence(f->partner, p);
}

static void answer(struct analyzer *a, struct analyzer_flow *y, const struct analyzer_packet *p)
{
	struct analyzer_flow *x = analyzer_table_pair(&a->table, y, p);

	if (!x) {
		y->answers_alone++;
		return;
	}
	analyzer_table_rate(&a->table, y, analyzer_answer_packet(x, p));
}

/* The notification goes to the queue pair whose packets were marked. */
static void notification(struct analyzer *a, const struct analyzer_packet *p)
{
	struct analyzer_flow *f = analyzer_table_get(&a->table, p, false);

	if (!f)
		return;
	f = f->partner ? f->partner : f;
	f->result.notifications++;
}

static void count_all(struct analyzer *a, const struct analyzer_packet *p)
{
	struct analyzer_totals *t = &a->totals;

	if (!t->packets++) {
		t->first_ns = t->last_ns = p->when_ns;
		a->origin = p->origin;
	}
	a->several_origins |= p->origin != a->origin;
	if (p->when_ns < t->last_ns)
		t->backwards++;
	else
		t->last_ns = p->when_ns;
}

/* The time of a packet. Packets of several queues or files may be out of order by a little. */
static int64_t time_of(const struct analyzer *a, const struct analyzer_packet *p)
{
	int64_t behind_ns = a->totals.last_ns - p->when_ns;

	return behind_ns > 0 && behind_ns < DISORDER_NS_MAX ? a->totals.last_ns : p->when_ns;
}

static void analyse(struct analyzer *a, const struct waiting *w)
{
	struct analyzer_flow *f = w->flow;

	if (!f) {
		notification(a, &w->packet);
		return;
	}
	f->untimed |= w->untimed;
	if (a->several_origins && analyzer_copies_is(f, &w->packet)) {
		f->result.twice++;
		return;
	}
	count(f, &w->packet);
	if (analyzer_is_answer(w->packet.ib.opcode)) {
		answer(a, f, &w->packet);
		return;
	}
	number(a, f);
	analyzer_request_packet(&a->all, f, &w->packet);
}

static void analyse_oldest(struct analyzer *a)
{
	analyse(a, &a->queue[a->analysed % QUEUE_PACKETS]);
	a->analysed++;
}

void analyzer_packet(struct analyzer *a, const struct analyzer_packet *p)
{
	uint8_t service = p->ib.opcode & IB_SERVICE_MASK;
	struct analyzer_flow *f = NULL;
	struct waiting *w;

	count_all(a, p);
	if (service == IB_SERVICE_RC || service == IB_SERVICE_XRC) {
		f = analyzer_table_get(&a->table, p, true);
		if (!f) {
			a->totals.flows_refused++;
			return;
		}
		analyzer_scout_packet(&a->table, f, p);
	} else if (p->ib.opcode != IB_OPCODE_CNP) {
		a->totals.others++;
		return;
	}
	if (a->queued - a->analysed == QUEUE_PACKETS)
		analyse_oldest(a);
	w = &a->queue[a->queued++ % QUEUE_PACKETS];
	*w = (struct waiting){ .packet = *p, .flow = f, .untimed = a->untimed };
	w->packet.when_ns = time_of(a, p);
}

/* Flows that carry answers alone: their counts go to the partner, or they get a number if the
 * requests were not captured. */
static void settle(struct analyzer *a, struct analyzer_flow *f)
{
	if (f->result.number)
		return;
	if (f->partner) {
		f->partner->result.marks += f->result.marks;
		f->partner->result.notifications += f->result.notifications;
		f->partner->result.wire_bytes += f->result.wire_bytes;
		f->partner->result.packets += f->result.packets;
	} else if (f->answers_alone) {
		number(a, f);
	}
}

void analyzer_catch_up(struct analyzer *a, int64_t now_ns)
{
	while (a->analysed != a->queued) {
		const struct waiting *w = &a->queue[a->analysed % QUEUE_PACKETS];

		if (w->flow && !w->flow->partner && now_ns - w->packet.when_ns < QUEUE_NS_MAX)
			return;
		analyse_oldest(a);
	}
}

static void tell_stalls(struct analyzer_flow *f, void (*tell)(void *arg, const struct analyzer_news *news),
			void *arg)
{
	for (; f->stalls_told < f->result.findings; f->stalls_told++) {
		const struct analyzer_finding *g = &f->result.finding[f->stalls_told];

		tell(arg, &(struct analyzer_news){ &f->result, g->kind, g, g->begin_ns + g->stall_ns });
		f->kinds_told |= 1u << g->kind;
	}
}

void analyzer_news(struct analyzer *a, void (*tell)(void *arg, const struct analyzer_news *news),
		   void *arg)
{
	analyzer_verdict_flood(a->flow, a->flows);
	for (unsigned i = 0; i < a->flows; i++) {
		struct analyzer_flow *f = a->flow[i];

		analyzer_verdict_kinds(f);
		tell_stalls(f, tell, arg);
		for (int kind = 0; kind < ANALYZER_PITFALLS_END; kind++) {
			if (!(f->result.kinds & ~f->kinds_told & 1u << kind))
				continue;
			f->kinds_told |= 1u << kind;
			tell(arg, &(struct analyzer_news){ &f->result, (enum analyzer_kind)kind, NULL,
							   f->result.last_ns });
		}
	}
}

void analyzer_finish(struct analyzer *a)
{
	while (a->analysed != a->queued)
		analyse_oldest(a);
	for (uint32_t i = 0; i < a->table.count; i++) {
		struct analyzer_flow *f = a->table.flow[i];

		for (uint32_t k = 0; k < f->requests.count; k++)
			analyzer_request_retire(&a->all, f, analyzer_request_at(&f->requests, k));
		settle(a, f);
	}
	analyzer_verdict_flood(a->flow, a->flows);
	for (unsigned i = 0; i < a->flows; i++)
		analyzer_verdict_flow(a->flow[i], a->totals.last_ns);
	a->totals.requests_bounded = a->all.budget.used_up;
	a->totals.pages = a->all.pages.count;
	a->totals.stale_ns = analyzer_pages_stale_ns(&a->all.pages);
}

const struct analyzer_totals *analyzer_totals(const struct analyzer *a)
{
	return &a->totals;
}

unsigned analyzer_flows(const struct analyzer *a)
{
	return a->flows;
}

const struct analyzer_result *analyzer_flow(const struct analyzer *a, unsigned i)
{
	return &a->flow[i]->result;
}

const struct analyzer_ladder *analyzer_ladder(const struct analyzer *a, unsigned flow)
{
	return flow && flow <= a->flows ? a->flow[flow - 1]->ladder : NULL;
}
