/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The original functions of contexts, extended queue pairs and completion queues, which
 * the trace replaces by its own. The data path looks them up, therefore without a lock;
 * an entry is never freed, and is used again for the next object at its address.
 */
#include <pthread.h>
#include <stdlib.h>

#include "trace/calls.h"

#define BUCKETS 1024

static struct saved *_Atomic buckets[BUCKETS];
static const struct saved nothing;

static unsigned bucket_of(const void *key)
{
	return (unsigned)(((uintptr_t)key >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 54);
}

const struct saved *saved_find(const void *key)
{
	struct saved *s = atomic_load_explicit(&buckets[bucket_of(key)], memory_order_acquire);

	for (; s; s = s->next)
		if (s->key == key)
			return s;
	return &nothing;
}

struct saved *saved_make(const void *key)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct saved *_Atomic *bucket = &buckets[bucket_of(key)];
	struct saved *s;

	pthread_mutex_lock(&lock);
	s = (struct saved *)(uintptr_t)saved_find(key);
	if (s == &nothing) {
		s = calloc(1, sizeof(*s));
		if (s) {
			s->key = key;
			s->next = atomic_load(bucket);
			atomic_store_explicit(bucket, s, memory_order_release);
		}
	}
	pthread_mutex_unlock(&lock);
	return s;
}

/* The context has just been opened: no other thread uses it yet. */
void context_patch(struct ibv_context *context)
{
	struct verbs_context *verbs = verbs_get_ctx(context);
	struct saved *s = saved_make(context);

	if (!s)
		return;
	s->ops = context->ops;
	data_patch_ops(context);
	calls_patch_ops(context);
	if (!verbs)
		return;
	/* The table of an older library lacks members at its beginning. */
	size_t size = verbs->sz < sizeof(*verbs) ? verbs->sz : sizeof(*verbs);

	s->verbs = (struct verbs_context){ 0 };
	__builtin_memcpy((char *)&s->verbs + sizeof(s->verbs) - size,
			 (char *)verbs + sizeof(*verbs) - size, size);
	calls_patch_verbs(verbs);
}
