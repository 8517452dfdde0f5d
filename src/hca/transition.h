/* SPDX-License-Identifier: BSD-2-Clause */
/* Which changes of a QP are allowed (qp_state.c). */
#ifndef HCA_TRANSITION_H
#define HCA_TRANSITION_H

#include <infiniband/verbs.h>

/* ---- qp_state.c ---- */
/* Without the attributes of the other half of an XRC connection: programs give
 * both halves the same, and the kernel's verbs do not look at them either. */
int hca_qp_mask(enum ibv_qp_type type, int mask);
/* 0 or -EINVAL: may a QP of `type` go cur -> next with attributes `mask`? */
int hca_qp_transition_check(enum ibv_qp_type type, enum ibv_qp_state cur,
			    enum ibv_qp_state next, int mask);
/* 0, -EINVAL, or -EOPNOTSUPP for what is allowed but not offered. */
int hca_qp_values_check(const struct ibv_qp_attr *a, int mask);

#endif
