/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Completion queues: creation, the ring of work completions, ibv_poll_cq(). Arming, events and
 * overruns are in cq_event.c, extended polling in cq_ex.c.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "hca/event/async.h"
#include "hca/event/channel.h"
#include "hca/hca.h"
#include "hca/limits.h"
#include "hca/memory/domain.h"
#include "hca/object/context.h"
#include "hca/object/live.h"
#include "hca/object/quota.h"
#include "hca/queue/post.h"
#include "hca/queue/push.h"
#include "hca/run/progress.h"
#include "hca/run/yield.h"
#include "hca/share/process.h"

/* Polls in succession that find completions in the queue and move no messages. Then messages
 * are moved, so that a queue which is never empty does not delay the other queues. */
#define POLLS_BETWEEN_MOVES 16
#define CQE_MIN 4
/* Polls between two calls of pause_between_polls(); at least 10 us. */
#define POLLS_BETWEEN_PAUSES 1024

struct ring {
	struct ibv_wc *wcs;
	uint64_t *stamps; /* in the same memory; NULL: not requested */
	uint32_t mask;
	struct hca_memory memory;
};

/*
 * Grants more entries than requested, as other adapters do. Programs rely on it: perftest
 * requests one entry, and a send and a receive complete at the same time. 0 or -ENOMEM.
 */
static int ring_alloc(uint32_t cqe, bool stamped, struct hca_pd *pd,
		      struct ring *r)
{
	const size_t each = sizeof(struct ibv_wc) +
			    (stamped ? sizeof(uint64_t) : 0);
	uint32_t size = CQE_MIN;
	int ret;

	while (size <= cqe)
		size <<= 1;
	ret = hca_memory_alloc(pd, size * each, HCA_RESOURCE_COMPLETION_QUEUE,
			       &r->memory);
	if (ret)
		return ret;
	r->mask = size - 1;
	r->wcs = r->memory.at;
	r->stamps = stamped ? (uint64_t *)(r->wcs + size) : NULL;
	return 0;
}

static void ring_install(struct hca_cq *cq, const struct ring *r)
{
	cq->ring = r->wcs;
	cq->stamps = r->stamps;
	cq->memory = r->memory;
	cq->mask = cq->limit = r->mask;
	cq->ex.cqe = (int)r->mask;
}

int hca_cq_create(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr,
		  struct ibv_cq **out)
{
	const bool stamped = attr->wc_flags &
			     (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			      IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK);
	struct hca_pd *domain = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD ?
					hca_pd(attr->parent_domain) : NULL;
	struct ring ring;
	struct hca_cq *cq;
	int ret;

	if (attr->cqe < 1 || attr->cqe > HCA_MAX_CQE ||
	    (attr->channel && !hca_live(attr->channel, HCA_CHANNEL)) ||
	    (attr->channel && attr->comp_vector >= 1) ||
	    (attr->channel && attr->channel->context != ibctx))
		return -EINVAL;
	ret = hca_quota_take(HCA_QUOTA_CQ);
	if (ret)
		return ret;
	ret = -ENOMEM;
	cq = aligned_alloc(CACHE_LINE,
			   (sizeof(*cq) + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1));
	if (!cq)
		goto err_quota;
	memset(cq, 0, sizeof(*cq));
	ret = ring_alloc(attr->cqe, stamped, domain, &ring);
	if (ret)
		goto err_cq;
	ring_install(cq, &ring);
	cq->special = stamped ? HCA_CQ_STAMPED : 0;
	cq->ctx = hca_context(ibctx);
	cq->parent_domain = domain;
	cq->single_threaded = hca_domain_single_threaded(domain);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) {
		cq->single_threaded |=
			!!(attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED);
		cq->ignore_overrun =
			attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	}
	list_init(&cq->event_entry);
	hca_cq_event_init(cq);
	cq->ex.context = ibctx;
	cq->ex.channel = attr->channel;
	cq->ex.cq_context = attr->cq_context;
	pthread_mutex_init(&cq->ex.mutex, NULL);
	pthread_cond_init(&cq->ex.cond, NULL);
	if (attr->channel)
		hca_channel_ref(attr->channel);
	if (domain)
		hca_pd_get(domain);
	hca_context_get(cq->ctx);
	hca_live_begin(hca_cq_public(cq), HCA_CQ);
	*out = hca_cq_public(cq);
	return 0;

err_cq:
	free(cq);
err_quota:
	hca_quota_give(HCA_QUOTA_CQ);
	return ret;
}

static void ring_move(const struct hca_cq *cq, const struct ring *to)
{
	for (uint32_t i = cq->tail; i != cq->head; i++) {
		to->wcs[i & to->mask] = cq->ring[i & cq->mask];
		if (cq->stamps)
			to->stamps[i & to->mask] = cq->stamps[i & cq->mask];
	}
}

/*
 * Has the queue more than `cqe` completions? Posted datagrams are counted as completions: one
 * may still wait for its link, which the program cannot know. The count is repeated if a
 * completion was added meanwhile, because its datagram may have been counted neither in its
 * send queue nor here.
 */
static bool needs_more(struct hca_cq *cq, uint32_t cqe)
{
	uint32_t head, count;

	do {
		head = atomic_load(&cq->head);
		count = head - atomic_load(&cq->tail) + hca_sq_datagrams_to(cq);
	} while (head != atomic_load(&cq->head));
	return count > cqe;
}

int hca_cq_resize(struct ibv_cq *ibcq, int cqe)
{
	struct hca_cq *cq = hca_cq(ibcq);
	struct hca_memory old;
	struct ring ring;
	int ret;

	if (!hca_live(ibcq, HCA_CQ) || cqe < 1 || cqe > HCA_MAX_CQE)
		return -EINVAL;
	if ((uint32_t)cqe < cq->limit && needs_more(cq, (uint32_t)cqe))
		return -EINVAL;
	ret = ring_alloc((uint32_t)cqe, cq->stamps, cq->parent_domain, &ring);
	if (ret)
		return ret;
	hca_lock(&cq->lock);
	old = cq->memory;
	/* Compares with the number requested, not with the number granted. */
	if (cq->head - cq->tail > (uint32_t)cqe) {
		old = ring.memory;
		ret = -EINVAL;
	} else {
		ring_move(cq, &ring);
		ring_install(cq, &ring);
	}
	hca_unlock(&cq->lock);
	hca_memory_free(&old, HCA_RESOURCE_COMPLETION_QUEUE);
	return ret;
}

int hca_cq_destroy(struct ibv_cq *ibcq)
{
	struct hca_cq *cq = hca_cq(ibcq);

	if (!hca_live(ibcq, HCA_CQ))
		return -EINVAL;
	if (atomic_load(&cq->users) > 0)
		return -EBUSY;
	hca_live_end(ibcq, HCA_CQ);
	hca_cq_event_fini(cq);
	hca_async_cq_forget(cq);
	if (ibcq->channel) {
		uint32_t taken = hca_channel_forget(cq);

		/* ibv_destroy_cq(3): waits until all events are acknowledged. */
		pthread_mutex_lock(&ibcq->mutex);
		while (ibcq->comp_events_completed != taken)
			pthread_cond_wait(&ibcq->cond, &ibcq->mutex);
		pthread_mutex_unlock(&ibcq->mutex);
	}
	hca_memory_free(&cq->memory, HCA_RESOURCE_COMPLETION_QUEUE);
	if (cq->parent_domain)
		hca_pd_put(cq->parent_domain);
	hca_context_put(cq->ctx);
	pthread_mutex_destroy(&ibcq->mutex);
	pthread_cond_destroy(&ibcq->cond);
	free(cq);
	hca_quota_give(HCA_QUOTA_CQ);
	return 0;
}

void hca_cq_ack_events(struct ibv_cq *ibcq, unsigned count)
{
	pthread_mutex_lock(&ibcq->mutex);
	ibcq->comp_events_completed += count;
	pthread_cond_signal(&ibcq->cond);
	pthread_mutex_unlock(&ibcq->mutex);
}

/* Copies in 64-bit words, see hca_wc_copy(). */
static inline void take_one(struct ibv_wc *to, const struct ibv_wc *from)
{
	uint64_t *w = (uint64_t *)(void *)to;
	const uint64_t *f = (const uint64_t *)(const void *)from;

#pragma GCC unroll 6
	for (unsigned i = 0; i < sizeof(*to) / sizeof(*w); i++) {
		w[i] = f[i];
		/* Keeps the compiler from joining accesses to wider ones. */
		__asm__ volatile("");
	}
}

static inline int take(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	uint32_t head, tail;
	int count;

	hca_lock(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	count = (int)MIN((uint32_t)MAX(n, 0), head - tail);
	for (int i = 0; i < count; i++)
		take_one(&wc[i], &cq->ring[(tail + (uint32_t)i) & cq->mask]);
	atomic_store_explicit(&cq->tail, tail + (uint32_t)count,
			      memory_order_release);
	hca_unlock(&cq->lock);
	return count;
}

void hca_cq_move_again(struct hca_cq *cq)
{
	if (!hca_cq_empty(cq) && ++hca_self.since_move < POLLS_BETWEEN_MOVES)
		return;
	hca_self.since_move = 0;
	if (likely(!hca_builds()))
		hca_poll_transports(cq);
}

void hca_cq_move(struct hca_cq *cq)
{
	hca_attention_polled();
	hca_cq_move_again(cq);
}

/* Lets other threads have the processor, and peers know that they may be among these. */
static void wait_elsewhere(void)
{
	uint32_t on = (uint32_t)(sched_getcpu() + 1);

	if (atomic_load_explicit(&hca_process.segment->polled_on, memory_order_relaxed) != on)
		atomic_store_explicit(&hca_process.segment->polled_on, on, memory_order_relaxed);
	hca_yield(hca_transports_peer_ran_on);
}

/* Runs timers that are overdue, and yields the processor if none of the last polls found a
 * completion. If no other thread is ready to run, that costs a fraction of a microsecond; else
 * milliseconds. Then the caller looks once more, because a message that came meanwhile is older
 * than events that the program reads after this poll, such as the peer's disconnection. */
static __attribute__((noinline)) void pause_between_polls(void)
{
	/* Timers take sq_locks; between ibv_wr_start() and its end one is held. */
	if (!hca_self.depth)
		progress_run_overdue();
	if (hca_self.polls_found)
		hca_self.vain_since_ns = 0;
	else
		wait_elsewhere();
	hca_self.polls_found = false;
}

static __attribute__((noinline)) void carry_on(struct hca_cq *cq)
{
	void (*fn)(struct hca_cq *) = atomic_load(&cq->carry_on);

	if (fn)
		fn(cq);
}

/* See hca_cq_moved(). */
static inline __attribute__((always_inline)) bool moved(struct hca_cq *cq, bool found)
{
	bool later = false;

	if (found) {
		hca_self.polls_found = true;
	} else if (unlikely(atomic_load_explicit(&cq->carry_on, memory_order_relaxed))) {
		carry_on(cq);
		later = true;
	}
	if (unlikely(++hca_self.polls >= POLLS_BETWEEN_PAUSES)) {
		hca_self.polls = 0;
		pause_between_polls();
		later = !found;
	}
	return later;
}

bool hca_cq_moved(struct hca_cq *cq, bool found)
{
	return moved(cq, found);
}

/* May the next completion be written to the caller's buffer instead of the ring? Only if this
 * thread is the only one inside, and the ring is empty. */
static inline bool may_be_direct(struct hca_cq *cq, int n)
{
	return hca_self.elided && n > 0 && !cq->special && hca_cq_empty(cq) &&
	       !atomic_load_explicit(&cq->overrun, memory_order_relaxed);
}

static inline int poll_direct(struct hca_cq *cq, int n, struct ibv_wc *wc)
{
	int count = 0;

	hca_attention_polled();
	hca_self.since_move = 0;
	cq->direct = wc;
	hca_poll_transports(cq);
	if (!cq->direct) {
		count = 1;
		if (unlikely(!hca_cq_empty(cq)))
			count += take(cq, n - 1, wc + 1);
	}
	cq->direct = NULL;
	return count;
}

static inline __attribute__((always_inline)) int look(struct hca_cq *cq, int n,
						      struct ibv_wc *wc)
{
	int count = 0;

	hca_enter();
	if (likely(may_be_direct(cq, n))) {
		count = poll_direct(cq, n, wc);
	} else {
		hca_cq_move(cq);
		if (!hca_cq_empty(cq))
			count = take(cq, n, wc);
		else if (unlikely(atomic_load_explicit(&cq->overrun,
						       memory_order_relaxed)))
			count = -1;
	}
	hca_leave();
	return count;
}

/* The second look of a poll; not counted as a poll. */
static __attribute__((noinline, cold)) int look_again(struct hca_cq *cq, int n,
						      struct ibv_wc *wc)
{
	int count;

	hca_enter();
	hca_cq_move_again(cq);
	count = take(cq, n, wc);
	if (!count && atomic_load_explicit(&cq->overrun, memory_order_relaxed))
		count = -1;
	hca_leave();
	return count;
}

int hca_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct hca_cq *cq = hca_cq(ibcq);
	int count = look(cq, n, wc);

	return unlikely(moved(cq, count > 0)) ? look_again(cq, n, wc) : count;
}

bool hca_cq_take(struct hca_cq *cq, struct ibv_wc *wc, uint64_t *stamp)
{
	uint32_t tail;
	bool any;

	hca_lock(&cq->lock);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	any = tail != atomic_load_explicit(&cq->head, memory_order_relaxed);
	if (likely(any)) {
		*wc = cq->ring[tail & cq->mask];
		if (cq->stamps)
			*stamp = cq->stamps[tail & cq->mask];
		atomic_store_explicit(&cq->tail, tail + 1,
				      memory_order_release);
	}
	hca_unlock(&cq->lock);
	return any;
}

void hca_cq_purge(struct hca_cq *cq, uint32_t qpn)
{
	uint32_t kept;

	hca_lock(&cq->lock);
	kept = cq->tail;
	for (uint32_t i = cq->tail; i != cq->head; i++) {
		struct ibv_wc wc = cq->ring[i & cq->mask];

		if (wc.qp_num == qpn)
			continue;
		if (cq->stamps)
			cq->stamps[kept & cq->mask] = cq->stamps[i & cq->mask];
		cq->ring[kept++ & cq->mask] = wc;
	}
	atomic_store_explicit(&cq->head, kept, memory_order_release);
	hca_unlock(&cq->lock);
}
