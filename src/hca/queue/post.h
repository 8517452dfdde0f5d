/* SPDX-License-Identifier: BSD-2-Clause */
/* Send and receive queues: posting, transmitting, completing, flushing. */
#ifndef HCA_POST_H
#define HCA_POST_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/pd.h"
#include "hca/object/qp.h"
#include "hca/object/rq.h"
#include "hca/object/sq.h"
#include "hca/object/srq.h"
#include "hca/run/elide.h"
#include "util/container_of.h"

/* ---- send queues ---- */
int hca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad);

/* For work that is not posted by ibv_post_send(): the next free entry, with wr_id, opcode and
 * flags set. The caller fills in the rest and increments `head`. 0, -EOPNOTSUPP, -EINVAL (flags,
 * state of the QP) or -ENOMEM (the queue is full). sq_lock is held. */
int hca_sq_open(struct hca_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id,
		unsigned send_flags, struct hca_swqe **out);
void hca_sq_builders_init(struct hca_qp *qp);

/* At the end of a posting call, after hca_leave(). If a datagram waits for its peer
 * (hca_qp.calls), lets the transport look for the peer now instead of on the progress
 * thread, which would have to be woken first. No lock is held. */
void hca_sq_call(struct hca_qp *qp);

/* Transmits waiting entries (RTS, SQD) or flushes the queue (ERR, SQE). sq_lock is held. */
void hca_sq_run(struct hca_qp *qp);

/* Raises IBV_EVENT_SQ_DRAINED if it was requested and the queue has drained. sq_lock is held. */
void hca_sq_drained(struct hca_qp *qp);

/* Number of signaled datagrams that are posted and will complete to `cq`. They complete
 * without any action of a peer, so programs count them as completed. Takes process.lock and
 * the sq_lock of each QP; none is held. */
uint32_t hca_sq_datagrams_to(const struct hca_cq *cq);

/*
 * Completes the oldest transmitted entry with `status`; entries complete in
 * posting order. On an error status the QP moves to ERR, or to SQE if it is UC or UD,
 * and the other entries are flushed. sq_lock is held.
 */
void hca_sq_complete(struct hca_qp *qp, enum ibv_wc_status status);

/* Completes all of [tail, head) with IBV_WC_WR_FLUSH_ERR. Does nothing while a part of a copy
 * is under way (HCA_TX_COPYING): the copying thread calls hca_sq_run() afterwards. sq_lock is
 * held. */
void hca_sq_flush(struct hca_qp *qp);

/* The end of a posting call, which called hca_enter() and holds sq_lock; releases both. */
static inline void hca_sq_leave(struct hca_qp *qp)
{
	void (*posted)(struct hca_qp *qp) = qp->path.posted;
	uint8_t tx_blocked = qp->tx_blocked;

	hca_unlock(&qp->sq_lock);
	posted(qp);
	hca_leave();
	if (unlikely(tx_blocked != HCA_TX_OPEN))
		hca_sq_call(qp);
}

/* ---- receive queues ---- */
int hca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		  struct ibv_recv_wr **bad);

/* Posts a list of requests. 0 or a positive errno, as ibv_post_recv() returns it. */
int hca_rq_post(struct hca_rq *rq, struct ibv_recv_wr *wr,
		struct ibv_recv_wr **bad);

/* Allocates the entries. 0 or -ENOMEM. The caller frees `memory`. */
int hca_rq_init(struct hca_rq *rq, uint32_t depth, uint32_t max_sge,
		struct hca_pd *pd, enum hca_resource kind,
		struct hca_memory *memory);
void hca_rq_reset(struct hca_rq *rq);
void hca_rq_flush(struct hca_qp *qp);

/* 0; -EINVAL: more than `depth` entries are posted; or -ENOMEM. */
int hca_rq_resize(struct hca_rq *rq, uint32_t depth, struct hca_pd *pd,
		  enum hca_resource kind, struct hca_memory *memory);

/* ---- shared receive queues ---- */
int hca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		      struct ibv_recv_wr **bad);

/* Raises IBV_EVENT_SRQ_LIMIT_REACHED, once, when fewer entries than the limit are left.
 * consume_lock is held. */
void hca_srq_check_limit(struct hca_srq *srq);

#endif
