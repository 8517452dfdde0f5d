/* SPDX-License-Identifier: BSD-2-Clause */
/* The receive that the next message of a queue pair takes. */
#ifndef HCA_RECEIVE_H
#define HCA_RECEIVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "hca/memory/promising.h"
#include "hca/object/qp.h"
#include "hca/object/rq.h"
#include "hca/object/srq.h"
#include "hca/queue/post.h"
#include "util/container_of.h"

/* To be called after receives were posted, inside of hca_enter(). No lock is held. */
static inline void hca_promise_posted(struct hca_qp *qp)
{
	if (unlikely(atomic_load_explicit(&qp->rq.head, memory_order_relaxed) -
			     qp->promising.upto >= qp->promising.step))
		hca_promise_extend(qp);
}

/* The entry for the next message of a QP, or NULL: none is posted. recv->consume_lock is
 * held for this function and the two below. */
static inline struct hca_rwqe *hca_recv_first(struct hca_qp *qp)
{
	return unlikely(qp->claimed) ? qp->claim : hca_rq_first(qp->recv);
}

/* Removes the entry that hca_recv_first() returned. */
static inline void hca_recv_done(struct hca_qp *qp)
{
	if (unlikely(qp->claimed)) {
		qp->claimed = false;
		return;
	}
	hca_rq_consume(qp->recv);
	if (unlikely(qp->srq))
		hca_srq_check_limit(qp->srq);
}

/* Reserves the first entry of an SRQ for this QP until its message is complete, because other
 * QPs take entries from the same queue. */
static inline void hca_recv_keep(struct hca_qp *qp)
{
	if (!qp->srq || qp->claimed)
		return;
	memcpy(qp->claim, hca_rq_first(qp->recv), qp->recv->stride);
	hca_recv_done(qp);
	qp->claimed = true;
}

#endif
