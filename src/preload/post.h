/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_post_send(), heard. */
#ifndef PRELOAD_POST_H
#define PRELOAD_POST_H

#include <infiniband/verbs.h>

int post_heard(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);

#endif
