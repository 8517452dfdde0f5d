/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Bounded lock-free ring of pointers, single producer and single consumer
 * (Lamport's queue with cached indices). The capacity is a power of two.
 */
#ifndef UTIL_RING_H
#define UTIL_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/container_of.h"

struct ring {
	cache_aligned atomic_uint_fast64_t head; /* next to write, producer */
	uint64_t cached_tail;                    /* producer's view of tail */
	cache_aligned atomic_uint_fast64_t tail; /* next to read, consumer */
	uint64_t cached_head;                    /* consumer's view of head */
	cache_aligned uint64_t mask;
	void **slots;
};

/* `capacity` is rounded up to a power of two. 0 or -ENOMEM. */
int ring_init(struct ring *r, uint64_t capacity);
void ring_destroy(struct ring *r);

/* Producer. False when full: the caller's policy applies. */
static inline bool ring_push(struct ring *r, void *item)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);

	if (head - r->cached_tail > r->mask) {
		r->cached_tail =
			atomic_load_explicit(&r->tail, memory_order_acquire);
		if (head - r->cached_tail > r->mask)
			return false;
	}
	r->slots[head & r->mask] = item;
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return true;
}

/* Consumer. NULL when empty. */
static inline void *ring_pop(struct ring *r)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	void *item;

	if (tail == r->cached_head) {
		r->cached_head =
			atomic_load_explicit(&r->head, memory_order_acquire);
		if (tail == r->cached_head)
			return NULL;
	}
	item = r->slots[tail & r->mask];
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return item;
}

/* Elements in the ring; exact only when neither side is active. */
static inline uint64_t ring_count(struct ring *r)
{
	return atomic_load_explicit(&r->head, memory_order_acquire) -
	       atomic_load_explicit(&r->tail, memory_order_acquire);
}

#endif
