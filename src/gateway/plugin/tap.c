/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Rings of copied samples and the names that they belong to; see tap.h. A ring has one
 * writer, the thread of the node, and one reader, the thread of all observers. Places in
 * nodes are changed under `lock`, which the thread of a node never takes.
 */
#include "gateway/plugin/tap.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "gateway/plugin/node.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/list.h"

enum {
	BYTES_MAX = 8 << 20, /* of a ring: 100 ms of 64 values at 100 kHz */
	SLOTS_MAX = 16384,
	SLOTS_MIN = 64,
	VALUES_MIN = 16,
};

struct slot {
	uint64_t passed_ns;
	struct sample smp; /* its values lie behind it */
};

struct tap_ring {
	struct list entry;       /* of those that are replaced */
	struct tap_place *at;    /* where it was, until it is freed */
	unsigned count, capacity;
	size_t stride;
	cache_aligned atomic_uint head; /* written by the node */
	_Atomic uint64_t lost;
	atomic_uint longest;     /* sample that did not fit */
	cache_aligned atomic_uint tail; /* written by the observer */
	cache_aligned char slots[];
};

struct tap {
	struct list entry;
	char *name;
	enum tap_direction direction;
	unsigned users;
	struct node *node;       /* that has the ring; NULL: none is running */
	struct tap_ring *ring;
	uint64_t lost;           /* of former rings */
	struct list former;      /* rings that the node may still use */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list taps = { &taps, &taps };
static struct list nodes = { &nodes, &nodes };

static struct slot *slot_of(struct tap_ring *r, unsigned index)
{
	return (struct slot *)(void *)(r->slots + (index & (r->count - 1)) * r->stride);
}

static struct tap_ring *ring_new(unsigned capacity)
{
	size_t stride = sizeof(struct slot) + capacity * sizeof(union signal_data);
	unsigned count = SLOTS_MAX;
	struct tap_ring *r;

	while (count > SLOTS_MIN && count * stride > BYTES_MAX)
		count /= 2;
	stride = (stride + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	r = aligned_alloc(CACHE_LINE, sizeof(*r) + count * stride);
	if (!r)
		return NULL;
	memset(r, 0, sizeof(*r));
	r->count = count;
	r->capacity = capacity;
	r->stride = stride;
	for (unsigned i = 0; i < count; i++) {
		struct slot *s = slot_of(r, i);

		memset(s, 0, sizeof(*s));
		s->smp.capacity = capacity;
	}
	return r;
}

static void ring_free(struct tap_ring *r)
{
	if (!r)
		return;
	for (unsigned i = 0; i < r->count; i++)
		sample_own_list(&slot_of(r, i)->smp, NULL);
	free(r);
}

/* ---- the node ---- */

static void ring_put(struct tap_ring *r, const struct sample *smp, uint64_t now_ns)
{
	unsigned head = atomic_load_explicit(&r->head, memory_order_relaxed);
	unsigned tail = atomic_load_explicit(&r->tail, memory_order_acquire);
	struct slot *s = slot_of(r, head);

	if (smp->length > r->capacity &&
	    smp->length > atomic_load_explicit(&r->longest, memory_order_relaxed))
		atomic_store_explicit(&r->longest, smp->length, memory_order_relaxed);
	if (head - tail == r->count || smp->length > r->capacity) {
		atomic_fetch_add_explicit(&r->lost, 1, memory_order_relaxed);
		return;
	}
	s->passed_ns = now_ns;
	sample_copy(&s->smp, smp);
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
}

void tap_copy(struct tap_place *at, struct sample *const smps[], unsigned count)
{
	struct tap_ring *r;

	/* Whoever takes the ring away looks at `busy` afterwards: one of both sees the
	 * other. */
	atomic_store(&at->busy, true);
	r = atomic_load(&at->ring);
	if (r) {
		uint64_t now_ns = clock_now_ns();

		for (unsigned i = 0; i < count; i++)
			ring_put(r, smps[i], now_ns);
	}
	atomic_store_explicit(&at->busy, false, memory_order_release);
}

static struct tap_place *place_of(struct node *n, enum tap_direction direction)
{
	return direction == TAP_IN ? &n->in.tap : &n->out.tap;
}

static const struct signal_list *list_of(const struct node *n, enum tap_direction direction)
{
	if (direction == TAP_IN)
		return n->in.signals;
	return n->out.hooked ? n->out.hooked : n->out.signals;
}

/* ---- with the lock ---- */

/* The node uses a ring that was taken away no more once it is seen outside of tap_copy(). */
static void free_former(struct tap *t)
{
	struct list *next;

	for (struct list *l = t->former.next; l != &t->former; l = next) {
		struct tap_ring *r = container_of(l, struct tap_ring, entry);

		next = l->next;
		if (r->at && atomic_load(&r->at->busy))
			continue;
		list_remove(&r->entry);
		ring_free(r);
	}
}

/* Takes the ring out of its node. */
static void take_ring(struct tap *t)
{
	struct tap_ring *r = t->ring;

	if (!r)
		return;
	t->ring = NULL;
	r->at = t->node ? place_of(t->node, t->direction) : NULL;
	if (r->at)
		atomic_store(&r->at->ring, NULL);
	t->lost += atomic_load_explicit(&r->lost, memory_order_relaxed);
	list_push(&t->former, &r->entry);
	free_former(t);
}

static void put_ring(struct tap *t, struct tap_ring *r)
{
	/* tap_done() reads it without the lock; the observer's ring stays the same meanwhile. */
	if (t->ring != r)
		t->ring = r;
	if (r && t->node)
		atomic_store(&place_of(t->node, t->direction)->ring, r);
}

static void detach(struct tap *t)
{
	if (t->node)
		atomic_store(&place_of(t->node, t->direction)->ring, NULL);
	/* Its thread is not in a read or write, and its memory may go. */
	for (struct list *l = t->former.next; l != &t->former; l = l->next)
		container_of(l, struct tap_ring, entry)->at = NULL;
	t->node = NULL;
}

/* Only the observer replaces a ring: it may be looking at samples in it. */
static void attach(struct tap *t, struct node *n)
{
	const struct signal_list *signals = list_of(n, t->direction);
	unsigned values = MAX(signals ? signals->count : 0u, (unsigned)VALUES_MIN);

	t->node = n;
	put_ring(t, t->ring ? t->ring : ring_new(values));
}

/* A running node of its name, where the ring has no writer. During a reload there may be
 * two of a name. */
static void find_node(struct tap *t)
{
	list_for_each(n, &nodes, struct node, tap_entry)
		if (!t->node && n->tapped && !strcmp(n->name, t->name))
			attach(t, n);
}

/* A longer sample than ever came: there is a larger ring for those behind it. */
static void grow(struct tap *t)
{
	unsigned longest = atomic_load_explicit(&t->ring->longest, memory_order_relaxed);
	struct tap_ring *r;

	if (longest <= t->ring->capacity)
		return;
	r = ring_new(longest);
	if (!r)
		return;
	take_ring(t);
	put_ring(t, r);
}

/* ---- life cycle of nodes ---- */

void taps_add_node(struct node *n)
{
	pthread_mutex_lock(&lock);
	list_push(&nodes, &n->tap_entry);
	pthread_mutex_unlock(&lock);
}

void taps_start_node(struct node *n)
{
	pthread_mutex_lock(&lock);
	n->tapped = true;
	list_for_each(t, &taps, struct tap, entry)
		find_node(t);
	pthread_mutex_unlock(&lock);
}

static void leave(struct node *n)
{
	n->tapped = false;
	list_for_each(t, &taps, struct tap, entry)
		if (t->node == n) {
			detach(t);
			find_node(t);
		}
}

void taps_stop_node(struct node *n)
{
	pthread_mutex_lock(&lock);
	leave(n);
	pthread_mutex_unlock(&lock);
}

void taps_remove_node(struct node *n)
{
	pthread_mutex_lock(&lock);
	leave(n);
	list_remove(&n->tap_entry);
	pthread_mutex_unlock(&lock);
}

/* ---- the observer ---- */

static struct tap *find(const char *name, enum tap_direction direction)
{
	list_for_each(t, &taps, struct tap, entry)
		if (t->direction == direction && !strcmp(t->name, name))
			return t;
	return NULL;
}

static struct tap *tap_new(const char *name, enum tap_direction direction)
{
	struct tap *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->name = strdup(name);
	if (!t->name) {
		free(t);
		return NULL;
	}
	t->direction = direction;
	list_init(&t->former);
	list_push(&taps, &t->entry);
	return t;
}

int tap_open(struct tap **out, const char *name, enum tap_direction direction)
{
	struct tap *t;
	bool exists = false;
	int ret = 0;

	pthread_mutex_lock(&lock);
	t = find(name, direction);
	list_for_each(n, &nodes, struct node, tap_entry)
		exists |= !strcmp(n->name, name);
	if (!t && !exists) {
		ret = -ENOENT;
	} else if (!t) {
		t = tap_new(name, direction);
		ret = t ? 0 : -ENOMEM;
		if (t)
			find_node(t);
	}
	if (!ret)
		t->users++;
	pthread_mutex_unlock(&lock);
	*out = ret ? NULL : t;
	return ret;
}

static bool free_tap(struct tap *t)
{
	take_ring(t);
	free_former(t);
	if (!list_empty(&t->former))
		return false;
	list_remove(&t->entry);
	free(t->name);
	free(t);
	return true;
}

void tap_close(struct tap *t)
{
	bool done;

	pthread_mutex_lock(&lock);
	done = --t->users || free_tap(t);
	/* A thread of a node copies a few samples at the most. */
	while (!done) {
		pthread_mutex_unlock(&lock);
		sched_yield();
		pthread_mutex_lock(&lock);
		done = free_tap(t);
	}
	pthread_mutex_unlock(&lock);
}

struct signal_list *tap_signals(struct tap *t)
{
	struct signal_list *l = NULL;

	pthread_mutex_lock(&lock);
	if (t->node)
		l = (struct signal_list *)list_of(t->node, t->direction);
	if (l)
		signal_list_get(l);
	pthread_mutex_unlock(&lock);
	return l;
}

unsigned tap_peek(struct tap *t, struct tap_look looks[], unsigned max)
{
	struct tap_ring *r;
	unsigned tail, n;

	pthread_mutex_lock(&lock);
	free_former(t);
	r = t->ring;
	n = r ? atomic_load_explicit(&r->head, memory_order_acquire) - atomic_load(&r->tail) : 0;
	if (r && !n)
		grow(t);
	pthread_mutex_unlock(&lock);
	if (!n)
		return 0;
	tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	n = MIN(n, max);
	for (unsigned i = 0; i < n; i++) {
		struct slot *s = slot_of(r, tail + i);

		looks[i] = (struct tap_look){ &s->smp, s->passed_ns };
	}
	return n;
}

void tap_done(struct tap *t, unsigned count)
{
	atomic_fetch_add_explicit(&t->ring->tail, count, memory_order_release);
}

uint64_t tap_lost(const struct tap *t)
{
	uint64_t lost;

	pthread_mutex_lock(&lock);
	lost = t->lost;
	if (t->ring)
		lost += atomic_load_explicit(&t->ring->lost, memory_order_relaxed);
	pthread_mutex_unlock(&lock);
	return lost;
}
