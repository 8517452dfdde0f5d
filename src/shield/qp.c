/* SPDX-License-Identifier: BSD-2-Clause */
/* What the shield hears of queue pairs, and the shortest RNR wait; see shield.h. */
#include "shield/shield.h"

#include <stdlib.h>
#include <string.h>

#include "preload/data.h"
#include "preload/real.h"
#include "shield/touch.h"
#include "shield/watch.h"

SHIELD_EXPORT int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);

/* Code 0 is the longest wait, code 1 the shortest. */
#define SHORTEST_CODE 1

static void note_opcode(struct watched *w, enum ibv_wr_opcode opcode)
{
	int known = atomic_load_explicit(&w->opcode, memory_order_relaxed);

	if (known == IBV_WR_RDMA_WRITE)
		return;
	if (opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		atomic_store_explicit(&w->opcode, IBV_WR_RDMA_WRITE, memory_order_relaxed);
	else if (opcode == IBV_WR_RDMA_READ && known == IBV_WR_SEND)
		atomic_store_explicit(&w->opcode, IBV_WR_RDMA_READ, memory_order_relaxed);
}

/* Without probes. */
static void bring(struct ibv_qp *qp, const struct preload_request *r)
{
	shield_before_post(qp, r);
}

static void posting(struct ibv_qp *qp, const struct preload_request *r)
{
	struct watched *w = watch_find(qp->context, qp->qp_num);

	shield_before_post(qp, r);
	if (!w)
		return;
	note_opcode(w, r->opcode);
	if (r->signaled)
		watch_posting(w, r->wr_id);
}

static void refused(struct ibv_qp *qp, const struct preload_request *r, int error)
{
	struct watched *w = r->signaled ? watch_find(qp->context, qp->qp_num) : NULL;

	if (w)
		watch_refused(w);
}

static bool completion(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	bool failed = wc->status != IBV_WC_SUCCESS;
	struct watched *w = failed || !(wc->opcode & IBV_WC_RECV) ?
				    watch_find(cq->context, wc->qp_num) : NULL;

	if (probe_completes(w ? &w->in_queue : NULL, cq, wc->wr_id))
		return false;
	/* With an error nothing more is sent; flushes follow, some without a request. */
	if (w && failed)
		watch_finished(w);
	else if (w)
		watch_completion(w, wc->wr_id);
	return true;
}

static void asks(const struct ibv_qp_init_attr *attr, struct ibv_qp_cap *cap)
{
	if (attr->qp_type == IBV_QPT_RC)
		cap->max_send_wr += SHIELD_PROBES;
}

static uint32_t more_completions(uint32_t cqe)
{
	return SHIELD_COMPLETIONS;
}

/* mlx5 and mlx4 leave out all locks then. */
static bool is_one_thread(void)
{
	const char *five = getenv("MLX5_SINGLE_THREADED"), *four = getenv("MLX4_SINGLE_THREADED");

	return (five && !strcmp(five, "1")) || (four && !strcmp(four, "1"));
}

static void made(struct ibv_qp *qp, bool completes_all)
{
	if (preload_more_send_wr(qp) && preload_may_post(qp) && !is_one_thread())
		watch_add(qp, completes_all);
}

static void goes(struct ibv_qp *qp)
{
	struct watched *w = watch_find(qp->context, qp->qp_num);

	/* The destruction itself may wait for other threads of the program, so no lock is held in it. */
	if (w)
		watch_remove(w);
}

__attribute__((constructor)) static void at_load(void)
{
	static const struct preload_listener probing = {
		.posting = posting,
		.refused = refused,
		.completion = completion,
		.qp_asks = asks,
		.cq_asks = more_completions,
		.qp_made = made,
		.qp_goes = goes,
		.context_goes = touch_context_goes,
		.later = true,
	};
	static const struct preload_listener bringing = {
		.posting = bring,
		.context_goes = touch_context_goes,
		.later = true,
	};

	preload_listen(shield_parts() & SHIELD_PROBE ? &probing : &bringing);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int (*real)(struct ibv_qp *, struct ibv_qp_attr *, int) =
		real_find("ibv_modify_qp", "IBVERBS_1.1");
	struct watched *w = watch_find(qp->context, qp->qp_num);
	struct ibv_qp_attr shortest = *attr;
	int ret;

	if ((shield_parts() & SHIELD_RNR) && (mask & IBV_QP_MIN_RNR_TIMER) &&
	    attr->min_rnr_timer != SHORTEST_CODE) {
		shortest.min_rnr_timer = SHORTEST_CODE;
		atomic_fetch_add(&shield_counts.queue_pairs, 1);
	}
	ret = real(qp, &shortest, mask);
	if (!ret && w && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		watch_reset(w);
	return ret;
}
