/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue between the thread that reads a node and the path that processes its samples,
 * with the policies for a full queue. One producer, one consumer, no lock.
 *
 * With drop_oldest the producer removes samples at the consumer's end too. Both
 * therefore load the slot and then advance the tail by compare-and-swap. The loaded
 * value is valid only if the swap succeeds, because the producer reuses a slot only
 * after the tail has moved past it. The other policies use the plain ring.
 */
#ifndef GATEWAY_PATH_PATH_QUEUE_H
#define GATEWAY_PATH_PATH_QUEUE_H

#include "gateway/path/path.h"

static inline void path_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

static inline bool path_queue_try_push(struct ring *r, struct sample *smp)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&r->tail, memory_order_acquire) >
	    r->mask)
		return false;
	__atomic_store_n(&r->slots[head & r->mask], smp, __ATOMIC_RELAXED);
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return true;
}

static inline struct sample *path_queue_take(struct ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_acquire);

	while (tail != atomic_load_explicit(&r->head, memory_order_acquire)) {
		struct sample *smp = __atomic_load_n(
			&r->slots[tail & r->mask], __ATOMIC_RELAXED);

		if (atomic_compare_exchange_weak_explicit(
			    &r->tail, &tail, tail + 1, memory_order_acq_rel,
			    memory_order_acquire))
			return smp;
	}
	return NULL;
}

/* Drops the oldest samples until there is room; tries again when the consumer took a
 * sample first. */
static inline void path_queue_push_evicting(struct path_source *s,
					    struct sample *smp)
{
	while (!path_queue_try_push(&s->queue, smp)) {
		struct sample *old = path_queue_take(&s->queue);

		if (!old)
			continue;
		sample_put(old);
		path_count(&s->overruns, 1);
	}
}

/* NULL when empty. */
static inline struct sample *path_queue_pop(struct path_source *s)
{
	return s->full == PATH_DROP_OLDEST ? path_queue_take(&s->queue) :
					     ring_pop(&s->queue);
}

#endif
