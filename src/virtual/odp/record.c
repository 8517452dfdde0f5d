/* SPDX-License-Identifier: BSD-2-Clause */
/* See record.h. */
#include "virtual/odp/record.h"

#include <inttypes.h>
#include <string.h>

#include "engine/rc/packet.h"
#include "engine/rc/rules.h"
#include "hca/memory/demand.h"
#include "virtual/clock.h"

#define PAGE_SHIFT 12
/* So many alike in a row are events of their own. */
#define ALIKE 3

enum kind { PACKET, POSTED, MISSING, THERE };

struct event {
	enum kind kind;
	uint64_t at_ns, until_ns; /* of the first and the last, if several are one */
	unsigned end;             /* where it happens; enum odp_end_number */
	uint64_t number;          /* PSN; number of the operation on its queue pair; page of the buffer */
	uint64_t count;
	uint8_t opcode, syndrome;
	bool again, lost;
	unsigned alike;           /* so many before it are like it */
};

struct lane {
	struct event event[ODP_RECORD_EVENTS];
	unsigned count;
	uint64_t left_out; /* events that found no room */
	uint64_t lost, again;
};

static struct {
	const struct odp_ends *ends;
	uint64_t began_ns;
	struct lane lane[ODP_QPS_MAX + 1]; /* by the number of the queue pair */
} state;

static bool continues(const struct event *last, const struct event *e)
{
	return last->kind == e->kind && last->end == e->end && last->opcode == e->opcode &&
	       last->syndrome == e->syndrome && last->again == e->again && last->lost == e->lost &&
	       last->number + last->count == e->number;
}

static void add(unsigned qp, struct event e)
{
	struct lane *l = &state.lane[qp];
	struct event *last = l->count ? &l->event[l->count - 1] : NULL;

	/* What leaves at once was not waiting. */
	if (last && last->kind == POSTED && last->count == 1 && e.kind == PACKET &&
	    e.end == ODP_END_CLIENT && last->at_ns == e.at_ns) {
		l->count--;
		last = l->count ? last - 1 : NULL;
	}
	e.alike = last && continues(last, &e) ? last->alike + 1 : 0;
	if (e.alike > ALIKE) {
		last->count += e.count;
		last->until_ns = e.at_ns;
	} else if (l->count < ODP_RECORD_EVENTS) {
		l->event[l->count++] = e;
	} else {
		l->left_out++;
	}
}

static void saw_fault(void *arg, uint64_t at_ns, bool served, const struct paging_event *fault)
{
	const unsigned *end = arg;
	const uint64_t first = (uintptr_t)state.ends->end[*end].memory >> PAGE_SHIFT;

	add(odp_ends_number(state.ends, fault->qpn),
	    (struct event){ .kind = served ? THERE : MISSING, .at_ns = at_ns - state.began_ns,
			    .until_ns = at_ns - state.began_ns, .end = *end,
			    .number = fault->range.first - first, .count = fault->range.pages });
}

void odp_record_begin(const struct odp_ends *ends, uint64_t now_ns)
{
	static unsigned numbers[] = { ODP_END_CLIENT, ODP_END_SERVER };

	state.ends = ends;
	state.began_ns = now_ns;
	memset(state.lane, 0, odp_qps(ends->point) * sizeof(*state.lane));
	for (unsigned i = 0; i < 2; i++)
		hca_demand_watch(virtual_hosts[i].port.demand, saw_fault, &numbers[i]);
}

void odp_record_packet(const struct packet_seen *p, unsigned qp, bool again)
{
	const bool answers = p->opcode >= IB_READ_RESPONSE_FIRST && p->opcode <= IB_ATOMIC_ACKNOWLEDGE;
	const bool lost = p->lost || (p->from == ODP_END_CLIENT && !state.ends->point->answers);
	const uint64_t at_ns = p->at_ns - state.began_ns;

	state.lane[qp].lost += lost;
	state.lane[qp].again += again;
	add(qp, (struct event){ .kind = PACKET, .at_ns = at_ns, .until_ns = at_ns, .end = p->from,
				.number = p->psn, .count = 1, .opcode = p->opcode,
				.syndrome = answers && p->opcode == IB_ACKNOWLEDGE &&
						    (p->syndrome & RC_SYN_KIND) != RC_SYN_ACK ?
						    p->syndrome : 0,
				.again = again, .lost = lost });
}

void odp_record_post(uint64_t i)
{
	const uint64_t qps = state.ends->point->num_qps;
	const uint64_t at_ns = virtual_now_ns() - state.began_ns;

	add((unsigned)(i % qps), (struct event){ .kind = POSTED, .at_ns = at_ns, .until_ns = at_ns,
						 .end = ODP_END_CLIENT, .number = i / qps, .count = 1 });
}

/* ---- printing ---- */

static unsigned best(void)
{
	unsigned best = 0;

	for (unsigned i = 1; i < odp_qps(state.ends->point); i++) {
		const struct lane *l = &state.lane[i], *b = &state.lane[best];

		if (l->lost > b->lost || (l->lost == b->lost && l->again > b->again))
			best = i;
	}
	return best;
}

bool odp_record_is_eventful(void)
{
	const struct lane *l = &state.lane[best()];

	return l->lost || l->again;
}

static void print_answer(FILE *out, uint8_t syndrome)
{
	if ((syndrome & RC_SYN_KIND) == RC_SYN_RNR)
		fprintf(out, ", \"rnr_ns\": %" PRIu64, rc_rnr_ns(syndrome & RC_SYN_VALUE));
	else if (syndrome)
		fprintf(out, ", \"nak\": %u", syndrome & RC_SYN_VALUE);
}

static void print_event(FILE *out, const struct event *e)
{
	static const char *const kinds[] = { NULL, "posted", "missing", "there" };
	static const char *const ends[] = { "client", "server" };

	fprintf(out, "{\"at_ns\": %" PRIu64 ", \"end\": \"%s\", \"what\": \"%s\", \"number\": %" PRIu64,
		e->at_ns, ends[e->end], e->kind == PACKET ? ib_opcode_name(e->opcode) : kinds[e->kind],
		e->number);
	if (e->count > 1)
		fprintf(out, ", \"count\": %" PRIu64 ", \"until_ns\": %" PRIu64, e->count, e->until_ns);
	print_answer(out, e->syndrome);
	fprintf(out, "%s%s}", e->again ? ", \"again\": true" : "", e->lost ? ", \"lost\": true" : "");
}

void odp_record_print(FILE *out)
{
	const unsigned qp = best();
	const struct lane *l = &state.lane[qp];

	fprintf(out, "{\"queue_pair\": %u, \"left_out\": %" PRIu64 ", \"events\": [", qp, l->left_out);
	for (unsigned i = 0; i < l->count; i++) {
		fputs(i ? ", " : "", out);
		print_event(out, &l->event[i]);
	}
	fputs("]}", out);
}
