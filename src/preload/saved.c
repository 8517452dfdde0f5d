/* SPDX-License-Identifier: BSD-2-Clause */
/* The table of functions that were replaced; see saved.h. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "preload/saved.h"

#define BUCKETS 1024

static struct saved *_Atomic buckets[BUCKETS];
static const struct saved nothing;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Another thread of the parent may have had the lock. */
static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, forked);
}

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

bool saved_keep_context(struct ibv_context *context)
{
	struct verbs_context *verbs = verbs_get_ctx(context);
	struct saved *s = saved_make(context);

	if (!s)
		return false;
	s->ops = context->ops;
	s->verbs = (struct verbs_context){ 0 };
	if (!verbs)
		return true;
	/* The table of an older library lacks members at its beginning. */
	size_t size = verbs->sz < sizeof(*verbs) ? verbs->sz : sizeof(*verbs);

	__builtin_memcpy((char *)&s->verbs + sizeof(s->verbs) - size,
			 (char *)verbs + sizeof(*verbs) - size, size);
	return true;
}
