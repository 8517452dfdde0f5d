/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_poll_cq(), ibv_start_poll() and ibv_next_poll(), heard. */
#ifndef PRELOAD_POLL_H
#define PRELOAD_POLL_H

#include <infiniband/verbs.h>

int poll_heard(struct ibv_cq *cq, int entries, struct ibv_wc *wc);
/* Replaces the functions of an extended completion queue, which has just been made. */
void poll_hear(struct ibv_cq_ex *cq);

#endif
