/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pools of samples and their reference counts.
 *
 * A pool is a list of free samples under a spin lock: the critical section is
 * a few instructions, and samples come and go from any thread.
 */
#define LOG_ROOM "gateway/sample"
#include "gateway/sample/sample.h"

#include <errno.h>
#include <string.h>

#include "gateway/base/memory.h"
#include "util/log.h"

void sample_own_list(struct sample *s, struct signal_list *l)
{
	struct signal_list *before = s->owned;

	if (before == l)
		return;
	s->owned = l ? signal_list_get(l) : NULL;
	signal_list_put(before);
}

static struct sample *pool_sample(struct pool *p, unsigned i)
{
	return (struct sample *)((char *)p->block->addr + i * p->stride);
}

int pool_init(struct pool *p, unsigned count, unsigned capacity,
	      struct memory_type *type)
{
	size_t bytes = sizeof(struct sample) +
		       (size_t)capacity * sizeof(union signal_data);

	memset(p, 0, sizeof(*p));
	if (!count)
		return -EINVAL;
	p->memory = type ? type : &memory_hugepage;
	p->count = count;
	p->capacity = capacity;
	/* Two samples never share a cache line: they travel between threads. */
	p->stride = (bytes + CACHE_LINE - 1) & ~(size_t)(CACHE_LINE - 1);
	p->block = memory_alloc(p->memory, p->stride * count);
	if (!p->block)
		return errno ? -errno : -ENOMEM;

	for (unsigned i = count; i-- > 0;) {
		struct sample *s = pool_sample(p, i);

		s->pool = p;
		s->capacity = capacity;
		s->next_free = p->free;
		p->free = s;
	}
	p->available = count;
	return 0;
}

unsigned pool_destroy(struct pool *p)
{
	unsigned leaked = p->count - p->available;

	if (!p->block)
		return 0;
	if (leaked) {
		/* Their owners may still write to them: keeps the memory, so
		 * that no other code gets it. */
		log_error("%u of %u samples were not given back, keeping their memory",
			  leaked, p->count);
		return leaked;
	}
	memory_free(p->block);
	memset(p, 0, sizeof(*p));
	return 0;
}

unsigned sample_alloc_many(struct pool *p, struct sample *smps[], unsigned cnt)
{
	unsigned n = 0;

	spin_lock(&p->lock);
	while (n < cnt && p->free) {
		smps[n] = p->free;
		p->free = smps[n++]->next_free;
	}
	p->available -= n;
	spin_unlock(&p->lock);

	for (unsigned i = 0; i < n; i++) {
		struct sample *s = smps[i];

		s->owned = NULL;
		s->signals = NULL;
		s->flags = 0;
		s->length = 0;
		atomic_store_explicit(&s->refcnt, 1, memory_order_relaxed);
	}
	return n;
}

struct sample *sample_alloc(struct pool *p)
{
	struct sample *s;

	return sample_alloc_many(p, &s, 1) ? s : NULL;
}

/* True when the caller held the last reference; the sample owns no list then. */
static inline bool drop_reference(struct sample *s)
{
	assert(atomic_load_explicit(&s->refcnt, memory_order_relaxed) > 0);
	/* A sole owner needs no locked instruction: nobody else can take a
	 * reference from him meanwhile. */
	if (atomic_load_explicit(&s->refcnt, memory_order_acquire) == 1)
		atomic_store_explicit(&s->refcnt, 0, memory_order_relaxed);
	else if (atomic_fetch_sub_explicit(&s->refcnt, 1,
					   memory_order_acq_rel) != 1)
		return false;
	if (unlikely(s->owned))
		sample_own_list(s, NULL);
	return true;
}

void sample_put(struct sample *s)
{
	struct pool *p = s->pool;

	if (!drop_reference(s))
		return;
	spin_lock(&p->lock);
	s->next_free = p->free;
	p->free = s;
	p->available++;
	spin_unlock(&p->lock);
}

void sample_put_many(struct sample *smps[], unsigned cnt)
{
	unsigned i = 0;

	while (i < cnt) {
		struct pool *p = smps[i]->pool;
		struct sample *head = NULL, *tail = NULL;
		unsigned n = 0;

		/* One turn of the lock for a run of one pool's samples. */
		for (; i < cnt && smps[i]->pool == p; i++) {
			if (!drop_reference(smps[i]))
				continue;
			smps[i]->next_free = head;
			head = smps[i];
			if (!tail)
				tail = head;
			n++;
		}
		if (!n)
			continue;
		spin_lock(&p->lock);
		tail->next_free = p->free;
		p->free = head;
		p->available += n;
		spin_unlock(&p->lock);
	}
}

void sample_copy(struct sample *dst, const struct sample *src)
{
	sample_set_signals(dst, src->signals);
	dst->flags = src->flags;
	dst->received = src->received;
	dst->sequence = src->sequence;
	dst->origin = src->origin;
	dst->length = MIN(src->length, dst->capacity);
	memcpy(dst->data, src->data, dst->length * sizeof(dst->data[0]));
}
