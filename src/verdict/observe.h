/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * libbusbar-verdict.so writes down how a program handles errors of RDMA (facts.h). It is preloaded
 * (busbar exec --verdict) and has functions of libibverbs and librdmacm of the same names, which
 * call those of the program's libraries, busbar's or the system's. Uses the public interface alone.
 *
 * Before the first error a request costs a few stores, a completion some more and a look at the
 * coarse clock. Since counters are for a report, threads that use one queue pair at the same time
 * may lose a count of each other; nothing else depends on them.
 */
#ifndef VERDICT_OBSERVE_H
#define VERDICT_OBSERVE_H

#include <infiniband/verbs.h>

#include "verdict/facts.h"

#define VERDICT_EXPORT __attribute__((visibility("default")))

/* ---- record.c ---- */
/* The facts of this process; NULL: there are none (yet). */
extern struct verdict_facts *_Atomic verdict_facts_now;

static inline struct verdict_facts *verdict_facts(void)
{
	return atomic_load_explicit(&verdict_facts_now, memory_order_acquire);
}

/* Makes them, if need be. NULL: that is not possible, or not wanted. */
struct verdict_facts *verdict_facts_make(void);
uint64_t verdict_now_ns(void);
/* Some milliseconds behind, and cheap. */
uint64_t verdict_about_now_ns(void);

/* ---- qps.c ---- */
/* NULL: it is not followed. */
struct verdict_qp *verdict_qp_find(struct verdict_facts *f, const struct ibv_context *context,
				   uint32_t number);
static inline struct verdict_qp *verdict_qp_of(struct verdict_facts *f, const struct ibv_qp *qp)
{
	return verdict_qp_find(f, qp->context, qp->qp_num);
}

/* Requests that wait for a completion. */
static inline int64_t verdict_qp_open(const struct verdict_qp *q)
{
	return q->signaled > q->done ? (int64_t)(q->signaled - q->done) : 0;
}

void verdict_qp_made(struct ibv_qp *qp);
void verdict_qp_goes(struct ibv_qp *qp);
/* Asks to which queue pair it is connected, if that is not known. */
void verdict_qp_ask_peer(struct verdict_qp *q, struct ibv_qp *qp);
void verdict_qp_context_goes(const struct ibv_context *context);

/* ---- after.c: the first error, and what follows it ---- */
bool verdict_is_broken(const struct verdict_facts *f, const struct verdict_qp *q);
/* Writes an error down, unless it is not the first of its channel. `q` may be NULL. */
void verdict_note(struct verdict_facts *f, enum verdict_channel channel, struct verdict_qp *q,
		  const struct verdict_error *e);
void verdict_bad_completion(struct verdict_facts *f, struct verdict_qp *q, const struct ibv_cq *cq,
			    const struct ibv_wc *wc);
/* There was an error: a request is posted, a good completion was fetched. `open`: before it. */
void verdict_posted_after(struct verdict_facts *f, struct verdict_qp *q,
			  const struct verdict_request *r, int64_t open);
void verdict_completed_after(struct verdict_facts *f, struct verdict_qp *q, const struct ibv_cq *cq,
			     const struct ibv_wc *wc, int64_t open);
void verdict_reacted(struct verdict_facts *f, const struct verdict_qp *q,
		     enum verdict_reaction reaction);
/* The peer has ended the connection: flushes are no error. */
void verdict_peer_left(struct verdict_facts *f, struct verdict_qp *q);
/* Its requests no longer wait. */
void verdict_emptied(struct verdict_facts *f, struct verdict_qp *q);

/* ---- requests.c ---- */
/* The request with that wr_id, of those that wait; it is done, and all before it. NULL: it is not
 * known. */
const struct verdict_request *verdict_done(struct verdict_qp *q, uint64_t wr_id, bool good);

#endif
