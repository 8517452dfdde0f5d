/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory windows: the local operations BIND_MW and LOCAL_INV, and their end. */
#ifndef HCA_WINDOW_H
#define HCA_WINDOW_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/mw.h"

struct hca_qp;
struct hca_swqe;

#define HCA_WINDOW_RIGHTS                                   \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
	 IBV_ACCESS_REMOTE_ATOMIC)
/* Flags that are accepted. Local write and the optional ones have no effect on a window;
 * programs pass them because they use the flags of the region. */
#define HCA_WINDOW_ACCESS                                             \
	((unsigned)(HCA_WINDOW_RIGHTS | IBV_ACCESS_ZERO_BASED |       \
		    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_OPTIONAL_RANGE))

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
