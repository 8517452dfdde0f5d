/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues. */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/object/context.h"
#include "hca/object/pd.h"
#include "hca/run/progress.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/spin.h"

struct hca_cq {
	struct ibv_cq_ex ex;
	struct hca_context *ctx;
	cache_aligned struct spin lock;
	atomic_uint head; /* next to write */
	atomic_uint tail; /* next to read */
	uint32_t mask;
	uint32_t limit; /* number of entries granted */
	uint8_t special; /* enum hca_cq_special; 0: a push only writes the ring */
	_Atomic bool overrun; /* an entry was lost; never cleared */
	bool single_threaded; /* the application polls it from one thread at a time */
	struct ibv_wc *ring;
	/* While the owner of the data path (elide.h) polls the empty queue: the caller's
	 * buffer, into which the next completion is written instead of the ring. */
	struct ibv_wc *direct;
	/* Continues unfinished work of a transport (copies by parts). Called by a poll that
	 * found no completion, after hca_leave(). NULL: there is no such work. */
	void (*_Atomic carry_on)(struct hca_cq *cq);
	unsigned carried; /* number of QPs with such work; written by the transport only */
	/* Events that are queued in the channel or were read; under channel->lock. */
	unsigned events_queued;
	struct list event_entry;
	uint32_t events_taken; /* read by ibv_get_cq_event(), to be acknowledged */
	uint32_t async_taken;  /* by ibv_get_async_event(); under hca_context.async_lock */
	atomic_int users;      /* QPs and XRC SRQs */
	_Atomic bool sends;    /* is or was the send CQ of a QP */

	bool ignore_overrun;
	struct hca_memory memory;
	struct hca_pd *parent_domain;
	/* Clock ticks at which each entry of the ring was pushed; NULL: not requested. */
	uint64_t *stamps;

	/* Extended polling, ibv_start_poll() to ibv_end_poll(); cq_ex.c. */
	struct spin poll_lock;
	struct ibv_wc current;
	uint64_t current_stamp;

	/* Moderation of events, cq_event.c; under `lock`. */
	uint16_t event_count, event_period_us;
	uint32_t events_held;  /* completions since arming whose event is delayed */
	struct progress_timer event_timer;
	struct progress_timer overrun_timer;
};

/* What a push must do in addition to writing the ring. Changes under cq->lock. */
enum hca_cq_special {
	HCA_CQ_ARMED_SOLICITED = 1 << 0,
	HCA_CQ_ARMED_NEXT = 1 << 1,
	HCA_CQ_ARMED = HCA_CQ_ARMED_SOLICITED | HCA_CQ_ARMED_NEXT,
	HCA_CQ_STAMPED = 1 << 2,
};

/* What a push must do after it has released cq->lock. */
enum hca_cq_action {
	HCA_CQ_NOTHING,
	HCA_CQ_NOTIFY,
	HCA_CQ_NOTIFY_LATER,
};

/* struct ibv_cq_ex starts with the fields of struct ibv_cq. */
static inline struct hca_cq *hca_cq(struct ibv_cq *cq)
{
	return (struct hca_cq *)((char *)cq - offsetof(struct hca_cq, ex));
}

static inline struct ibv_cq *hca_cq_public(struct hca_cq *cq)
{
	return ibv_cq_ex_to_cq(&cq->ex);
}

/* Copies in 64-bit words: a load that spans several narrower stores cannot be forwarded from
 * the processor's store buffer, and would delay the reader. */
static inline void hca_wc_copy(struct ibv_wc *to, const struct ibv_wc *wc)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	uint64_t *w = (uint64_t *)(void *)to;

	_Static_assert(sizeof(*wc) == 6 * sizeof(*w), "see below");
	w[0] = wc->wr_id;
	w[1] = (uint32_t)wc->status | (uint64_t)wc->opcode << 32;
	w[2] = wc->vendor_err | (uint64_t)wc->byte_len << 32;
	w[3] = wc->imm_data | (uint64_t)wc->qp_num << 32;
	w[4] = wc->src_qp | (uint64_t)wc->wc_flags << 32;
	w[5] = wc->pkey_index | (uint64_t)wc->slid << 16 |
	       (uint64_t)wc->sl << 32 | (uint64_t)wc->dlid_path_bits << 40;
#else
	*to = *wc;
#endif
}

static inline bool hca_cq_empty(struct hca_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire) ==
	       atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

#endif
