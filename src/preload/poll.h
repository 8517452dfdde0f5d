/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_poll_cq(), ibv_start_poll(), ibv_next_poll() and ibv_req_notify_cq(), heard. */
#ifndef PRELOAD_POLL_H
#define PRELOAD_POLL_H

#include <infiniband/verbs.h>

int poll_heard(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
int poll_notify_heard(struct ibv_cq *cq, int solicited_only);
/* Replaces the functions of an extended completion queue, which are kept. */
void poll_hear(struct ibv_cq_ex *cq);

#endif
