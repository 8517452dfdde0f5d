/* SPDX-License-Identifier: BSD-2-Clause */
/* Permitted changes of the state and attributes of a QP (qp_state.c). */
#ifndef HCA_TRANSITION_H
#define HCA_TRANSITION_H

#include <infiniband/verbs.h>

/* ---- qp_state.c ---- */
/* `mask` without the attributes that `type` ignores: programs give the initiator and the target
 * of an XRC connection the same attributes, and each half uses its own, as in the kernel. */
int hca_qp_mask(enum ibv_qp_type type, int mask);
/* 0 or -EINVAL: may a QP of `type` go cur -> next with attributes `mask`? */
int hca_qp_transition_check(enum ibv_qp_type type, enum ibv_qp_state cur,
			    enum ibv_qp_state next, int mask);
/* The same for queue pairs of an RNIC: a connection manager brings them to RTS with the stream
 * (stream.c). 0, or -EINVAL. */
int hca_qp_rnic_check(enum ibv_qp_state cur, enum ibv_qp_state next, int mask);
struct hca_qp;
/* Publishes the access rights that peers are checked for (qp.c). */
void hca_qp_publish_access(struct hca_qp *qp);
/* Are the values of the attributes in `mask` valid? 0, -EINVAL, or -EOPNOTSUPP: valid, but not
 * supported by this adapter. */
int hca_qp_values_check(const struct ibv_qp_attr *a, int mask);

#endif
