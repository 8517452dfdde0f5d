/* SPDX-License-Identifier: BSD-2-Clause */
/* How completion queues are made. */
#ifndef PRELOAD_CQ_H
#define PRELOAD_CQ_H

#include <infiniband/verbs.h>

/* In the place of the context's function. */
struct ibv_cq_ex *cq_create_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);

#endif
