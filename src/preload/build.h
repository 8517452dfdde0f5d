/* SPDX-License-Identifier: BSD-2-Clause */
/* ibv_wr_*(), heard. */
#ifndef PRELOAD_BUILD_H
#define PRELOAD_BUILD_H

#include <infiniband/verbs.h>

/* Replaces the functions of an extended queue pair, which has just been made and has a record. */
void build_hear(struct ibv_qp_ex *qp);

#endif
