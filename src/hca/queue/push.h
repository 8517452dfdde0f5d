/* SPDX-License-Identifier: BSD-2-Clause */
/* Adding completions to completion queues, taking them out, events and overruns. */
#ifndef HCA_PUSH_H
#define HCA_PUSH_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/cq.h"
#include "hca/run/elide.h"
#include "util/container_of.h"
#include "util/probe.h"

int hca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
int hca_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* Removes the completions of a QP that is being reset or destroyed. Takes cq->lock. */
void hca_cq_purge(struct hca_cq *cq, uint32_t qpn);

/* Removes the oldest completion; false: the queue is empty. `*stamp` is set if the queue has
 * time stamps. */
bool hca_cq_take(struct hca_cq *cq, struct ibv_wc *wc, uint64_t *stamp);

/* Called by each poll inside of hca_enter(): moves messages if the queue is empty, or if enough
 * polls have passed without it. */
void hca_cq_move(struct hca_cq *cq);
/* As hca_cq_move(), for the second look of a poll: it is not counted as another poll. */
void hca_cq_move_again(struct hca_cq *cq);
/* Called by each poll after hca_leave(). `found`: it returned a completion. Continues work of
 * transports, runs timers, and may yield the processor. True: nothing was found, and that took
 * so long that the poll has to look once more before it says so. */
bool hca_cq_moved(struct hca_cq *cq, bool found);

void hca_cq_ex_ops_init(struct verbs_context *v);
void hca_cq_event_init(struct hca_cq *cq);
void hca_cq_event_fini(struct hca_cq *cq);
/* `arm`: one of the bits of HCA_CQ_ARMED, or 0. cq->lock is held. */
void hca_cq_set_armed(struct hca_cq *cq, unsigned arm);

/* To be called after an entry was written at `head` of a queue whose `special` is not 0.
 * cq->lock is held. Returns what to do after the lock is released. */
enum hca_cq_action hca_cq_pushed(struct hca_cq *cq, uint32_t head,
				 const struct ibv_wc *wc, bool solicited);

/* Executes the result of hca_cq_pushed(). cq->lock is not held. */
void hca_cq_act(struct hca_cq *cq, enum hca_cq_action action);

/* An entry was lost. The first time: raises IBV_EVENT_CQ_ERR, and has the progress thread move
 * the QPs of this queue to ERR. cq->lock is not held. */
void hca_cq_overrun(struct hca_cq *cq);

/* The queue is full or has overrun. True: the entry may be written over the oldest one.
 * False: the entry is lost, the overrun was reported, and cq->lock was released. The caller
 * holds cq->lock. */
bool hca_cq_full(struct hca_cq *cq);

/* Adds a completion. Takes cq->lock. Always inlined, so that the compiler builds `*wc`
 * directly in the queue. */
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
	/* After an overrun nothing is added: the program would not see the gap. */
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
