/* SPDX-License-Identifier: BSD-2-Clause */
/* See count.h. */
#include "virtual/odp/count.h"

#include <stdlib.h>

#include "engine/rc/packet.h"
#include "engine/rc/rules.h"
#include "virtual/fail.h"
#include "virtual/net.h"

/* Of a queue pair of the server: the sequence number behind the highest that was sent to it. */
struct flow {
	uint32_t qpn, top_psn;
};

static struct {
	struct odp_counts *counts;
	bool answers;
	struct flow flows[ODP_QPS_MAX + 1]; /* by qpn */
	unsigned count;
} state;

static int by_qpn(const void *a, const void *b)
{
	const struct flow *x = a, *y = b;

	return x->qpn < y->qpn ? -1 : x->qpn > y->qpn;
}

static void count_request(const struct packet_seen *p)
{
	const struct flow key = { .qpn = p->qpn };
	struct flow *f = bsearch(&key, state.flows, state.count, sizeof(*f), by_qpn);

	expect(f);
	state.counts->requests++;
	state.counts->lost += p->lost;
	if (rc_psn_diff(p->psn, f->top_psn) < 0)
		state.counts->repeated++;
	else
		f->top_psn = (p->psn + 1) & RC_PSN_MASK;
}

static void count_response(const struct packet_seen *p)
{
	const bool plain = p->opcode == IB_ACKNOWLEDGE;

	state.counts->responses++;
	state.counts->rnr_naks += plain && (p->syndrome & RC_SYN_KIND) == RC_SYN_RNR;
	state.counts->sequence_naks += plain && p->syndrome == RC_SYN_SEQUENCE;
}

/* True loses the packet. */
static bool judge(const struct packet_seen *p)
{
	if (p->from == ODP_END_SERVER) {
		count_response(p);
		return false;
	}
	count_request(p);
	return !state.answers;
}

void odp_count_begin(const struct odp_ends *ends, struct odp_counts *counts)
{
	*counts = (struct odp_counts){ 0 };
	state.counts = counts;
	state.answers = ends->point->answers;
	state.count = odp_qps(ends->point);
	for (unsigned i = 0; i < state.count; i++)
		state.flows[i] = (struct flow){ ends->end[ODP_END_SERVER].qp[i]->qp_num, 0 };
	qsort(state.flows, state.count, sizeof(*state.flows), by_qpn);
	virtual_judge = judge;
}
