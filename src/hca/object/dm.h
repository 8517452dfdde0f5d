/* SPDX-License-Identifier: BSD-2-Clause */
/* Device memory: ibv_alloc_dm(3). */
#ifndef HCA_DM_H
#define HCA_DM_H

#include <stdint.h>
#include <infiniband/verbs.h>

#include "hca/object/importable.h"
#include "util/container_of.h"

struct hca_region;

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


#endif
