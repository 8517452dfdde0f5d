/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Thread domains and parent domains (ibv_alloc_td(3),
 * ibv_alloc_parent_domain(3)).
 *
 * A parent domain is a protection domain with the id of the one that it is based on, so
 * regions and queues of both may be used together. It adds a thread domain and allocators for
 * the memory of queues.
 */
#define LOG_ROOM "hca"
#include <errno.h>
#include <stdlib.h>

#include "hca/memory/domain.h"
#include "hca/object/context.h"
#include "hca/object/live.h"
#include "util/cancel.h"
#include "util/container_of.h"
#include "util/log.h"

#define INIT_ATTR_KNOWN                            \
	(IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS | \
	 IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)

struct hca_domain {
	struct hca_pd *base;
	struct hca_td *td; /* NULL: none */
	/* Both or none. */
	void *(*alloc)(struct ibv_pd *pd, void *pd_context, size_t size,
		       size_t alignment, uint64_t resource_type);
	void (*free)(struct ibv_pd *pd, void *pd_context, void *ptr,
		     uint64_t resource_type);
	void *context;
};

static struct ibv_td *op_alloc_td(struct ibv_context *ibctx,
				  struct ibv_td_init_attr *attr)
{
	CANCEL_OFF;
	struct hca_td *td;

	if (!attr || attr->comp_mask) {
		errno = EINVAL;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv.context = ibctx;
	hca_context_get(hca_context(ibctx));
	hca_live_begin(&td->ibv, HCA_TD);
	return &td->ibv;
}

static int op_dealloc_td(struct ibv_td *ibtd)
{
	CANCEL_OFF;
	struct hca_td *td = hca_td(ibtd);

	if (!hca_live(ibtd, HCA_TD))
		return EINVAL;
	if (atomic_load(&td->users) > 0)
		return EBUSY;
	hca_live_end(ibtd, HCA_TD);
	hca_context_put(hca_context(ibtd->context));
	free(td);
	return 0;
}

static int check_parent(struct ibv_context *ibctx,
			const struct ibv_parent_domain_init_attr *a)
{
	if (!a || !hca_live(a->pd, HCA_PD) || a->pd->context != ibctx ||
	    (a->td && !hca_live(a->td, HCA_TD)) ||
	    (a->td && a->td->context != ibctx) ||
	    a->comp_mask & ~(uint32_t)INIT_ATTR_KNOWN)
		return -EINVAL;
	if ((a->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!a->alloc || !a->free))
		return -EINVAL;
	return 0;
}

static int parent_create(struct ibv_context *ibctx,
			 const struct ibv_parent_domain_init_attr *a,
			 struct ibv_pd **out)
{
	struct hca_domain *d;
	struct hca_pd *pd;
	int ret = check_parent(ibctx, a);

	if (ret)
		return ret;
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return -ENOMEM;
	d = pd->domain = calloc(1, sizeof(*d));
	if (!d) {
		free(pd);
		return -ENOMEM;
	}
	d->base = hca_pd(a->pd);
	d->td = a->td ? hca_td(a->td) : NULL;
	if (a->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		d->alloc = a->alloc;
		d->free = a->free;
	}
	if (a->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		d->context = a->pd_context;
	pd->ibv.context = ibctx;
	pd->ibv.handle = a->pd->handle;
	pd->id = d->base->id;
	hca_pd_get(d->base);
	if (d->td)
		atomic_fetch_add(&d->td->users, 1);
	hca_context_get(hca_context(ibctx));
	hca_live_begin(&pd->ibv, HCA_PD);
	*out = &pd->ibv;
	return 0;
}

static struct ibv_pd *
op_alloc_parent_domain(struct ibv_context *ibctx,
		       struct ibv_parent_domain_init_attr *attr)
{
	CANCEL_OFF;
	struct ibv_pd *pd;
	int ret = parent_create(ibctx, attr, &pd);

	if (ret) {
		errno = -ret;
		return NULL;
	}
	return pd;
}

void hca_pd_end_import(struct hca_pd *pd)
{
	hca_pd_put(pd->imported_from);
	hca_context_put(hca_context(pd->ibv.context));
	free(pd);
}

void hca_domain_release(struct hca_pd *pd)
{
	struct hca_domain *d = pd->domain;

	if (!d)
		return;
	hca_pd_put(d->base);
	if (d->td)
		atomic_fetch_sub(&d->td->users, 1);
	free(d);
}

bool hca_domain_single_threaded(const struct hca_pd *pd)
{
	return pd && pd->domain && pd->domain->td;
}

void hca_domain_ops_init(struct verbs_context *v)
{
	v->alloc_td = op_alloc_td;
	v->dealloc_td = op_dealloc_td;
	v->alloc_parent_domain = op_alloc_parent_domain;
}

/* By calloc(), so that pages of a large queue are allocated when they are used. */
static int heap_alloc(size_t size, struct hca_memory *out)
{
	void *base = calloc(1, size + CACHE_LINE - 1);

	if (!base)
		return -ENOMEM;
	*out = (struct hca_memory){
		.base = base,
		.at = (void *)(((uintptr_t)base + CACHE_LINE - 1) &
			       ~(uintptr_t)(CACHE_LINE - 1)),
	};
	return 0;
}

int hca_memory_alloc(struct hca_pd *pd, size_t size, enum hca_resource kind,
		     struct hca_memory *out)
{
	const struct hca_domain *d = pd ? pd->domain : NULL;
	void *at;

	if (!d || !d->alloc)
		return heap_alloc(size, out);
	at = d->alloc(&pd->ibv, d->context, size, CACHE_LINE, kind);
	if (at == IBV_ALLOCATOR_USE_DEFAULT)
		return heap_alloc(size, out);
	if (!at) {
		log_debug("the parent domain's allocator gave no %zu bytes for a queue",
			  size);
		return -ENOMEM;
	}
	*out = (struct hca_memory){ .at = at, .base = at, .from = pd };
	return 0;
}

void hca_memory_free(struct hca_memory *m, enum hca_resource kind)
{
	if (m->from)
		m->from->domain->free(&m->from->ibv, m->from->domain->context,
				      m->base, kind);
	else
		free(m->base);
	*m = (struct hca_memory){ 0 };
}
