/* SPDX-License-Identifier: BSD-2-Clause */
/* XRC domains and target queue pairs. */
#ifndef HCA_XRC_H
#define HCA_XRC_H

#include <infiniband/verbs.h>

struct hca_qp;

int hca_target_create(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr,
		      struct ibv_qp **out);

/* Destroys a handle of an XRC target QP, and with its last handle the QP. */
void hca_target_put(struct hca_qp *handle);

/* In a forked child: forget what the parent has opened. */
void hca_xrcd_forked(void);
void hca_xrc_targets_forked(void);

#endif
