/* SPDX-License-Identifier: BSD-2-Clause */
/* How entries of queues end: they complete, or an error flushes them and changes the state. */
#include <pthread.h>
#include <stdatomic.h>

#include "hca/event/async.h"
#include "hca/memory/promising.h"
#include "hca/queue/complete.h"
#include "hca/queue/flush.h"
#include "hca/queue/hold.h"
#include "hca/run/progress.h"
#include "hca/share/inspect_message.h"
#include "hca/share/process.h"

void hca_qp_set_state(struct hca_qp *qp, enum ibv_qp_state state)
{
	PROBE(qp_state, qp->ibv.qp_num,
	      atomic_load_explicit(&qp->state, memory_order_relaxed), state);
	atomic_store_explicit(&qp->state, state, memory_order_release);
	atomic_store_explicit(&qp->pub->state, state, memory_order_release);
	atomic_store_explicit(&qp->failing, false, memory_order_release);
}

enum ibv_qp_state hca_qp_state_shown(const struct hca_qp *qp)
{
	/* In this order: a change of the state clears `failing` last. */
	bool failing = atomic_load_explicit(&qp->failing, memory_order_acquire);
	enum ibv_qp_state state = hca_qp_state(qp);

	return failing && state != IBV_QPS_RESET ? IBV_QPS_ERR : state;
}

static void complete_oldest(struct hca_qp *qp, enum ibv_wc_status status)
{
	struct hca_sq *sq = &qp->sq;

	hca_sq_report(qp, status);
	if (unlikely((int32_t)(sq->next - sq->tail) < 0))
		sq->next = sq->tail;
}

void hca_sq_flush(struct hca_qp *qp)
{
	if (unlikely(qp->tx_blocked == HCA_TX_COPYING))
		return;
	if (unlikely(qp->tx_blocked == HCA_TX_COPY_WAITS))
		qp->tx_blocked = HCA_TX_OPEN;
	qp->tx_epoch++; /* acknowledgements of these entries are ignored */
	while (qp->sq.tail != qp->sq.head)
		complete_oldest(qp, IBV_WC_WR_FLUSH_ERR);
	hca_hold_clear(qp);
}

void hca_qp_fail_locked(struct hca_qp *qp)
{
	const struct hca_transport_ops *ops = hca_path_ops(&qp->path);
	bool first = hca_qp_state(qp) != IBV_QPS_ERR;

	/* Set before the state, so that no promised message is refused in between. */
	if (first)
		atomic_store(&qp->promising.closing, true);
	hca_qp_set_state(qp, IBV_QPS_ERR);
	if (hca_promise_close(qp))
		progress_timer_arm(&qp->promising.close, progress_now_ns());
	else if (first)
		atomic_store(&qp->promising.closing, false);
	/* What stands for an XRC target at an SRQ has no path. */
	if (first && ops && ops->failed)
		ops->failed(qp);
	hca_sq_flush(qp);
	if (!qp->promising.closing)
		hca_rq_flush(qp);
	/* No more entries of the SRQ are taken for this QP (11.6.3.1). */
	if (first && qp->srq)
		hca_async_qp_event(qp, IBV_EVENT_QP_LAST_WQE_REACHED);
}

void hca_sq_drained(struct hca_qp *qp)
{
	struct hca_sq *sq = &qp->sq;

	if (!sq->draining || hca_qp_state(qp) != IBV_QPS_SQD ||
	    sq->tail != sq->drain_to)
		return;
	sq->draining = false;
	hca_async_qp_event(qp, IBV_EVENT_SQ_DRAINED);
}

void hca_sq_complete(struct hca_qp *qp, enum ibv_wc_status status)
{
	const struct hca_swqe *e = hca_sq_entry(&qp->sq, qp->sq.tail);

	if (unlikely(e->flags & HCA_SWQE_HELD))
		hca_hold_release(qp, e);
	complete_oldest(qp, status);
	if (unlikely(qp->sq.draining))
		hca_sq_drained(qp);
	if (likely(status == IBV_WC_SUCCESS))
		return;
	if (qp->ibv.qp_type == IBV_QPT_UC || qp->ibv.qp_type == IBV_QPT_UD) {
		hca_qp_set_state(qp, IBV_QPS_SQE);
		hca_sq_flush(qp);
	} else {
		hca_qp_fail_locked(qp);
	}
}

void hca_qp_fail(struct hca_qp *qp)
{
	hca_lock(&qp->sq_lock);
	hca_qp_fail_locked(qp);
	hca_unlock(&qp->sq_lock);
}

void hca_flush_promised(struct progress_timer *t)
{
	struct hca_qp *qp = container_of(t, struct hca_qp, promising.close);

	hca_take_in();
	atomic_store(&qp->promising.closing, false);
	atomic_thread_fence(memory_order_seq_cst);
	hca_rq_flush(qp);
}

static void fail_if_on(struct hca_qp *qp, void *arg)
{
	const struct hca_cq *cq = arg;
	enum ibv_qp_state state = hca_qp_state(qp);

	if ((qp->send_cq != cq && qp->recv_cq != cq) ||
	    state == IBV_QPS_RESET || state == IBV_QPS_ERR)
		return;
	/* The state first: it is visible to the program that reads the event. */
	hca_qp_fail(qp);
	hca_async_qp_event(qp, IBV_EVENT_QP_FATAL);
}

void hca_qps_fail_on(struct hca_cq *cq)
{
	pthread_mutex_lock(&hca_process.lock);
	hca_qps_each(fail_if_on, cq);
	pthread_mutex_unlock(&hca_process.lock);
}

static void fail_if_of(struct hca_qp *qp, void *arg)
{
	const uint32_t *device = arg;

	/* qpn is 0 while the QP is being created; hca_qp_create() then checks the device. */
	if (atomic_load(&qp->pub->qpn) &&
	    (*device == HCA_INSPECT_DEVICES ||
	     atomic_load(&qp->pub->device) == *device) &&
	    hca_qp_state(qp) != IBV_QPS_ERR)
		hca_qp_fail(qp);
}

void hca_qps_fail_of(uint32_t device)
{
	hca_qps_each(fail_if_of, &device);
}
