/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, thread domains, parent domains and their allocators. */
#ifndef HCA_PD_H
#define HCA_PD_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/importable.h"
#include "util/container_of.h"

struct hca_domain;

struct hca_pd {
	struct ibv_pd ibv;
	/* Never 0; unique in the process, but that a parent domain has that of
	 * its protection domain: keys and queues of both belong together. */
	uint32_t id;
	struct hca_domain *domain; /* of a parent domain, else NULL */
	struct hca_importable shared;
	/* ibv_import_pd(); the program, too, is then a user. NULL: not imported. */
	struct hca_pd *imported_from;
};

/* Thread domain: one thread at a time uses what is created on it. */
struct hca_td {
	struct ibv_td ibv;
	atomic_int users; /* parent domains */
};

/* Memory of a queue, and whose allocator gave it. */
struct hca_memory {
	void *at;
	void *base;          /* what is given back */
	struct hca_pd *from; /* NULL: the heap */
};

/* As the allocators of a parent domain are told. */
enum hca_resource {
	HCA_RESOURCE_SEND_QUEUE,
	HCA_RESOURCE_RECV_QUEUE,
	HCA_RESOURCE_SHARED_RECV_QUEUE,
	HCA_RESOURCE_COMPLETION_QUEUE,
};

static inline struct hca_pd *hca_pd(struct ibv_pd *pd)
{
	return container_of(pd, struct hca_pd, ibv);
}

static inline struct hca_td *hca_td(struct ibv_td *td)
{
	return container_of(td, struct hca_td, ibv);
}

/* The last user of an imported domain has gone, the program among them. */
void hca_pd_end_import(struct hca_pd *pd);

static inline void hca_pd_get(struct hca_pd *pd)
{
	atomic_fetch_add(&pd->shared.users, 1);
}

static inline void hca_pd_put(struct hca_pd *pd)
{
	if (atomic_fetch_sub(&pd->shared.users, 1) == 1 && unlikely(pd->imported_from))
		hca_pd_end_import(pd);
}

void hca_domain_ops_init(struct verbs_context *v);

/* What a parent domain holds; called when it is deallocated. */
void hca_domain_release(struct hca_pd *pd);

/* Is what is created on this one used by one thread at a time? */
bool hca_domain_single_threaded(const struct hca_pd *pd);

/* Zeroed memory on a cache line, by the domain's allocator if it has one. `pd`
 * may be NULL. 0 or -ENOMEM. */
int hca_memory_alloc(struct hca_pd *pd, size_t size, enum hca_resource kind,
		     struct hca_memory *out);
void hca_memory_free(struct hca_memory *m, enum hca_resource kind);

#endif
