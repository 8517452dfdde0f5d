/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Work requests that send nothing: binding a memory window, invalidating a key. Such a request
 * is carried out when all requests posted before it are complete; later requests do not start
 * before it is complete.
 */
#define LOG_ROOM "shm"
#include <errno.h>

#include "hca/memory/window.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/run/progress.h"
#include "transport/shm/link/backlog.h"
#include "transport/shm/link/state.h"
#include "transport/shm/move/send.h"
#include "util/container_of.h"
#include "util/log.h"

#define FIRST_LOOK_NS 20000

/* A peer still copies with the key: arms the retry timer. False when that has lasted for
 * SHM_FENCE_LIMIT_NS. As the entry is the oldest one, no other entry uses the QP's retry
 * times. */
static bool look_again(struct hca_qp *qp)
{
	uint64_t now = progress_now_ns();

	if (shm_lost_for_ns(qp, now) > SHM_FENCE_LIMIT_NS) {
		log_error("qp 0x%x: a peer copies for too long with a key that is taken back",
			  qp->ibv.qp_num);
		return false;
	}
	shm_retry_at(qp, now + ((uint64_t)FIRST_LOOK_NS << MIN(shm_qp(qp)->lost_tries++, 6u)));
	return true;
}

bool shm_local(struct hca_qp *qp)
{
	struct hca_swqe *e = hca_sq_entry(&qp->sq, qp->sq.next);
	struct shm_link *l = shm_qp(qp)->link;
	int ret;

	if (qp->sq.next != qp->sq.tail) {
		if (l)
			shm_backlog_wait(l, qp);
		return false;
	}
	ret = hca_local_run(qp, e, false);
	if (ret == -EAGAIN) {
		if (look_again(qp))
			return false;
		ret = hca_local_run(qp, e, true);
	}
	shm_complete_next(qp, ret ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS);
	return ret == 0;
}
