/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory regions. */
#ifndef HCA_MR_H
#define HCA_MR_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/container_of.h"
#include "util/list.h"

struct hca_dm;
struct hca_region;

struct hca_mr {
	struct ibv_mr ibv;
	uint32_t index; /* in the key table */
	uint32_t access;
	uint64_t iova;
	uint8_t *base;             /* of the memory; ibv.addr is the program's */
	struct hca_region *region; /* that the memory lies in, NULL: none */
	struct hca_dm *dm;         /* that was registered, NULL: none */
	struct list remap_entry;   /* of remap.c */
	bool remap_plain;
	bool null;        /* by ibv_alloc_null_mr */
	bool imported;    /* another name of a region, without memory of its own */
	uint32_t windows; /* bound to it; under the key table's lock */
};

static inline struct hca_mr *hca_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct hca_mr, ibv);
}

#endif
