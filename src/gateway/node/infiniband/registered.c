/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory types that register blocks with a node's protection domain.
 *
 * A pool may serve several nodes, so the types stack, and one node may be asked
 * to wrap different parents for different pools: there is one type for each
 * parent, and a registration is found by its registrar, not by its type.
 */
#define LOG_ROOM "gateway/infiniband"

#include "gateway/node/infiniband/registered.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/log.h"

struct ib_memory {
	struct memory_type type;
	struct ib_memory *next;
};

static struct memory_block *ib_memory_alloc(struct memory_type *t, size_t size)
{
	struct ib_registrar *r = t->private_data;
	struct memory_block *b;
	int err;

	if (!r->pd) {
		log_error("%s: memory asked for before an adapter was opened", r->name);
		errno = EINVAL;
		return NULL;
	}
	b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->type = t;
	b->parent = memory_alloc(t->parent, size);
	if (b->parent) {
		b->addr = b->parent->addr;
		b->size_bytes = b->parent->size_bytes;
		b->private_data = ibv_reg_mr(r->pd, b->addr, b->size_bytes,
					     IBV_ACCESS_LOCAL_WRITE);
	}
	if (b->private_data)
		return b;
	err = errno;
	if (b->parent)
		log_error("%s: cannot register %zu KiB with adapter %s: %s%s",
			  r->name, b->size_bytes / 1024,
			  ibv_get_device_name(r->pd->context->device),
			  strerror(err),
			  err == ENOMEM || err == EPERM || err == EAGAIN ?
			  "; the limit of locked memory (ulimit -l) may be too low" :
			  "");
	memory_free(b->parent);
	free(b);
	errno = err;
	return NULL;
}

static void ib_memory_free(struct memory_type *t, struct memory_block *b)
{
	struct ib_registrar *r = t->private_data;
	int err = ibv_dereg_mr(b->private_data);

	if (err)
		log_warn("%s: cannot take back the registration of %zu KiB: %s",
			 r->name, b->size_bytes / 1024, strerror(err));
	memory_free(b->parent);
	free(b);
}

struct memory_type *ib_registrar_type(struct ib_registrar *r,
				      struct memory_type *parent)
{
	struct ib_memory *m;

	/* The node may be source and destination of the same path. */
	for (struct memory_type *t = parent; t; t = t->parent)
		if (t->private_data == r)
			return parent;
	for (m = r->types; m; m = m->next)
		if (m->type.parent == parent)
			return &m->type;
	m = calloc(1, sizeof(*m));
	if (!m)
		return NULL;
	m->type = (struct memory_type){
		.name = "infiniband",
		.parent = parent,
		.alignment = parent->alignment,
		.alloc = ib_memory_alloc,
		.free = ib_memory_free,
		.private_data = r,
	};
	m->next = r->types;
	r->types = m;
	return &m->type;
}

void ib_registrar_destroy(struct ib_registrar *r)
{
	struct ib_memory *m;

	while ((m = r->types)) {
		r->types = m->next;
		free(m);
	}
}

bool ib_keys_lookup(struct ib_keys *k, const struct sample *s)
{
	const struct memory_block *b = s->pool->block;
	const struct ibv_mr *mr;

	while (b && b->type->private_data != k->registrar)
		b = b->parent;
	if (!b)
		return false;
	mr = b->private_data;
	atomic_store_explicit(&k->pool, s->pool, memory_order_relaxed);
	k->lkey = mr->lkey;
	return true;
}
