/* SPDX-License-Identifier: BSD-2-Clause */
/* Completion queues. */
#ifndef HCA_CQ_H
#define HCA_CQ_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hca/context.h"
#include "hca/elide.h"
#include "hca/pd.h"
#include "hca/progress.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/probe.h"
#include "util/spin.h"

struct hca_cq {
	struct ibv_cq_ex ex;
	struct hca_context *ctx;
	cache_aligned struct spin lock;
	atomic_uint head; /* next to write */
	atomic_uint tail; /* next to read */
	uint32_t mask;
	uint32_t limit; /* cqe granted */
	uint8_t special; /* enum hca_cq_special, 0: plain pushes */
	_Atomic bool overrun; /* for good */
	bool single_threaded; /* the application says so */
	struct ibv_wc *ring;
	/* While the owner of the data path (elide.h) polls the empty queue: where
	 * it wants the next completion, which then saves the way by the ring. */
	struct ibv_wc *direct;
	/* Work of a transport that a poll in vain carries on, outside of hca_enter();
	 * NULL: there is none. */
	void (*_Atomic carry_on)(struct hca_cq *cq);
	unsigned carried; /* how many queue pairs have such work; the transport's */
	/* Under channel->lock. */
	unsigned events_queued;
	struct list event_entry;
	uint32_t events_taken; /* by get_event; to be acknowledged */
	uint32_t async_taken;  /* likewise; under the context's async_lock */
	atomic_int users;      /* QPs */
	_Atomic bool sends;    /* a send queue completes here */

	bool ignore_overrun;
	struct hca_memory memory;
	struct hca_pd *parent_domain;
	/* When an entry of the ring was pushed, in clock ticks; NULL: unwanted. */
	uint64_t *stamps;

	/* From ibv_start_poll to ibv_end_poll; cq_ex.c. */
	struct spin poll_lock;
	struct ibv_wc current;
	uint64_t current_stamp;

	/* Moderation, cq_event.c; under the lock. */
	uint16_t event_count, event_period_us;
	uint32_t events_held;  /* completions since the arming */
	struct progress_timer event_timer;
	struct progress_timer overrun_timer;
};

/* What a push has to see to besides the ring. */
enum hca_cq_special {
	HCA_CQ_ARMED_SOLICITED = 1 << 0,
	HCA_CQ_ARMED_NEXT = 1 << 1,
	HCA_CQ_ARMED = HCA_CQ_ARMED_SOLICITED | HCA_CQ_ARMED_NEXT,
	HCA_CQ_STAMPED = 1 << 2,
};

/* What it then has to do behind the lock. */
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

/* Whole words: a reader that loads more than was stored at once waits until
 * the stores have left the processor's buffer. */
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

int hca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int hca_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* Drops the completions of a QP that is reset or destroyed. */
void hca_cq_purge(struct hca_cq *cq, uint32_t qpn);

/* The oldest completion, and when it was pushed if that was asked for. */
bool hca_cq_take(struct hca_cq *cq, struct ibv_wc *wc, uint64_t *stamp);

/* Moves messages for a poller, when the queue is empty or it is time to; and
 * afterwards, outside of hca_enter(). */
void hca_cq_move(struct hca_cq *cq);
void hca_cq_moved(struct hca_cq *cq, bool found);

static inline bool hca_cq_empty(struct hca_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire) ==
	       atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

void hca_cq_ex_ops_init(struct verbs_context *v);
void hca_cq_event_init(struct hca_cq *cq);
void hca_cq_event_fini(struct hca_cq *cq);

/* A special queue got the entry at `head`. cq->lock is held. */
enum hca_cq_action hca_cq_pushed(struct hca_cq *cq, uint32_t head,
				 const struct ibv_wc *wc, bool solicited);

/* The same action, behind the lock. */
void hca_cq_act(struct hca_cq *cq, enum hca_cq_action action);

/* An entry was lost: the first time the application and its QPs are told. */
void hca_cq_overrun(struct hca_cq *cq);

/* No room. True: the entry may be written all the same. cq->lock is held, and
 * released if not. */
bool hca_cq_full(struct hca_cq *cq);

/* Inline so that `wc` never exists in memory but in the queue. */
static inline __attribute__((always_inline)) void
hca_cq_push(struct hca_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	enum hca_cq_action action;
	uint32_t head;

	PROBE(complete, wc->qp_num, wc->wr_id, wc->status, wc->opcode,
	      wc->byte_len);
	if (cq->direct) {
		hca_wc_copy(cq->direct, wc);
		cq->direct = NULL;
		return;
	}
	hca_lock(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	/* After an overrun the queue stays in error: nothing comes behind a gap. */
	if (unlikely(atomic_load_explicit(&cq->overrun, memory_order_relaxed) ||
		     head - atomic_load_explicit(&cq->tail,
						 memory_order_relaxed) >=
			     cq->limit) &&
	    !hca_cq_full(cq))
		return;
	hca_wc_copy(&cq->ring[head & cq->mask], wc);
	atomic_store_explicit(&cq->head, head + 1, memory_order_release);
	if (unlikely(cq->special)) {
		action = hca_cq_pushed(cq, head, &cq->ring[head & cq->mask],
				       solicited);
		hca_unlock(&cq->lock);
		if (action)
			hca_cq_act(cq, action);
		return;
	}
	hca_unlock(&cq->lock);
}

#endif
