/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of the fuzzer of ibv_* share. */
#ifndef FUZZ_VERBS_ARGS_H
#define FUZZ_VERBS_ARGS_H

#include <infiniband/verbs.h>

#include "api.h"

enum { MEMORY = 1 << 16 };

struct verbs_args {
	struct ibv_context *ctx;
	struct pool pds, tds, cqs, ex_cqs, channels, mrs, qps, srqs, ahs;
	uint8_t *memory;
};

extern struct verbs_args v;

/* Never one of another process: that would be its business, too. */
uint32_t any_qpn(void);

/* ---- verbs_args_work.c ---- */
void call_post_send(void);
void call_build_send(void);
void call_post_recv(void);
void call_poll_cq(void);
void call_start_poll(void);
void call_modify_cq(void);
void call_events(void);

#endif
