/* SPDX-License-Identifier: BSD-2-Clause */
/* Queue pairs that wait for room in a link's ring or for acknowledgements; see backlog.h. */
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "transport/shm/link/backlog.h"
#include "transport/shm/link/state.h"

bool shm_backlog_add(struct shm_link *l, struct hca_qp *qp)
{
	if (shm_qp(qp)->backlog_of)
		return shm_qp(qp)->backlog_of == l;
	shm_qp(qp)->backlog_of = l;
	list_push(&l->backlog_qps, &shm_qp(qp)->backlog_entry);
	/* Counted first, then `wants_kick` is read; a thread that goes to sleep does the
	 * reverse (hca/share/attention.c). */
	if (atomic_fetch_add(&l->backlog, 1) == 0 &&
	    atomic_load(&hca_process.segment->wants_kick) == HCA_WAKE_ALL)
		progress_kick(); /* nobody polls: the thread has to tick */
	return true;
}

void shm_backlog_wait(struct shm_link *l, struct hca_qp *qp)
{
	hca_lock(&l->tx_lock);
	shm_backlog_add(l, qp);
	hca_unlock(&l->tx_lock);
}

void shm_backlog_drain(struct hca_qp *qp, struct shm_link *l)
{
	if (l && qp->sq.tail != qp->sq.drain_to && qp->tx_blocked == HCA_TX_OPEN)
		shm_backlog_wait(l, qp);
}

void shm_backlog_run(struct list *waiting)
{
	while (!list_empty(waiting)) {
		struct hca_qp *qp = shm_qp_whole(list_entry(
			waiting->next, struct shm_qp, backlog_entry));

		hca_lock(&qp->sq_lock);
		list_remove(&shm_qp(qp)->backlog_entry);
		shm_qp(qp)->backlog_of = NULL;
		hca_sq_run(qp);
		hca_unlock(&qp->sq_lock);
	}
}

static void take_backlog(struct shm_link *l, struct list *again)
{
	list_init(again);
	hca_lock(&l->tx_lock);
	list_splice(again, &l->backlog_qps);
	atomic_store(&l->backlog, 0);
	hca_unlock(&l->tx_lock);
}

void shm_backlog_resume(struct shm_link *l)
{
	struct list again;

	take_backlog(l, &again);
	shm_backlog_run(&again);
}

void shm_backlog_open(struct shm_link *l)
{
	struct list waiting;

	take_backlog(l, &waiting);
	list_for_each(part, &waiting, struct shm_qp, backlog_entry) {
		struct hca_qp *qp = shm_qp_whole(part);

		hca_lock(&qp->sq_lock);
		if (qp->tx_blocked == HCA_TX_RETRY_WAIT) {
			qp->tx_blocked = HCA_TX_OPEN;
			progress_timer_disarm(&qp->retry);
		}
		hca_unlock(&qp->sq_lock);
	}
	shm_backlog_run(&waiting);
}
