/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections between queue pairs of this process that are no sides' (pair.h). */
#ifndef ADAPTER_JOIN_H
#define ADAPTER_JOIN_H

#include <infiniband/verbs.h>

/* From RESET to RTS, without remote rights. An RNIC needs two queue pairs; on others `a` and `b` may
 * be the same one. */
void join(struct ibv_qp *a, struct ibv_qp *b);

#endif
