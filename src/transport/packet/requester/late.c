/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A message of UC is complete when it has left: nothing is acknowledged. A program that then looks
 * for the peer's answer in memory makes no call in which the adapter could take that answer in, and
 * the progress thread, which does it in its place, first has to get a processor. With RC such a
 * program polls until the acknowledgement comes, which comes with the answer. So, where the peer
 * has answered each of the last messages before the next one was posted, the completion waits for
 * the answer, for a limited time: while the program polls for it, its polls take the answer in.
 */
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "transport/packet/requester/requester.h"

#define ANSWERED_LEAST 8u /* messages in a row; each wait in vain but the first doubles it */
#define VAIN_MOST 7u
/* The first answers come late: the peer's progress thread takes the messages in. */
#define LATE_NS 2000000u

bool packet_completes_late(struct packet_qp *pq, struct work_done done, unsigned requests,
			   uint64_t now_ns)
{
	const struct hca_sq *sq = &pq->qp->sq;

	if (done.upto == pq->completed) /* a part of a message */
		return false;
	pq->answered = requests != pq->heard ? pq->answered + 1 : 0;
	pq->heard = requests;
	/* Whoever has posted more does not wait for this one. */
	if (pq->answered < ANSWERED_LEAST << pq->vain || done.status != IBV_WC_SUCCESS ||
	    sq->head - sq->tail != 1 || !hca_self.depth)
		return false;
	pq->late = done;
	atomic_store(&pq->late_until_ns, now_ns + LATE_NS);
	/* The answer may be here already. One that comes after this check finds that it is awaited
	 * (packet_heard()). */
	if (atomic_load(&pq->requests) == requests)
		return true;
	atomic_store(&pq->late_until_ns, 0);
	return false;
}

bool packet_complete_late(struct packet_qp *pq)
{
	const uint64_t until_ns = packet_late_until_ns(pq);
	const struct hca_sq *sq = &pq->qp->sq;
	bool heard;

	if (likely(!until_ns))
		return true;
	heard = atomic_load_explicit(&pq->requests, memory_order_relaxed) != pq->heard;
	if (!heard && sq->head - sq->tail == 1 && packet_now_ns() < until_ns)
		return true;
	if (heard) {
		pq->vain = 0;
	} else {
		/* Once says little: the peer's threads may have had no processor. */
		if (pq->vain)
			pq->answered = 0;
		pq->vain = (uint8_t)MIN(pq->vain + 1u, VAIN_MOST);
	}
	atomic_store(&pq->late_until_ns, 0);
	return packet_finish(pq, pq->late);
}

void packet_heard(struct packet_qp *pq)
{
	atomic_fetch_add(&pq->requests, 1);
	if (likely(!atomic_load(&pq->late_until_ns)))
		return;
	/* Before the request is carried out: the program finds the completion of its message before
	 * the answer, and has the entry of the send queue for the next one. */
	hca_lock(&pq->qp->sq_lock);
	hca_sq_run(pq->qp);
	hca_unlock(&pq->qp->sq_lock);
}

void packet_failed(struct hca_qp *qp)
{
	struct packet_qp *pq = packet_part(qp)->state;

	if (!pq || !packet_late_until_ns(pq))
		return;
	atomic_store(&pq->late_until_ns, 0);
	packet_finish(pq, pq->late);
}
