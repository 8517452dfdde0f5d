/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The pool of an instance: which buffers are in use, which are kept, and who has
 * references. Spans and their search are pool_span.c, registrations pool_keys.c,
 * where spans lie pool_map.c.
 */
#include "ripc/memory/pool.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "ripc/memory/pool_private.h"

#define SLAB_BYTES_MIN (64u << 10) /* from this size on, a buffer is a mapping of its own */
#define SLAB_BYTES_MAX (1u << 20)
#define SLAB_SLOTS_MIN 4u
#define SLAB_SLOTS_MAX 1024u

/* ---- why there is no memory ---- */

static _Thread_local char why[192] = "no memory";

void pool_say(const char *what, size_t bytes, int error)
{
	struct rlimit limit;
	int n = snprintf(why, sizeof(why), "%s %zu bytes: %s", what, bytes, strerror(error));

	if (error == ENOMEM && n > 0 && (size_t)n < sizeof(why) &&
	    !getrlimit(RLIMIT_MEMLOCK, &limit) && limit.rlim_cur != RLIM_INFINITY)
		snprintf(why + n, sizeof(why) - (size_t)n,
			 " (the limit of locked memory, ulimit -l, is %llu KiB)",
			 (unsigned long long)limit.rlim_cur >> 10);
}

const char *pool_why(void)
{
	return why;
}

/* ---- spans come and go ---- */

/* Nobody finds the span from here on. The lock is held. */
static void forget(struct pool *p, struct pool_span *s)
{
	pool_tree_remove(&p->root, s);
	for (unsigned i = 0; i < POOL_SEEN; i++)
		if (p->seen[i] == s)
			p->seen[i] = NULL;
}

static void evict(struct pool *p, struct pool_span *s, struct list *gone)
{
	list_remove(&s->entry);
	list_remove(&s->idle);
	p->counters.kept_bytes -= s->end - s->start;
	p->classes[s->size_class].slabs--;
	forget(p, s);
	list_push(gone, &s->idle);
}

static void evict_to(struct pool *p, size_t keep_bytes, struct list *gone)
{
	while (p->counters.kept_bytes > keep_bytes)
		evict(p, list_entry(p->idle.next, struct pool_span, idle), gone);
}

/* Without the lock. */
static void release(struct pool *p, struct list *gone)
{
	struct list *entry;

	while ((entry = list_pop(gone))) {
		struct pool_span *s = list_entry(entry, struct pool_span, idle);

		/* What the adapter still reaches must not become somebody else's memory. */
		if (!pool_keys_drop(p, s))
			pool_unmap(p, (void *)s->start, s->end - s->start, &s->place);
		else
			pool_file_close(p, &s->place);
		free(s);
	}
}

static size_t span_bytes(const struct pool_class *c, size_t slot_bytes)
{
	size_t bytes = SLAB_BYTES_MIN;

	if (slot_bytes >= SLAB_BYTES_MIN)
		return slot_bytes;
	/* The more there are, the longer the next one is. */
	for (unsigned i = 0; i < c->slabs && bytes < SLAB_BYTES_MAX; i++)
		bytes *= 2;
	while (bytes < slot_bytes * SLAB_SLOTS_MIN)
		bytes *= 2;
	return bytes < slot_bytes * SLAB_SLOTS_MAX ? bytes : slot_bytes * SLAB_SLOTS_MAX;
}

/* Buffers of SLAB_BYTES_MIN and more are spans of their own. */
static void *map_once(struct pool *p, size_t bytes, size_t slot_bytes,
		      struct pool_place *place)
{
	return slot_bytes < SLAB_BYTES_MIN ? pool_map_slab(bytes) : pool_map_long(p, bytes, place);
}

static void *map(struct pool *p, size_t bytes, size_t slot_bytes, struct pool_place *place)
{
	void *memory = map_once(p, bytes, slot_bytes, place);

	if (memory)
		return memory;
	pool_trim(p, 0);
	return map_once(p, bytes, slot_bytes, place);
}

static struct pool_span *span_map(struct pool *p, unsigned size_class)
{
	const size_t slot_bytes = pool_class_bytes(size_class);
	struct pool_place place = { .fd = -1 };
	struct pool_span *s = NULL;
	void *memory;
	size_t bytes;

	spin_lock(&p->lock);
	bytes = span_bytes(&p->classes[size_class], slot_bytes);
	spin_unlock(&p->lock);
	memory = map(p, bytes, slot_bytes, &place);
	if (memory)
		s = pool_span_new(memory, bytes, (uint32_t)(bytes / slot_bytes));
	if (!s) {
		if (memory)
			pool_unmap(p, memory, bytes, &place);
		return NULL;
	}
	s->place = place;
	s->size_class = size_class;
	if (s->count > 1)
		s->slot_bytes = (uint32_t)slot_bytes;
	return s;
}

/* ---- buffers ---- */

/* A free buffer of the span, which is on a list of its class. The lock is held. */
static void *take_from(struct pool *p, struct pool_span *s)
{
	struct pool_region *slot = pool_span_take(s);

	list_remove(&s->entry);
	if (s->used < s->count)
		list_push(&p->classes[s->size_class].partial, &s->entry);
	return (void *)(s->start + (uintptr_t)(slot - s->slots) * s->slot_bytes);
}

/* The lock is held. */
static void *take(struct pool *p, struct pool_class *c)
{
	struct pool_span *s;

	if (!list_empty(&c->partial)) {
		s = list_entry(c->partial.prev, struct pool_span, entry);
	} else if (!list_empty(&c->whole)) {
		s = list_entry(c->whole.prev, struct pool_span, entry);
		list_remove(&s->idle);
		p->counters.kept_bytes -= s->end - s->start;
	} else {
		return NULL;
	}
	return take_from(p, s);
}

/* The last use of a buffer is over. The lock is held; `gone` is to be released without. */
static void give_back(struct pool *p, struct pool_region *slot, struct list *gone)
{
	struct pool_span *s = slot->span;
	struct pool_class *c = &p->classes[s->size_class];
	const size_t bytes = s->end - s->start;

	pool_span_give(s, slot);
	list_remove(&s->entry);
	if (s->used) {
		list_push(&c->partial, &s->entry);
		return;
	}
	list_push(&c->whole, &s->entry);
	list_push(&p->idle, &s->idle);
	p->counters.kept_bytes += bytes;
	if (bytes > p->kept_bytes_max) /* it alone: others need not go for it */
		evict(p, s, gone);
	evict_to(p, p->kept_bytes_max, gone);
}

void *pool_alloc(struct pool *p, size_t bytes)
{
	struct pool_span *s;
	unsigned size_class;
	void *buffer;

	if (bytes > POOL_BYTES_MAX)
		goto err_memory;
	size_class = pool_class_of(bytes);
	spin_lock(&p->lock);
	buffer = take(p, &p->classes[size_class]);
	spin_unlock(&p->lock);
	if (buffer)
		return buffer;
	s = span_map(p, size_class);
	if (!s)
		goto err_memory;
	spin_lock(&p->lock);
	p->classes[size_class].slabs++;
	pool_tree_insert(&p->root, s);
	buffer = take_from(p, s);
	spin_unlock(&p->lock);
	return buffer;

err_memory:
	pool_say("a buffer of", bytes, ENOMEM);
	errno = ENOMEM;
	return NULL;
}

/* The buffer in use that has all of [at, at + bytes). The lock is held. */
static struct pool_region *find(struct pool *p, const void *at, size_t bytes)
{
	const uintptr_t address = (uintptr_t)at;
	/* A piece of 64 KiB has a place; pieces side by side have different ones. */
	struct pool_span **seen = &p->seen[(address >> 16 ^ address >> 22) % POOL_SEEN];
	struct pool_span *s = *seen;
	struct pool_region *slot;
	uintptr_t start, end;

	if (!s || address < s->start || address >= s->end) {
		/* No span has the last byte of all. */
		s = address < UINTPTR_MAX ? pool_tree_find(p->root, address, address + 1) : NULL;
		if (!s)
			return NULL;
		*seen = s;
	}
	slot = pool_span_slot(s, address, &start, &end);
	if (!slot || slot->state != POOL_USED || bytes > end - address)
		return NULL;
	return slot;
}

int pool_free(struct pool *p, void *any)
{
	struct pool_region *slot;
	struct list gone;
	int ret = 0;

	list_init(&gone);
	spin_lock(&p->lock);
	slot = find(p, any, 0);
	if (!slot || slot->span->foreign)
		ret = -EINVAL;
	else if (slot->references)
		slot->state = POOL_LEAVING;
	else
		give_back(p, slot, &gone);
	spin_unlock(&p->lock);
	release(p, &gone);
	return ret;
}

void pool_trim(struct pool *p, size_t keep_bytes)
{
	struct list gone;

	list_init(&gone);
	spin_lock(&p->lock);
	evict_to(p, keep_bytes, &gone);
	spin_unlock(&p->lock);
	release(p, &gone);
}

/* ---- memory of the program's own ---- */

int pool_register(struct pool *p, void *memory, size_t bytes)
{
	struct pool_span *s;
	bool overlaps;

	if (!memory || !bytes || bytes > UINTPTR_MAX - (uintptr_t)memory)
		return -EINVAL;
	s = pool_span_new(memory, bytes, 1);
	if (!s) {
		pool_say("describing", bytes, ENOMEM);
		return -ENOMEM;
	}
	s->foreign = true;
	pool_span_take(s);
	spin_lock(&p->lock);
	overlaps = pool_tree_find(p->root, s->start, s->end);
	if (!overlaps)
		pool_tree_insert(&p->root, s);
	spin_unlock(&p->lock);
	if (!overlaps)
		return 0;
	free(s);
	return -EEXIST;
}

int pool_unregister(struct pool *p, void *memory)
{
	struct pool_region *slot;
	struct pool_span *s;
	int ret = 0;

	spin_lock(&p->lock);
	slot = find(p, memory, 0);
	if (!slot || !slot->span->foreign || slot->span->start != (uintptr_t)memory)
		ret = -EINVAL;
	else if (slot->references)
		ret = -EBUSY;
	else
		slot->state = POOL_LEAVING; /* nobody gets a reference from here on */
	spin_unlock(&p->lock);
	if (ret)
		return ret;
	s = slot->span;
	ret = pool_keys_drop(p, s);
	spin_lock(&p->lock);
	if (ret)
		slot->state = POOL_USED;
	else
		forget(p, s);
	spin_unlock(&p->lock);
	if (!ret)
		free(s);
	return ret;
}

/* ---- references ---- */

int pool_get(struct pool *p, const void *at, size_t bytes, enum pool_access access,
	     struct pool_ref *out)
{
	struct pool_region *slot;
	struct ibv_mr *mr = NULL;
	int ret;

	spin_lock(&p->lock);
	slot = find(p, at, bytes);
	if (slot) {
		slot->references++;
		mr = pool_key(slot->span, access);
	}
	spin_unlock(&p->lock);
	if (!slot)
		return -ENOENT;
	*out = (struct pool_ref){ .region = slot };
	if (!mr) {
		ret = pool_key_make(p, slot->span, access, &mr);
		if (ret) {
			pool_put(p, out);
			return ret;
		}
	}
	out->mr = mr;
	out->lkey = mr->lkey;
	out->rkey = mr->rkey;
	return 0;
}

void pool_put(struct pool *p, const struct pool_ref *ref)
{
	struct pool_region *slot = ref->region;
	struct list gone;

	list_init(&gone);
	spin_lock(&p->lock);
	if (!--slot->references && slot->state == POOL_LEAVING)
		give_back(p, slot, &gone);
	spin_unlock(&p->lock);
	release(p, &gone);
}

/* ---- the pool itself ---- */

int pool_open(struct pool **out, struct ibv_pd *pd, size_t kept_bytes_max)
{
	struct ibv_device_attr device;
	struct pool *p;

	if (ibv_query_device(pd->context, &device))
		return -EIO;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->pd = pd;
	p->kept_bytes_max = kept_bytes_max;
	if (device.device_cap_flags & (IBV_DEVICE_MEM_WINDOW_TYPE_2A |
				       IBV_DEVICE_MEM_WINDOW_TYPE_2B))
		p->access_always = IBV_ACCESS_MW_BIND;
	p->files = pool_files_are_taken(pd);
	pthread_mutex_init(&p->registering, NULL);
	list_init(&p->idle);
	list_init(&p->pages);
	for (unsigned i = 0; i < POOL_CLASSES; i++) {
		list_init(&p->classes[i].partial);
		list_init(&p->classes[i].whole);
	}
	*out = p;
	return 0;
}

void pool_close(struct pool *p)
{
	while (p->root) {
		struct pool_span *s = p->root;

		pool_tree_remove(&p->root, s);
		if (!pool_keys_drop(p, s) && !s->foreign)
			pool_unmap(p, (void *)s->start, s->end - s->start, &s->place);
		else
			pool_file_close(p, &s->place);
		free(s);
	}
	pool_pages_forget(p);
	pthread_mutex_destroy(&p->registering);
	free(p);
}

void pool_counters(struct pool *p, struct pool_counters *out)
{
	spin_lock(&p->lock);
	*out = p->counters;
	spin_unlock(&p->lock);
}
