/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queue in memory; see queue.h.
 *
 * A ring of records, each a header and the bytes of a unit. `head` and `tail` run free.
 * An emitting thread reserves a record under a lock, writes its header's state as
 * RESERVED, moves `head`, copies outside of the lock, and then stores READY. The draining
 * thread stops at a record that is not READY. A record does not wrap: where it does not
 * fit before the end of the ring, a header of the state SKIP fills the rest.
 */
#include "transport/carrier/queue.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include "transport/carrier/drainer.h"
#include "util/container_of.h"
#include "util/spin.h"

enum { DEFAULT_BYTES = 256 << 10, MIN_BYTES = 4 << 10, MAX_BYTES = 1 << 30 };
enum record_state { RESERVED, READY, SKIP };

/* Records begin at multiples of 64 bytes, so the end of the ring has room for a state. */
struct record {
	_Atomic uint32_t state;
	uint32_t bytes;  /* of the unit */
	uint64_t room;   /* of the record, with its header */
	struct carrier_unit unit;
};

struct queue {
	struct carrier carrier;
	uint64_t mask;
	uint8_t *ring;
	size_t unit_max;
	enum carrier_when_full when_full;
	void (*wake)(void *);
	void *wake_arg;
	atomic_uint_fast64_t dropped, refused;

	cache_aligned struct spin lock;
	_Atomic uint64_t head;
	cache_aligned _Atomic uint64_t tail;
	struct drainer drainer;
	atomic_uint_fast64_t units, bytes;
	/* Written seldom: the next unit has to wake; an emit waits for room. */
	cache_aligned atomic_bool armed, blocked;
};

static struct queue *queue_of(struct carrier *c)
{
	return container_of(c, struct queue, carrier);
}

static struct record *record_at(const struct queue *q, uint64_t at)
{
	return (struct record *)(void *)(q->ring + (at & q->mask));
}

/* ---- emitting ---- */

static uint64_t room_of(size_t bytes)
{
	return (sizeof(struct record) + bytes + CACHE_LINE - 1) &
	       ~(uint64_t)(CACHE_LINE - 1);
}

/* NULL: no room. */
static struct record *reserve(struct queue *q, uint64_t room)
{
	uint64_t head, gap, used;
	struct record *r;

	spin_lock(&q->lock);
	head = atomic_load_explicit(&q->head, memory_order_relaxed);
	used = head - atomic_load_explicit(&q->tail, memory_order_acquire);
	gap = q->mask + 1 - (head & q->mask);
	if (gap >= room)
		gap = 0;
	if (used + gap + room > q->mask + 1) {
		spin_unlock(&q->lock);
		return NULL;
	}
	if (gap) {
		r = record_at(q, head);
		r->room = gap;
		atomic_store_explicit(&r->state, SKIP, memory_order_relaxed);
		head += gap;
	}
	r = record_at(q, head);
	r->room = room;
	atomic_store_explicit(&r->state, RESERVED, memory_order_relaxed);
	atomic_store_explicit(&q->head, head + room, memory_order_release);
	spin_unlock(&q->lock);
	return r;
}

/* Full: whoever drains makes room before it looks at `blocked`, so one of both sees the
 * other. */
static struct record *reserve_again(struct queue *q, uint64_t room)
{
	if (q->when_full == CARRIER_FULL_DROP)
		return NULL;
	atomic_store(&q->blocked, true);
	atomic_thread_fence(memory_order_seq_cst);
	return reserve(q, room);
}

static void wake_if_armed(struct queue *q)
{
	/* READY is stored, then `armed` is looked at; poll does it the other way round. */
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&q->armed, memory_order_relaxed) &&
	    atomic_exchange(&q->armed, false) && q->wake)
		q->wake(q->wake_arg);
}

/* 0, or why it was not taken. */
static int emit_one(struct queue *q, const struct carrier_unit *unit)
{
	size_t bytes = carrier_unit_bytes(unit);
	struct record *r;

	if (!bytes)
		return -EINVAL;
	if (bytes > q->unit_max)
		return -EMSGSIZE;
	r = reserve(q, room_of(bytes));
	if (!r)
		r = reserve_again(q, room_of(bytes));
	if (!r && q->when_full == CARRIER_FULL_DROP) {
		atomic_fetch_add_explicit(&q->dropped, 1, memory_order_relaxed);
		return 0;
	}
	if (!r) {
		atomic_fetch_add_explicit(&q->refused, 1, memory_order_relaxed);
		return -EAGAIN;
	}
	r->bytes = (uint32_t)bytes;
	r->unit = *unit;
	carrier_unit_gather(unit, 0, bytes, r + 1);
	atomic_store_explicit(&r->state, READY, memory_order_release);
	return 0;
}

static int queue_emit(struct carrier *c, const struct carrier_unit *units, unsigned n)
{
	struct queue *q = queue_of(c);
	unsigned taken = 0;
	int err = 0;

	while (taken < n && !(err = emit_one(q, &units[taken])))
		taken++;
	if (taken)
		wake_if_armed(q);
	return taken ? (int)taken : err;
}

/* ---- draining ---- */

/* The record at `tail` that is READY, past a SKIP; NULL: none. */
static struct record *first_ready(struct queue *q)
{
	uint64_t tail = atomic_load_explicit(&q->tail, memory_order_relaxed);
	struct record *r;
	uint32_t state;

	for (;;) {
		if (tail == atomic_load_explicit(&q->head, memory_order_acquire))
			return NULL;
		r = record_at(q, tail);
		state = atomic_load_explicit(&r->state, memory_order_acquire);
		if (state != SKIP)
			return state == READY ? r : NULL;
		tail += r->room;
		atomic_store_explicit(&q->tail, tail, memory_order_release);
	}
}

static void add(atomic_uint_fast64_t *counter, uint64_t n)
{
	/* By the draining thread alone. */
	atomic_store_explicit(counter,
		atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

static void deliver_one(struct queue *q, struct record *r)
{
	struct iovec iov = { .iov_base = r + 1, .iov_len = r->bytes };

	r->unit.iov = &iov;
	r->unit.count = 1;
	carrier_deliver(&q->carrier, &r->unit);
	add(&q->units, 1);
	add(&q->bytes, r->bytes);
	atomic_store_explicit(&q->tail,
		atomic_load_explicit(&q->tail, memory_order_relaxed) + r->room,
		memory_order_release);
}

/* Those who wait want to emit more than one unit. */
static void tell_writable(struct queue *q)
{
	uint64_t used;

	atomic_thread_fence(memory_order_seq_cst);
	if (!atomic_load_explicit(&q->blocked, memory_order_relaxed))
		return;
	used = atomic_load_explicit(&q->head, memory_order_relaxed) -
	       atomic_load_explicit(&q->tail, memory_order_relaxed);
	if (used <= (q->mask + 1) / 2 && atomic_exchange(&q->blocked, false))
		carrier_writable(&q->carrier);
}

/* By who drains. True: the budget is used up. */
static bool drain(struct queue *q, unsigned budget, unsigned *done)
{
	struct record *r;

	for (;;) {
		while (*done < budget && (r = first_ready(q))) {
			deliver_one(q, r);
			++*done;
		}
		tell_writable(q);
		if (*done == budget)
			return true;
		/* See wake_if_armed(). */
		atomic_store(&q->armed, true);
		atomic_thread_fence(memory_order_seq_cst);
		if (!first_ready(q))
			return false;
	}
}

/* Nothing to do, and whoever emits next will wake: costs no locked instruction. */
static bool is_idle(struct queue *q)
{
	return atomic_load_explicit(&q->armed, memory_order_relaxed) &&
	       !atomic_load_explicit(&q->blocked, memory_order_relaxed) &&
	       atomic_load_explicit(&q->head, memory_order_acquire) ==
		       atomic_load_explicit(&q->tail, memory_order_relaxed);
}

static unsigned queue_poll(struct carrier *c, unsigned budget)
{
	struct queue *q = queue_of(c);
	unsigned done = 0;
	bool spent = false, missed;

	if (is_idle(q))
		return 0;
	do {
		if (!drainer_enter(&q->drainer))
			break;
		spent = drain(q, budget, &done);
		missed = drainer_leave(&q->drainer);
	} while (missed && !spent);
	/* The thread that came meanwhile may have been woken for what is left. */
	if (spent && missed && q->wake)
		q->wake(q->wake_arg);
	return done;
}

static uint64_t queue_next_ns(struct carrier *c)
{
	struct queue *q = queue_of(c);

	/* Units for which `wake` has been called, or which a poll has left. */
	if (atomic_load_explicit(&q->armed, memory_order_acquire) ||
	    atomic_load_explicit(&q->head, memory_order_acquire) ==
		    atomic_load_explicit(&q->tail, memory_order_relaxed))
		return UINT64_MAX;
	return 0;
}

static void queue_close(struct carrier *c)
{
	struct queue *q = queue_of(c);

	free(q->ring);
	free(q);
}

static const struct carrier_ops queue_ops = {
	.emit = queue_emit,
	.poll = queue_poll,
	.next_ns = queue_next_ns,
	.close = queue_close,
};

int carrier_queue_open(const struct carrier_queue_params *params, struct carrier **out)
{
	size_t want = params->bytes ? params->bytes : DEFAULT_BYTES, size = MIN_BYTES;
	struct queue *q;

	if (want < MIN_BYTES || want > MAX_BYTES)
		return -EINVAL;
	while (size < want)
		size *= 2;
	q = aligned_alloc(CACHE_LINE, sizeof(*q));
	if (!q)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->ring = aligned_alloc(CACHE_LINE, size);
	if (!q->ring) {
		free(q);
		return -ENOMEM;
	}
	q->carrier.ops = &queue_ops;
	q->mask = size - 1;
	q->unit_max = size / 4 - 2 * CACHE_LINE;
	q->when_full = params->when_full;
	q->wake = params->wake;
	q->wake_arg = params->wake_arg;
	atomic_init(&q->armed, true);
	*out = &q->carrier;
	return 0;
}

void carrier_queue_count(struct carrier *c, struct carrier_queue_counters *out)
{
	struct queue *q = queue_of(c);

	*out = (struct carrier_queue_counters){
		.units = atomic_load_explicit(&q->units, memory_order_relaxed),
		.bytes = atomic_load_explicit(&q->bytes, memory_order_relaxed),
		.dropped = atomic_load_explicit(&q->dropped, memory_order_relaxed),
		.refused = atomic_load_explicit(&q->refused, memory_order_relaxed),
	};
}
