/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory: ibv_alloc_dm(3). */
#ifndef HCA_DM_H
#define HCA_DM_H

#include <stdint.h>
#include <infiniband/verbs.h>

#include "hca/memory/importable.h"
#include "hca/memory/region.h"
#include "util/container_of.h"

struct hca_dm {
	struct ibv_dm ibv;
	struct hca_region *region;
	uint64_t length; /* as requested */
	struct hca_dm *imported_from; /* that ibv_import_dm() imported, or NULL */
	struct hca_importable shared; /* users: MRs registered on it, and imports */
};

static inline struct hca_dm *hca_dm(struct ibv_dm *dm)
{
	return container_of(dm, struct hca_dm, ibv);
}

/* mr.c: makes a zero-based MR of bytes [offset, offset + length) of `region`. 0 or a negative
 * errno. */
int hca_mr_register_region(struct ibv_pd *pd, struct hca_region *region,
			   uint64_t offset, size_t length, unsigned access,
			   struct ibv_mr **out);
/* Enters the verbs of device memory in a context's table. */
void hca_dm_ops_init(struct verbs_context *v);

#endif
