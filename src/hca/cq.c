/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: a ring of work completions, arming and overrun.
 *
 * Arming is one-shot and looks at new completions only, never at what the
 * queue already holds.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "hca/channel.h"
#include "hca/hca.h"
#include "hca/objects.h"
#include "hca/process.h"
#include "util/log.h"
#include "util/probe.h"

/* Polls that may find completions waiting before messages are moved again:
 * a queue that is always full must not starve the others. */
#define POLLS_BETWEEN_MOVES 16
#define CQE_MIN 4
/* What is left is the progress thread's. */
#define MOVES_WHEN_ARMED 64

/*
 * Some more entries than asked for are granted, as adapters do: programs rely
 * on it (perftest asks for one entry and gets a send and a receive at once).
 */
static struct ibv_wc *ring_alloc(uint32_t cqe, uint32_t *mask)
{
	uint32_t size = CQE_MIN;

	while (size <= cqe)
		size <<= 1;
	*mask = size - 1;
	return calloc(size, sizeof(struct ibv_wc));
}

int hca_cq_create(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr,
		  struct ibv_cq **out)
{
	struct hca_cq *cq;

	if (attr->cqe < 1 || attr->cqe > HCA_MAX_CQE ||
	    (attr->channel && attr->comp_vector >= 1) ||
	    (attr->channel && attr->channel->context != ibctx))
		return -EINVAL;
	cq = aligned_alloc(CACHE_LINE,
			   (sizeof(*cq) + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
	if (!cq)
		return -ENOMEM;
	memset(cq, 0, sizeof(*cq));
	cq->ring = ring_alloc(attr->cqe, &cq->mask);
	if (!cq->ring) {
		free(cq);
		return -ENOMEM;
	}
	cq->ctx = hca_context(ibctx);
	cq->limit = cq->mask;
	list_init(&cq->event_entry);
	cq->ex.context = ibctx;
	cq->ex.channel = attr->channel;
	cq->ex.cq_context = attr->cq_context;
	cq->ex.cqe = (int)cq->limit;
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	if (attr->channel)
		hca_channel_ref(attr->channel);
	hca_context_get(cq->ctx);
	*out = hca_cq_public(cq);
	return 0;
}

int hca_cq_resize(struct ibv_cq *ibcq, int cqe)
{
	struct hca_cq *cq = hca_cq(ibcq);
	struct ibv_wc *ring, *old;
	uint32_t mask, count;

	if (cqe < 1 || cqe > HCA_MAX_CQE)
		return -EINVAL;
	ring = ring_alloc((uint32_t)cqe, &mask);
	if (!ring)
		return -ENOMEM;
	spin_lock(&cq->lock);
	count = cq->head - cq->tail;
	if (count > mask) {
		spin_unlock(&cq->lock);
		free(ring);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < count; i++)
		ring[(cq->tail + i) & mask] = cq->ring[(cq->tail + i) & cq->mask];
	old = cq->ring;
	cq->ring = ring;
	cq->mask = mask;
	cq->limit = mask;
	cq->ex.cqe = (int)mask;
	spin_unlock(&cq->lock);
	free(old);
	return 0;
}

int hca_cq_destroy(struct ibv_cq *ibcq)
{
	struct hca_cq *cq = hca_cq(ibcq);

	if (atomic_load(&cq->users) > 0)
		return -EBUSY;
	hca_async_cq_forget(cq);
	if (cq->armed != HCA_CQ_UNARMED)
		atomic_fetch_sub(&hca_process.armed, 1);
	if (ibcq->channel) {
		uint32_t taken = hca_channel_forget(cq);

		/* As the manual page says: wait for all acknowledgements. */
		pthread_mutex_lock(&ibcq->mutex);
		while (ibcq->comp_events_completed != taken)
			pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
		pthread_mutex_unlock(&ibcq->mutex);
	}
	hca_context_put(cq->ctx);
	pthread_mutex_destroy(&ibcq->mutex);
	pthread_cond_destroy(&ibcq->cond);
	free(cq->ring);
	free(cq);
	return 0;
}

void hca_cq_ack_events(struct ibv_cq *ibcq, unsigned count)
{
	pthread_mutex_lock(&ibcq->mutex);
	ibcq->comp_events_completed += count;
	pthread_cond_signal(&ibcq->cond);
	pthread_mutex_unlock(&ibcq->mutex);
}

/* cq->lock is held. */
static void cq_set_armed(struct hca_cq *cq, enum hca_cq_arm arm)
{
	if ((cq->armed != HCA_CQ_UNARMED) != (arm != HCA_CQ_UNARMED))
		atomic_fetch_add(&hca_process.armed,
				 arm == HCA_CQ_UNARMED ? -1 : 1);
	cq->armed = (uint8_t)arm;
}

void hca_cq_push(struct hca_cq *cq, const struct ibv_wc *wc, bool solicited)
{
	bool notify = false;
	uint32_t head;

	PROBE(complete, wc->qp_num, wc->wr_id, wc->status, wc->opcode,
	      wc->byte_len);
	spin_lock(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	/* After an overrun the queue stays in error: nothing comes behind a gap. */
	if (unlikely(atomic_load_explicit(&cq->overrun, memory_order_relaxed) ||
		     head - atomic_load_explicit(&cq->tail,
						 memory_order_relaxed) >=
			     cq->limit)) {
		bool first = !atomic_exchange(&cq->overrun, true);

		spin_unlock(&cq->lock);
		if (first) {
			HCA_COUNT_PROCESS(CQ_OVERRUNS, 1);
			log_warn("completion queue of %u entries overrun",
				 cq->limit);
			hca_async_cq_event(cq, IBV_EVENT_CQ_ERR);
		}
		return;
	}
	cq->ring[head & cq->mask] = *wc;
	atomic_store_explicit(&cq->head, head + 1, memory_order_release);
	if (unlikely(cq->armed != HCA_CQ_UNARMED) &&
	    (cq->armed == HCA_CQ_ARMED_NEXT || solicited ||
	     wc->status != IBV_WC_SUCCESS)) {
		cq_set_armed(cq, HCA_CQ_UNARMED);
		notify = true;
	}
	spin_unlock(&cq->lock);
	if (unlikely(notify) && cq->ex.channel)
		hca_channel_notify(cq);
}

static inline bool cq_empty(struct hca_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire) ==
	       atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

int hca_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	static _Thread_local unsigned since_move;
	struct hca_cq *cq = hca_cq(ibcq);
	uint32_t head, tail;
	int count;

	hca_attention_polled();
	if (cq_empty(cq) || ++since_move >= POLLS_BETWEEN_MOVES) {
		since_move = 0;
		hca_poll_transports(atomic_load_explicit(
			&cq->sends, memory_order_relaxed));
		if (cq_empty(cq))
			return unlikely(atomic_load_explicit(
				       &cq->overrun, memory_order_relaxed)) ?
				       -1 :
				       0;
	}
	spin_lock(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	count = (int)MIN((uint32_t)MAX(n, 0), head - tail);
	for (int i = 0; i < count; i++)
		wc[i] = cq->ring[(tail + (uint32_t)i) & cq->mask];
	atomic_store_explicit(&cq->tail, tail + (uint32_t)count,
			      memory_order_release);
	spin_unlock(&cq->lock);
	return count;
}

int hca_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct hca_cq *cq = hca_cq(ibcq);

	if (!ibcq->channel)
		return EINVAL;
	spin_lock(&cq->lock);
	if (!solicited_only)
		cq_set_armed(cq, HCA_CQ_ARMED_NEXT);
	else if (cq->armed == HCA_CQ_UNARMED)
		cq_set_armed(cq, HCA_CQ_ARMED_SOLICITED);
	spin_unlock(&cq->lock);
	/* From now on somebody may sleep and is woken; what waits in a ring
	 * already arrives now, after the arming, and raises the event. */
	hca_attention_release();
	for (int i = 0; i < MOVES_WHEN_ARMED && hca_poll_transports_surely(); i++)
		;
	return 0;
}

void hca_cq_purge(struct hca_cq *cq, uint32_t qpn)
{
	uint32_t kept;

	spin_lock(&cq->lock);
	kept = cq->tail;
	for (uint32_t i = cq->tail; i != cq->head; i++) {
		struct ibv_wc wc = cq->ring[i & cq->mask];

		if (wc.qp_num != qpn)
			cq->ring[kept++ & cq->mask] = wc;
	}
	atomic_store_explicit(&cq->head, kept, memory_order_release);
	spin_unlock(&cq->lock);
}
