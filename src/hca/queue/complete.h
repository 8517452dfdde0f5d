/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion of send queue entries. */
#ifndef HCA_COMPLETE_H
#define HCA_COMPLETE_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/queue/push.h"
#include "hca/share/counters.h"
#include "util/container_of.h"

/* Removes the oldest entry; adds a completion if it is signaled or failed. sq_lock is held. */
static inline void hca_sq_report(struct hca_qp *qp, enum ibv_wc_status status)
{
	struct hca_sq *sq = &qp->sq;
	const struct hca_swqe *e = hca_sq_entry(sq, sq->tail++);
	struct ibv_wc wc = {
		.wr_id = e->wr_id,
		.status = status,
		.opcode = hca_opcodes[e->opcode].completion,
		.byte_len = e->length,
		.qp_num = qp->ibv.qp_num,
	};

	if (likely(status == IBV_WC_SUCCESS))
		HCA_COUNT_SENT(qp, e->opcode, e->length);
	else
		hca_count_failed(qp, status);
	if (likely(e->flags & HCA_SWQE_SIGNALED) || status != IBV_WC_SUCCESS)
		hca_cq_push(qp->send_cq, &wc, false);
}

/* hca_sq_complete() with IBV_WC_SUCCESS, for an entry that was transmitted and is not
 * HCA_SWQE_HELD. sq_lock is held. */
static inline void hca_sq_complete_ok(struct hca_qp *qp)
{
	hca_sq_report(qp, IBV_WC_SUCCESS);
	if (unlikely(qp->sq.draining))
		hca_sq_drained(qp);
}

#endif
