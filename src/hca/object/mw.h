/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows. */
#ifndef HCA_MW_H
#define HCA_MW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/mr.h"
#include "util/container_of.h"
#include "util/list.h"

struct hca_qp;

enum hca_mw_state {
	HCA_MW_FREE,     /* not bound */
	HCA_MW_BOUND,
	HCA_MW_ORPHAN,   /* type 2, and the QP that bound it was destroyed: only dealloc */
};

/* All members but `ibv` are protected by hca_key_lock. */
struct hca_mw {
	struct ibv_mw ibv;
	uint32_t index;    /* in the key table */
	uint32_t rkey;     /* the key that is published or was published last */
	enum hca_mw_state state;
	bool fencing;      /* `rkey` was withdrawn, peers may still copy with it */
	struct hca_mr *mr; /* whose `windows` counts this one, or NULL */
	struct hca_qp *qp; /* type 2: the QP that bound it, or NULL */
	struct list entry; /* in the list of all windows */
};

static inline struct hca_mw *hca_mw(struct ibv_mw *mw)
{
	return container_of(mw, struct hca_mw, ibv);
}


#endif
