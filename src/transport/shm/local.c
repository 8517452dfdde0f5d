/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests that send nothing: binding a memory window, invalidating a key.
 * They are carried out in their turn, when all that was posted before them is
 * complete, and nothing that is posted behind them starts before they are done.
 */
#include <errno.h>

#include "transport/shm/shm.h"

/* Until a peer has copied what it is copying with the key. */
#define LOOK_AGAIN_NS 20000

bool shm_local(struct hca_qp *qp)
{
	struct shm_link *l = qp->link;
	int ret;

	if (qp->sq.next != qp->sq.tail) {
		if (l)
			shm_backlog_wait(l, qp);
		return false;
	}
	ret = hca_local_run(qp, hca_sq_entry(&qp->sq, qp->sq.next));
	if (ret == -EAGAIN) {
		qp->tx_blocked = HCA_TX_RETRY_WAIT;
		progress_timer_arm(&qp->retry, progress_now_ns() + LOOK_AGAIN_NS);
		return false;
	}
	qp->sq.next++;
	hca_sq_complete(qp, ret ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS);
	return ret == 0;
}
