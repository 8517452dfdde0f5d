/* SPDX-License-Identifier: BSD-2-Clause */
/* Receives that no message takes, and the event of a shared queue that has few left. */
#include "hca/queue/receive.h"

#include "hca/event/async.h"
#include "hca/queue/push.h"
#include "hca/share/counters.h"

void hca_srq_check_limit(struct hca_srq *srq)
{
	uint32_t limit = atomic_load_explicit(&srq->event_below,
					      memory_order_relaxed);

	if (!limit || atomic_load_explicit(&srq->rq.head, memory_order_acquire) -
				      atomic_load_explicit(
					      &srq->rq.tail,
					      memory_order_relaxed) >=
			      limit)
		return;
	atomic_store(&srq->event_below, 0); /* the event is raised once */
	hca_async_srq_event(srq, IBV_EVENT_SRQ_LIMIT_REACHED);
}

static void flush_one(struct hca_qp *qp, const struct hca_rwqe *e)
{
	struct ibv_wc wc = {
		.wr_id = e->wr_id,
		.status = IBV_WC_WR_FLUSH_ERR,
		.opcode = IBV_WC_RECV,
		.qp_num = qp->ibv.qp_num,
	};

	HCA_COUNT_RARE(qp, RX_FLUSHED, 1);
	hca_recv_done(qp);
	hca_cq_push(qp->recv_cq, &wc, false);
}

/* Of an SRQ only the entry that was taken for a message of this QP is flushed; other QPs use the
 * others. */
void hca_rq_flush(struct hca_qp *qp)
{
	struct hca_rwqe *e;

	hca_lock(&qp->recv->consume_lock);
	while ((!qp->srq || qp->claimed) && (e = hca_recv_first(qp)))
		flush_one(qp, e);
	hca_unlock(&qp->recv->consume_lock);
}
