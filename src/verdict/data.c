/* SPDX-License-Identifier: BSD-2-Clause */
/* What is posted and fetched; see observe.h. */
#include "preload/data.h"

#include <errno.h>
#include <pthread.h>

#include "preload/saved.h"
#include "verdict/observe.h"

#define RELAXED memory_order_relaxed

static void add(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, RELAXED) + n, RELAXED);
}

/* ---- requests ---- */

static void posting(struct ibv_qp *qp, const struct preload_request *r)
{
	struct verdict_facts *f = verdict_facts();
	struct verdict_qp *q = f ? verdict_qp_of(f, qp) : NULL;
	struct verdict_request *kept;
	uint64_t number;
	int64_t open;

	if (!q)
		return;
	open = f->since_ns ? verdict_qp_open(q) : 0;
	number = atomic_load_explicit(&q->posted, RELAXED) + 1;
	kept = &q->requests[number % VERDICT_REQUESTS];
	*kept = (struct verdict_request){ r->wr_id, r->remote_addr, r->bytes, r->opcode,
					  r->signaled };
	atomic_store_explicit(&q->posted, number, memory_order_release);
	if (r->signaled)
		atomic_store_explicit(&q->signaled, number, RELAXED);
	if (f->since_ns)
		verdict_posted_after(f, q, kept, open);
}

/* The last one was not posted. Where several were refused, the first comes first. */
static void take_back(struct verdict_qp *q)
{
	uint64_t number = q->posted;

	if (!number)
		return;
	q->posted = number - 1;
	while (q->signaled > number - 1 ||
	       (q->signaled > q->done && !q->requests[q->signaled % VERDICT_REQUESTS].signaled))
		q->signaled--;
}

/* A queue that is full is no error: programs try again. */
static void refused(struct ibv_qp *qp, const struct preload_request *r, int error)
{
	struct verdict_facts *f = verdict_facts();
	struct verdict_qp *q = f ? verdict_qp_of(f, qp) : NULL;

	if (!q)
		return;
	take_back(q);
	if (error != ENOMEM && error != EAGAIN)
		verdict_note(f, VERDICT_REFUSAL, q,
			     &(struct verdict_error){ .code = (uint32_t)error, .request_known = true,
						      .request = { r->wr_id, r->remote_addr,
								   r->bytes, r->opcode,
								   r->signaled } });
}

/* ---- completions ---- */

static bool completion(struct ibv_cq *cq, const struct ibv_wc *wc)
{
	struct verdict_facts *f = verdict_facts();
	struct verdict_qp *q = f ? verdict_qp_find(f, cq->context, wc->qp_num) : NULL;
	uint64_t now_ns;
	int64_t open;

	if (!f)
		return true;
	if (wc->status != IBV_WC_SUCCESS) {
		verdict_bad_completion(f, q, cq, wc);
		return true;
	}
	if (!q)
		return true;
	open = f->since_ns ? verdict_qp_open(q) : 0;
	if (wc->opcode & IBV_WC_RECV)
		add(&q->received, 1);
	else
		verdict_done(q, wc->wr_id, true);
	now_ns = verdict_about_now_ns();
	atomic_store_explicit(&q->good_ns, now_ns, RELAXED);
	atomic_store_explicit(&f->progress_ns, now_ns, RELAXED);
	if (f->since_ns)
		verdict_completed_after(f, q, cq, wc, open);
	return true;
}

/* ---- receives ---- */

/* The function that ours has replaced stands under the address of its place. */
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	const struct saved *below = saved_find(&qp->context->ops.post_recv);
	int ret = below->ops.post_recv(qp, wr, bad);
	const struct ibv_recv_wr *end = ret ? *bad : NULL;
	struct verdict_facts *f = verdict_facts();
	struct verdict_qp *q = f ? verdict_qp_of(f, qp) : NULL;

	for (; q && wr && wr != end; wr = wr->next)
		add(&q->receives, 1);
	return ret;
}

static void hear_receives(struct ibv_context *context)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct saved *s;

	if (context->ops.post_recv == post_recv)
		return;
	pthread_mutex_lock(&lock);
	s = context->ops.post_recv == post_recv ? NULL : saved_make(&context->ops.post_recv);
	if (s) {
		s->ops.post_recv = context->ops.post_recv;
		context->ops.post_recv = post_recv;
	}
	pthread_mutex_unlock(&lock);
}

static void made(struct ibv_qp *qp, bool completes_all)
{
	(void)completes_all;
	hear_receives(qp->context);
	verdict_qp_made(qp);
}

__attribute__((constructor)) static void at_load(void)
{
	static const struct preload_listener listener = {
		.posting = posting,
		.refused = refused,
		.completion = completion,
		.qp_made = made,
		.qp_goes = verdict_qp_goes,
	};

	preload_listen(&listener);
}
