/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What random.c and the model have done in the processes of the sides: many
 * queue pairs, their areas of memory, completion queues, all as model.h says.
 */
#ifndef ADAPTER_ACT_H
#define ADAPTER_ACT_H

#include "model.h"

/* Everything, on a side that is open; the numbers of the queue pairs. */
void act_open(struct side *s, uint32_t qpn[PAIRS]);
void act_close(struct side *s);

/* ---- memory ---- */
void act_pattern(uint8_t *bytes, uint64_t length, uint64_t seed);
uint64_t act_hash_of(const uint8_t *bytes, uint64_t length);
uint64_t act_hash(struct side *s, uint64_t offset, uint64_t length);
void act_fill(struct side *s, uint64_t offset, uint64_t length, uint64_t seed);
void act_read(struct side *s, uint64_t offset, void *to, uint32_t length);

enum act_mr { MR_LOCAL, MR_REMOTE, MR_SHARED, MR_KINDS };
/* A region of pair `q` (MR_SHARED: pair 0), instead of the one that it has. */
struct region act_register(struct side *s, int q, enum act_mr which,
			   uint64_t offset, uint64_t length, uint64_t iova,
			   int access);
/* By ibv_rereg_mr(); `flags` IBV_REREG_MR_CHANGE_*; another PD there and back. */
struct region act_reregister(struct side *s, int q, enum act_mr which, int flags,
			     int access);

/* ---- queue pairs ---- */
struct act_address {
	uint32_t qpn, psn_send, psn_receive;
	union ibv_gid gid;
	uint8_t timeout, retry_cnt, rnr_retry;
};
/* RESET to RTS. */
void act_connect(struct side *s, int q, const struct act_address *to);
int act_state(struct side *s, int q, enum ibv_qp_state state);
enum ibv_qp_state act_query(struct side *s, int q);
int act_access(struct side *s, int q, int flags);
/* Destroys and creates it: its new number. */
uint32_t act_recreate(struct side *s, int q);
int act_drain(struct side *s, int q); /* to SQD, with its event */

int act_send(struct side *s, int q, const struct send_req *r, bool build);
int act_recv(struct side *s, int q, const struct recv_req *r);
int act_srq_limit(struct side *s, uint32_t limit);

/* ---- completions ---- */
int act_poll(struct side *s, int cq, struct ibv_wc *wc, int most);
int act_resize(struct side *s, int cq, int cqe);
int act_arm(struct side *s, int cq, bool solicited_only);
int act_event(struct side *s, int timeout_ms); /* which CQ, -1: none */

/* An asynchronous event: its type and the pair of its queue pair (-1: none). */
int act_async(struct side *s, int timeout_ms, int *q);

#endif
