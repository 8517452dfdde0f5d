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
	uint8_t *base;             /* start of the memory; ibv.addr is the program's address */
	struct hca_region *region; /* that the memory lies in, or NULL */
	struct hca_dm *dm;         /* device memory that is registered, or NULL */
	struct list remap_entry;   /* owned by remap.c, as is remap_plain */
	bool remap_plain;
	bool by_file;     /* made by ibv_reg_dmabuf_mr(); `region` is of this one alone */
	bool null;        /* made by ibv_alloc_null_mr() */
	bool imported;    /* made by ibv_import_mr(): a handle of another region */
	uint32_t windows; /* windows bound to it; under hca_key_lock */
};

static inline struct hca_mr *hca_mr(struct ibv_mr *mr)
{
	return container_of(mr, struct hca_mr, ibv);
}

#endif
