/* SPDX-License-Identifier: BSD-2-Clause */
/* See count.h. */
#include "virtual/odp/count.h"

#include <string.h>

#include "engine/rc/packet.h"
#include "engine/rc/rules.h"
#include "virtual/net.h"
#include "virtual/odp/record.h"

static struct {
	const struct odp_ends *ends;
	struct odp_counts *counts;
	/* The sequence number behind the highest that the client sent, by the number of the queue pair. */
	uint32_t top_psn[ODP_QPS_MAX + 1];
} state;

/* True: its sequence number was sent before. */
static bool count_request(const struct packet_seen *p, unsigned qp)
{
	const bool again = rc_psn_diff(p->psn, state.top_psn[qp]) < 0;

	state.counts->requests++;
	state.counts->lost += p->lost;
	state.counts->repeated += again;
	if (!again)
		state.top_psn[qp] = (p->psn + 1) & RC_PSN_MASK;
	return again;
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
	const unsigned qp = odp_ends_number(state.ends, p->qpn);

	if (p->from == ODP_END_SERVER) {
		count_response(p);
		odp_record_packet(p, qp, false);
		return false;
	}
	odp_record_packet(p, qp, count_request(p, qp));
	return !state.ends->point->answers;
}

void odp_count_begin(const struct odp_ends *ends, struct odp_counts *counts)
{
	*counts = (struct odp_counts){ 0 };
	state.ends = ends;
	state.counts = counts;
	memset(state.top_psn, 0, sizeof(state.top_psn));
	virtual_judge = judge;
}
