/* SPDX-License-Identifier: BSD-2-Clause */
/* The states of queue pairs, and what the error state does to their queues. */
#ifndef HCA_FLUSH_H
#define HCA_FLUSH_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

#include "hca/object/qp.h"

/* The CQ has overrun: moves its QPs to ERR and raises IBV_EVENT_QP_FATAL for each. Takes
 * process.lock; no lock is held. */
void hca_qps_fail_on(struct hca_cq *cq);

/* Moves all QPs of device softN (`device`: N, or HCA_INSPECT_DEVICES for all) to ERR.
 * process.lock is held. */
void hca_qps_fail_of(uint32_t device);

/* Before the completion of a receive that failed: a program that reads it finds ERR, though
 * hca_qp_fail() comes behind it, without the lock of the receive queue. */
static inline void hca_qp_failing(struct hca_qp *qp)
{
	atomic_store_explicit(&qp->failing, true, memory_order_release);
}
/* For the program. */
enum ibv_qp_state hca_qp_state_shown(const struct hca_qp *qp);

/* Moves the QP to ERR and flushes both queues. sq_lock is not held. */
void hca_qp_fail(struct hca_qp *qp);

/* The same with sq_lock held. */
void hca_qp_fail_locked(struct hca_qp *qp);
/* Sets the state, also the public one. sq_lock is held. */
void hca_qp_set_state(struct hca_qp *qp, enum ibv_qp_state state);

/* For hca_promise_init(): a QP has moved to ERR. Processes promised messages that are in the
 * rings, then flushes the other receives. On the progress thread, which holds no lock that this
 * needs. */
void hca_flush_promised(struct progress_timer *t);

#endif
