/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains: references, and the memory that their allocators give. */
#ifndef HCA_DOMAIN_H
#define HCA_DOMAIN_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "hca/object/pd.h"
#include "util/container_of.h"

/* Frees an imported domain that has no user left. */
void hca_pd_end_import(struct hca_pd *pd);

static inline void hca_pd_put(struct hca_pd *pd)
{
	if (atomic_fetch_sub(&pd->shared.users, 1) == 1 && unlikely(pd->imported_from))
		hca_pd_end_import(pd);
}

void hca_domain_ops_init(struct verbs_context *v);

/* Drops the references of a parent domain that is being deallocated. */
void hca_domain_release(struct hca_pd *pd);

/* Is the domain a parent domain with a thread domain? */
bool hca_domain_single_threaded(const struct hca_pd *pd);

/* Allocates zeroed memory, aligned to a cache line, with the domain's allocator if it has
 * one, else from the heap. `pd` may be NULL. 0 or -ENOMEM. */
int hca_memory_alloc(struct hca_pd *pd, size_t size, enum hca_resource kind,
		     struct hca_memory *out);
void hca_memory_free(struct hca_memory *m, enum hca_resource kind);

#endif
