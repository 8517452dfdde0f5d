/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One timer a queue pair, hca_qp.retry, for the requester: the responder's answers leave
 * with the poll that brought the request. It is armed lazily: one that runs too early
 * arms itself again, so that an acknowledgement costs nothing.
 */
#include "transport/packet/state.h"

void packet_arm(struct packet_qp *pq)
{
	uint64_t due = rc_deadline(&pq->requester);

	if (pq->look_ns && (!due || pq->look_ns < due))
		due = pq->look_ns;
	if (!due || (pq->armed_ns && pq->armed_ns <= due))
		return;
	pq->armed_ns = due;
	progress_timer_arm(&pq->qp->retry, due);
}

void packet_count_retries(struct packet_qp *pq)
{
	uint64_t more = pq->requester.gone_back - pq->gone_back;

	pq->gone_back += more;
	if (unlikely(more))
		HCA_COUNT_RARE(pq->qp, TX_RETRIES, more);
}

void packet_expired(struct hca_qp *qp)
{
	struct packet_qp *pq;
	enum ibv_qp_state state;

	hca_lock(&qp->sq_lock);
	pq = packet_part(qp)->state;
	state = hca_qp_state(qp);
	if (pq && pq->ready && (state == IBV_QPS_RTS || state == IBV_QPS_SQD)) {
		pq->armed_ns = pq->look_ns = 0;
		packet_settle(pq);
		packet_finish(pq, rc_timer(&pq->requester, progress_now_ns()));
		packet_count_retries(pq);
		hca_sq_run(qp);
	}
	hca_unlock(&qp->sq_lock);
}
