/* SPDX-License-Identifier: BSD-2-Clause */
/* Receive queues of QPs and SRQs. */
#ifndef HCA_RQ_H
#define HCA_RQ_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdint.h>

#include "util/spin.h"

/* One posted receive; `sge` has the queue's max_sge entries. */
struct hca_rwqe {
	uint64_t wr_id;
	uint32_t num_sge;
	struct ibv_sge sge[];
};

struct hca_rq {
	struct spin post_lock;
	struct spin consume_lock;
	_Atomic uint32_t head, tail; /* counts of posted and consumed entries, modulo 2^32 */
	uint32_t limit;      /* entries that may be posted: the number requested */
	uint32_t mask;
	uint32_t max_sge;
	uint32_t stride;
	uint8_t *wqes;
	uint32_t qpn;        /* for the trace probe; 0 in a shared receive queue */
};

static inline struct hca_rwqe *hca_rq_entry(struct hca_rq *rq, uint32_t index)
{
	return (struct hca_rwqe *)(rq->wqes +
				   (size_t)(index & rq->mask) * rq->stride);
}

/* The oldest posted entry, or NULL. consume_lock is held. */
static inline struct hca_rwqe *hca_rq_first(struct hca_rq *rq)
{
	uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);

	if (tail == atomic_load_explicit(&rq->head, memory_order_acquire))
		return NULL;
	return hca_rq_entry(rq, tail);
}

/* Removes the entry that hca_rq_first() returned; its place may be posted to again.
 * consume_lock is held. */
static inline void hca_rq_consume(struct hca_rq *rq)
{
	atomic_store_explicit(&rq->tail,
			      atomic_load_explicit(&rq->tail,
						   memory_order_relaxed) + 1,
			      memory_order_release);
}

#endif
