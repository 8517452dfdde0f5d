/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows, and the local operations BIND_MW and LOCAL_INV. */
#ifndef HCA_MW_H
#define HCA_MW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/memory/mr.h"
#include "util/container_of.h"
#include "util/list.h"

struct hca_qp;
struct hca_swqe;

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

/* Executes the local operation `e` (BIND_MW or LOCAL_INV). 0; -EINVAL; or -EAGAIN: a peer
 * still copies with the old key, call again later. With `waited` the caller has waited for
 * these copies, and -EAGAIN is not returned. sq_lock is held. */
int hca_local_run(struct hca_qp *qp, struct hca_swqe *e, bool waited);

/* Invalidates the window that a SEND with invalidate to `qp` names. 0, or -EINVAL: `rkey`
 * is not the key of a window of type 2 that is bound to the QP. */
int hca_key_invalidate(struct hca_qp *qp, uint32_t rkey);

/* Fills in the members of `e` that only BIND_MW uses. */
void hca_mw_fill_bind(struct hca_swqe *e, struct ibv_mw *mw, uint32_t rkey,
		      const struct ibv_mw_bind_info *info);

/* The QP is being destroyed: withdraws the keys of its windows (HCA_MW_ORPHAN). */
void hca_mw_qp_gone(struct hca_qp *qp);

#endif
