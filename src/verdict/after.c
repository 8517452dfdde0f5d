/* SPDX-License-Identifier: BSD-2-Clause */
/* The first error, and what the program does after it; see observe.h. */
#include <pthread.h>
#include <string.h>

#include "verdict/observe.h"

/* Only one thread writes the first error of a channel. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The call that fetched the first bad completion, as far as it is known: completions of one call
 * follow each other in memory. */
static _Thread_local struct {
	const struct ibv_cq *cq;
	const struct ibv_wc *last;
} call;

static bool is_with_error(const struct verdict_facts *f, const struct verdict_qp *q)
{
	return q && q->number == f->broken && q->context == f->broken_context;
}

bool verdict_is_broken(const struct verdict_facts *f, const struct verdict_qp *q)
{
	/* One that began anew is not. */
	return is_with_error(f, q) && q->life_ns <= f->since_ns;
}

/* ---- the first error ---- */

/* What others had to do when it came. */
static void count_others(struct verdict_facts *f, struct verdict_error *e, uint64_t now_ns)
{
	int64_t open = 0;

	for (unsigned i = 0; i < VERDICT_QPS; i++) {
		const struct verdict_qp *q = &f->qps[i];

		if (!q->number || q->gone_ns || is_with_error(f, q))
			continue;
		e->others++;
		open += verdict_qp_open(q);
	}
	f->others_open = open;
	f->others_last_ns = now_ns;
}

void verdict_note(struct verdict_facts *f, enum verdict_channel channel, struct verdict_qp *q,
		  const struct verdict_error *e)
{
	struct verdict_error *to = &f->errors[channel];
	uint64_t now_ns;

	if (to->at_ns)
		return;
	pthread_mutex_lock(&lock);
	if (!to->at_ns) {
		now_ns = verdict_now_ns();
		memcpy(to, e, sizeof(*to));
		to->qp = q ? (uint32_t)q->number : to->qp;
		to->good_ns = q ? (uint64_t)q->good_ns : 0;
		/* The coarse clock may show a time before that. */
		if (to->good_ns && to->good_ns < q->life_ns)
			to->good_ns = q->life_ns;
		if (!f->since_ns) {
			f->broken = to->qp;
			f->broken_context = q ? q->context : 0;
			count_others(f, to, now_ns);
			f->since_ns = now_ns;
		} else if (!f->broken && q) {
			/* An event of no queue pair came first. */
			f->broken = q->number;
			f->broken_context = q->context;
		}
		to->at_ns = now_ns;
	}
	pthread_mutex_unlock(&lock);
}

/* True: the completion came with the first bad one, by the same call. */
static bool is_behind(const struct ibv_cq *cq, const struct ibv_wc *wc)
{
	bool same = call.cq == cq && call.last && wc == call.last + 1;

	call.last = same ? wc : NULL;
	return same;
}

/* Of a completion with an error the opcode is not defined. */
static bool is_of_receive(const struct verdict_qp *q, const struct ibv_cq *cq,
			  const struct verdict_request *r)
{
	return q && !r && q->receive_cq == (uintptr_t)cq &&
	       (q->send_cq != (uintptr_t)cq || !verdict_qp_open(q));
}

static void note_completion(struct verdict_facts *f, struct verdict_qp *q, const struct ibv_cq *cq,
			    const struct ibv_wc *wc, const struct verdict_request *r)
{
	struct verdict_error e = {
		.code = wc->status,
		.vendor = wc->vendor_err,
		.qp = wc->qp_num,
		.request_known = r != NULL,
		.receive = is_of_receive(q, cq, r),
	};
	enum verdict_channel channel =
		wc->status == IBV_WC_WR_FLUSH_ERR ? VERDICT_FLUSH : VERDICT_COMPLETION;
	bool first = !f->errors[channel].at_ns;

	if (r)
		e.request = *r;
	e.request.wr_id = wc->wr_id;
	verdict_note(f, channel, q, &e);
	if (first && channel == VERDICT_COMPLETION) {
		call.cq = cq;
		call.last = wc;
	}
}

void verdict_bad_completion(struct verdict_facts *f, struct verdict_qp *q, const struct ibv_cq *cq,
			    const struct ibv_wc *wc)
{
	bool flush = wc->status == IBV_WC_WR_FLUSH_ERR, behind = is_behind(cq, wc);
	int64_t open = q && f->since_ns ? verdict_qp_open(q) : 0;
	const struct verdict_request *r =
		q && q->send_cq == (uintptr_t)cq ? verdict_done(q, wc->wr_id, false) : NULL;

	if (behind) {
		atomic_fetch_add(&f->behind, 1);
		atomic_fetch_add(&f->flushes_behind, flush);
	}
	if (is_of_receive(q, cq, r))
		atomic_fetch_add(&q->received, 1);
	if (f->since_ns && q && !verdict_is_broken(f, q))
		atomic_fetch_add(&f->others_open, verdict_qp_open(q) - open);
	if (flush && q && q->ended_ns) {
		atomic_fetch_add(&f->flushes, 1);
		return;
	}
	if (flush && f->since_ns && is_with_error(f, q))
		atomic_fetch_add(&f->flushes_broken, 1);
	note_completion(f, q, cq, wc, r);
}

/* ---- after it ---- */

static bool same_request(const struct verdict_request *a, const struct verdict_request *b)
{
	return a->opcode == b->opcode && a->remote_addr == b->remote_addr && a->bytes == b->bytes;
}

void verdict_posted_after(struct verdict_facts *f, struct verdict_qp *q,
			  const struct verdict_request *r, int64_t open)
{
	const struct verdict_error *e = &f->errors[VERDICT_COMPLETION];

	if (verdict_is_broken(f, q)) {
		atomic_fetch_add(&f->posts_broken, 1);
		return;
	}
	if (q->life_ns <= f->since_ns) {
		if (f->others_open <= 0)
			f->others_last_ns = verdict_now_ns();
		atomic_fetch_add(&f->others_open, verdict_qp_open(q) - open);
	}
	if (e->at_ns && e->request_known && same_request(r, &e->request) &&
	    !atomic_fetch_add(&f->repeats, 1)) {
		f->repeat_qp = q->number;
		f->repeat_ns = verdict_now_ns();
	}
}

static void completed_other(struct verdict_facts *f, struct verdict_qp *q, int64_t open,
			    uint64_t now_ns)
{
	uint64_t last_ns = f->others_last_ns;

	if (f->others_open > 0 && now_ns > last_ns && now_ns - last_ns > f->others_gap_ns)
		f->others_gap_ns = now_ns - last_ns;
	f->others_last_ns = now_ns;
	atomic_fetch_add(&f->others_open, verdict_qp_open(q) - open);
	atomic_fetch_add(&f->others_good, 1);
}

void verdict_completed_after(struct verdict_facts *f, struct verdict_qp *q, const struct ibv_cq *cq,
			     const struct ibv_wc *wc, int64_t open)
{
	uint64_t now_ns = verdict_now_ns();

	if (call.last && is_behind(cq, wc))
		atomic_fetch_add(&f->behind, 1);
	if (verdict_is_broken(f, q))
		return;
	f->others_after_ns = now_ns;
	if (q->life_ns <= f->since_ns)
		completed_other(f, q, open, now_ns);
	else if (!atomic_fetch_add(&f->flowed, 1))
		f->flowed_ns = now_ns;
}

void verdict_reacted(struct verdict_facts *f, const struct verdict_qp *q,
		     enum verdict_reaction reaction)
{
	if (!f->since_ns || f->reaction || !is_with_error(f, q))
		return;
	f->reacted_ns = verdict_now_ns();
	f->reaction = reaction;
}

void verdict_emptied(struct verdict_facts *f, struct verdict_qp *q)
{
	int64_t open = verdict_qp_open(q);

	q->done = q->posted;
	q->signaled = 0;
	if (f->since_ns && !is_with_error(f, q) && q->life_ns <= f->since_ns)
		atomic_fetch_sub(&f->others_open, open);
}

/* Only a flush was known, and now its reason: there was no error. */
static void take_back_flush(struct verdict_facts *f, const struct verdict_qp *q)
{
	struct verdict_error *flush = &f->errors[VERDICT_FLUSH];

	for (unsigned i = 0; i < VERDICT_CHANNELS; i++)
		if (i != VERDICT_FLUSH && f->errors[i].at_ns)
			return;
	if (!flush->at_ns || !is_with_error(f, q))
		return;
	f->since_ns = 0;
	flush->at_ns = 0;
	f->broken = 0;
	f->reaction = VERDICT_NO_REACTION;
	f->posts_broken = f->flushes_broken = f->others_good = f->others_gap_ns = 0;
	f->flowed = f->others_after_ns = 0;
}

void verdict_peer_left(struct verdict_facts *f, struct verdict_qp *q)
{
	uint64_t now_ns = verdict_now_ns();

	if (!f->peer_left_ns)
		f->peer_left_ns = now_ns;
	if (!q)
		return;
	q->ended_ns = now_ns;
	pthread_mutex_lock(&lock);
	take_back_flush(f, q);
	pthread_mutex_unlock(&lock);
}

static void forked(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void at_load(void)
{
	pthread_atfork(NULL, NULL, forked);
}
