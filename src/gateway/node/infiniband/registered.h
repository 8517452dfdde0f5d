/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sample memory that an adapter may access: every block is registered with the
 * protection domain of one node.
 */
#ifndef GATEWAY_NODE_INFINIBAND_REGISTERED_H
#define GATEWAY_NODE_INFINIBAND_REGISTERED_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "gateway/base/memory.h"
#include "gateway/sample/sample.h"

struct ib_memory;

/* Registers blocks for one node; owns the memory types it hands out. */
struct ib_registrar {
	const char *name;            /* of the node, for messages */
	struct ibv_pd *pd;           /* set before the first block */
	struct ib_memory *types;     /* one for each parent */
};

/* The type that allocates with `parent` and registers; NULL on no memory. */
struct memory_type *ib_registrar_type(struct ib_registrar *r,
				      struct memory_type *parent);
/* All blocks must have been freed. */
void ib_registrar_destroy(struct ib_registrar *r);

/* The key of the pool that was looked up last: nearly always the same one. One
 * thread at a time looks up; several may forget at once. */
struct ib_keys {
	const struct ib_registrar *registrar;
	_Atomic(const struct pool *) pool;
	uint32_t lkey;
};

bool ib_keys_lookup(struct ib_keys *k, const struct sample *s);

static inline void ib_keys_forget(struct ib_keys *k)
{
	atomic_store_explicit(&k->pool, NULL, memory_order_relaxed);
}

/* Sets *lkey to the local key of the memory of `s`. False: not registered. */
static inline bool ib_keys_get(struct ib_keys *k, const struct sample *s,
			       uint32_t *lkey)
{
	const struct pool *last =
		atomic_load_explicit(&k->pool, memory_order_relaxed);

	if (unlikely(s->pool != last) && !ib_keys_lookup(k, s))
		return false;
	*lkey = k->lkey;
	return true;
}

#endif
