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
	struct pool mws, xrcds, xrc_srqs;
	uint8_t *memory;
};

extern struct verbs_args v;

/* With anything above its 24 bits; never one of another process: that would be its
 * business, too. */
uint32_t any_qpn(void);

/* ---- verbs_args_build.c ---- */
/* Numbers all over. */
void any_words(void *to, size_t bytes);
uint32_t any_srqn(void);
struct ibv_mw_bind_info any_bind_info(void);
void call_build_send(void);
void call_window(void);
void call_xrc(void);
void call_create_xrc_qp(void);

/* ---- verbs_args_work.c ---- */
/* `readable`: by the program itself, for inline data. */
struct ibv_sge any_sge(bool readable);
void call_post_send(void);
void call_post_recv(void);
void call_poll_cq(void);
void call_start_poll(void);
void call_modify_cq(void);
void call_events(void);

#endif
