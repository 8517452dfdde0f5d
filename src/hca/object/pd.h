/* SPDX-License-Identifier: BSD-2-Clause */
/* Protection domains, thread domains, parent domains and the allocators of the latter. */
#ifndef HCA_PD_H
#define HCA_PD_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/importable.h"
#include "util/container_of.h"

struct hca_domain;

struct hca_pd {
	struct ibv_pd ibv;
	/* Never 0. Unique in the process, except that a parent domain has the id of its
	 * protection domain: keys of the one are valid for queues of the other. */
	uint32_t id;
	struct hca_domain *domain; /* of a parent domain, else NULL */
	struct hca_importable shared;
	/* The domain that ibv_import_pd() imported, or NULL: not an import. An import counts
	 * the program's handle as one of shared.users. */
	struct hca_pd *imported_from;
};

/* Thread domain: the program uses objects created on it from one thread at a time. */
struct hca_td {
	struct ibv_td ibv;
	atomic_int users; /* parent domains made with it */
};

/* Memory of a queue, and the allocator that it came from. */
struct hca_memory {
	void *at;
	void *base;          /* the address to free */
	struct hca_pd *from; /* parent domain whose allocator was used; NULL: the heap */
};

/* The resource types that the allocators of a parent domain are called with. */
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

static inline void hca_pd_get(struct hca_pd *pd)
{
	atomic_fetch_add(&pd->shared.users, 1);
}


#endif
