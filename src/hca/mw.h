/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows, and the local operations that bind and invalidate. */
#ifndef HCA_MW_H
#define HCA_MW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/mr.h"
#include "util/container_of.h"
#include "util/list.h"

struct hca_qp;
struct hca_swqe;

enum hca_mw_state {
	HCA_MW_FREE,     /* not bound */
	HCA_MW_BOUND,
	HCA_MW_ORPHAN,   /* type 2, and its QP was destroyed: of no use */
};

/* All but `ibv` under the key table's lock. */
struct hca_mw {
	struct ibv_mw ibv;
	uint32_t index;    /* in the key table */
	uint32_t rkey;     /* published now or last */
	enum hca_mw_state state;
	bool fencing;      /* `rkey` was withdrawn, a peer may still copy with it */
	struct hca_mr *mr; /* that counts this window, or NULL */
	struct hca_qp *qp; /* type 2: that bound it, or NULL */
	struct list entry; /* of all windows */
};

static inline struct hca_mw *hca_mw(struct ibv_mw *mw)
{
	return container_of(mw, struct hca_mw, ibv);
}

/* Carries out the local operation `e`. 0, -EAGAIN (a peer still copies with the
 * key: again in a while, never if `waited` long enough) or -EINVAL. sq_lock is
 * held. */
int hca_local_run(struct hca_qp *qp, struct hca_swqe *e, bool waited);

/* A SEND with invalidate came for `qp`: 0, or -EINVAL when it names no window
 * that is bound to the QP. */
int hca_key_invalidate(struct hca_qp *qp, uint32_t rkey);

/* The part of a BIND_MW entry that is its own. */
void hca_mw_fill_bind(struct hca_swqe *e, struct ibv_mw *mw, uint32_t rkey,
		      const struct ibv_mw_bind_info *info);

/* The QP is being destroyed: its windows are of no use any more. */
void hca_mw_qp_gone(struct hca_qp *qp);

#endif
