/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The side of the requester where pages are missing (engine/paging): packets whose payload is
 * missing are not sent; a response without a place is discarded, and its READ sent again after a
 * while. What is posted while the queue pair waits to send again may get lost.
 */
#include <errno.h>

#include "hca/queue/post.h"
#include "transport/packet/requester/requester.h"

/* Until an event; no fault takes so long. */
#define FOR_LONG_NS (3600 * NSEC_PER_SEC)

static uint32_t qpn_of(const struct packet_qp *pq)
{
	return pq->qp->ibv.qp_num;
}

void packet_demand_limits(const struct packet_qp *pq, struct rc_requester_params *p)
{
	const struct paging_profile *profile = hca_demand_profile(pq->port->demand);

	p->timeout_ns = paging_timeout_ns(profile, pq->qp->attr.timeout);
	p->rnr_permille = (uint32_t)profile->rnr_permille;
	p->burst = (uint8_t)MIN(profile->burst, (uint64_t)UINT8_MAX);
	p->burst_ns = p->timeout_ns / 1000 * profile->burst_permille;
}

static bool source_there(struct packet_qp *pq, const struct hca_swqe *e, const struct rc_tx *tx)
{
	if (!tx->packet.bytes || e->flags & (HCA_SWQE_INLINE | HCA_SWQE_HELD) ||
	    hca_demand_use_sges(pq->port->demand, qpn_of(pq), PAGING_REQUESTER, e->sge,
				e->num_sge, tx->at, tx->packet.bytes))
		return true;
	pq->demand.waits = true;
	return false;
}

/* Is the run sent as one packet is: no page of it is missing, and none of it may get lost? */
static bool run_there(const struct packet_qp *pq, const struct hca_swqe *e, const struct rc_tx *tx)
{
	if (pq->demand.lost_psn != pq->demand.lost_end)
		return false;
	return e->flags & (HCA_SWQE_INLINE | HCA_SWQE_HELD) ||
	       (e->num_sge == 1 &&
		hca_demand_there(pq->port->demand, qpn_of(pq), PAGING_REQUESTER, e->sge, tx->at,
				 tx->packet.bytes * (1 + tx->packet.more)));
}

/* From now on packets that are posted may get lost. */
static void begin_wait(struct packet_qp *pq)
{
	if (pq->demand.pending)
		return;
	pq->demand.pending = true;
	pq->demand.lost_psn = pq->demand.lost_end = pq->requester.post_psn;
}

void packet_demand_resume(struct packet_qp *pq, uint64_t now_ns)
{
	if (!pq->demand.pending || now_ns < pq->requester.rnr_until_ns)
		return;
	pq->demand.pending = false;
	pq->demand.lost_end = pq->requester.post_psn;
}

void packet_demand_sent(struct packet_qp *pq)
{
	if (!pq->demand.pending)
		pq->demand.lost_end = pq->demand.lost_psn;
}

static bool gets_lost(const struct packet_qp *pq, uint32_t psn)
{
	const struct packet_demand *d = &pq->demand;

	return hca_demand_profile(pq->port->demand)->loses_posted &&
	       rc_psn_diff(psn, d->lost_psn) >= 0 && rc_psn_diff(psn, d->lost_end) < 0 &&
	       rc_psn_diff(psn, pq->requester.top_psn) >= 0;
}

int packet_demand_send(struct packet_qp *pq, struct packet_train *train,
		       const struct hca_swqe *e, struct rc_tx *tx)
{
	bool lost = gets_lost(pq, tx->packet.psn);

	if (!source_there(pq, e, tx))
		return -ENOENT;
	if (tx->packet.more && !run_there(pq, e, tx))
		tx->packet.more = 0;
	if (train->packets && (lost || train->lost))
		return -ENOBUFS;
	train->lost = lost;
	return 0;
}

bool packet_discards(struct packet_qp *pq, const struct packet_frame *f,
		     const struct rc_place *where, const struct hca_swqe *e)
{
	struct hca_demand *d = pq->port->demand;
	const uint64_t resend_ns = hca_demand_profile(d)->resend_us * 1000;
	bool there;

	if ((f->rc.op != RC_READ_RESPONSE && f->rc.op != RC_ATOMIC_RESPONSE) ||
	    pq->service != PACKET_RC)
		return false;
	/* Also what is discarded in any case begins a fault. */
	there = !where->wanted || !where->bytes ||
		hca_demand_use_sges(d, qpn_of(pq), PAGING_REQUESTER, e->sge, e->num_sge,
				    where->at, where->bytes * (1 + where->more));
	if (pq->requester.rnr_until_ns)
		return true;
	if (there)
		return false;
	rc_hold(&pq->requester, pq->port->now_ns + (resend_ns ? resend_ns : FOR_LONG_NS));
	pq->demand.waits = !resend_ns;
	begin_wait(pq);
	return true;
}

void packet_demand_replied(struct packet_qp *pq, const struct packet_frame *f)
{
	if (f->rc.op != RC_ACK)
		return;
	if ((f->rc.syndrome & RC_SYN_KIND) == RC_SYN_RNR && pq->requester.rnr_until_ns)
		begin_wait(pq);
	/* The peer has noticed the gap. */
	if (f->rc.syndrome == RC_SYN_SEQUENCE)
		pq->demand.lost_end = pq->demand.lost_psn;
}

void packet_source_event(struct packet_qp *pq)
{
	hca_lock(&pq->qp->sq_lock);
	if (pq->ready && pq->demand.waits) {
		pq->demand.waits = false;
		if (pq->demand.pending)
			rc_release(&pq->requester);
		hca_sq_run(pq->qp);
	}
	hca_unlock(&pq->qp->sq_lock);
}
