/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Promises: up to which message of the peer receiving is certain to succeed.
 *
 * A hardware adapter acknowledges a SEND when it is in the receiver's memory, whatever the
 * receiver's program does. Here the polls of the receiving program move messages. But when
 * a small message is in the ring of a process that runs, and its receive is posted, long
 * enough and in writable memory, receiving it cannot fail any more, and the sender need not
 * wait for the program. So the receiver's QP publishes in shared memory up to which
 * sequence number that is true, and the sender completes these messages at once.
 *
 * A promise can be withdrawn. A thread that takes receives away (an error, a reset, the
 * end of a memory region) first makes the word invalid and then processes the messages in
 * the rings. The sender reads the word after its message is visible, with a fence in
 * between. So either the sender finds the word invalid and waits for the acknowledgement,
 * or the receiver finds the message.
 *
 * A message is not both refused and promised. A thread that finds no receive for a message,
 * or a state in which messages are refused, checks this once more under the lock under
 * which promises are made, and marks the message there (hca_promise_pause). So either it
 * finds the receive for which the promise was made, or the sender, which reads the mark
 * after the promise, finds the mark.
 *
 * Only for RC QPs with a receive queue of their own: another QP may take a receive from a
 * shared queue.
 */
#include "hca/limits.h"
#include "hca/memory/promising.h"
#include "hca/object/qp.h"
#include "hca/object/rq.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "util/container_of.h"

#define WORD_VALID (UINT64_C(1) << 24)
#define BUCKETS 256u

/* Lower half: number of regions being withdrawn; upper half: number of withdrawals so far. A
 * receive that was examined during a withdrawal is not promised. */
static _Atomic uint64_t holds;
#define ONE_HOLD UINT64_C(1)
#define HOLDS_EVER (UINT64_C(1) << 32)
/* Number of QPs by the key of the receives that they promise (hashed), so that withdrawing a
 * region without promised receives costs nothing. */
static _Atomic uint32_t users[BUCKETS];

static inline _Atomic uint32_t *users_of(uint32_t key)
{
	return &users[key * 2654435761u >> 24];
}

static void set_key(struct hca_qp *qp, uint32_t key)
{
	struct hca_promising *p = &qp->promising;

	if (p->key == key)
		return;
	if (p->key)
		atomic_fetch_sub(users_of(p->key), 1);
	if (key)
		atomic_fetch_add(users_of(key), 1);
	p->key = key;
}

void hca_promise_init(struct hca_qp *qp, void (*close)(struct progress_timer *t))
{
	struct hca_promising *p = &qp->promising;

	progress_timer_init(&p->close, close);
	/* A program that polls may wait for the flushed receives. */
	p->close.by_pollers = true;
	p->word = &hca_process.segment
			   ->promises[qp->pub - hca_process.segment->qps];
	atomic_store(&p->word->word, 0);
	p->step = UINT32_MAX;
	if (qp->ibv.qp_type == IBV_QPT_RC && !qp->srq)
		p->step = MAX(qp->rq.limit / 8, 1u);
}

/* May the receive be promised? *room: the longest message for it. */
static bool certain(struct hca_qp *qp, const struct hca_rwqe *e, uint32_t *room)
{
	struct hca_promising *p = &qp->promising;
	uint64_t length = 0;

	for (unsigned i = 0; i < e->num_sge; i++) {
		const struct ibv_sge *s = &e->sge[i];

		if (!s->length)
			continue;
		if (!p->key)
			set_key(qp, s->lkey);
		if (s->lkey != p->key ||
		    !hca_sge_resolve(qp->recv_pd, s, IBV_ACCESS_LOCAL_WRITE))
			return false;
		length += s->length;
	}
	*room = (uint32_t)MIN((uint64_t)*room, length);
	return true;
}

static bool takes_messages(const struct hca_qp *qp)
{
	enum ibv_qp_state state = hca_qp_state(qp);

	return state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
	       state == IBV_QPS_SQD;
}

/* Publishes the promise up to `limit`. post_lock is held. */
static void publish(struct hca_promising *p, uint32_t limit)
{
	/* The limit never decreases, even if a message arrived during counting. */
	if (!(atomic_load_explicit(&p->word->word, memory_order_relaxed) &
	      WORD_VALID) ||
	    ((limit - p->limit) & HCA_PSN_MASK) <= HCA_PSN_MASK / 2)
		p->limit = limit;
	p->made = true;
	atomic_store_explicit(&p->word->word,
			      (uint64_t)p->room << 32 | WORD_VALID | p->limit,
			      memory_order_release);
}

void hca_promise_extend(struct hca_qp *qp)
{
	struct hca_promising *p = &qp->promising;
	struct hca_rq *rq = &qp->rq;
	uint32_t psn, tail, head, room, upto;
	uint64_t holds_before;

	hca_lock(&rq->post_lock);
	holds_before = atomic_load(&holds);
	/* Without a link the peer is not known. */
	if (p->ended || !takes_messages(qp) || !qp->rx_peer ||
	    holds_before % HOLDS_EVER)
		goto out;
	/* The PSN first: a message that arrives in between then makes the promise too
	 * small, never too large. */
	psn = atomic_load_explicit(&qp->rx_psn, memory_order_acquire);
	tail = atomic_load_explicit(&rq->tail, memory_order_acquire);
	head = atomic_load_explicit(&rq->head, memory_order_relaxed);
	/* No receive after one that cannot be promised can be promised. */
	if (p->stuck && (int32_t)(tail - p->upto) <= 0)
		goto out;
	p->stuck = false;
	if ((int32_t)(tail - p->upto) >= 0) {
		p->upto = tail;
		set_key(qp, 0);
		p->room = UINT32_MAX;
	}
	room = p->room;
	upto = p->upto;
	while (upto != head && certain(qp, hca_rq_entry(rq, upto), &room))
		upto++;
	/* Checked after the key was entered in `users`, which a withdrawal reads later. The
	 * upper half detects one that has begun and ended meanwhile: it may have missed the
	 * key, and certain() that the key was withdrawn. */
	if (atomic_load(&holds) != holds_before)
		goto out;
	p->stuck = upto != head;
	p->upto = upto;
	p->room = room;
	publish(p, (psn + (upto - tail)) & HCA_PSN_MASK);
out:
	hca_unlock(&rq->post_lock);
}

bool hca_promise_revoke(struct hca_qp *qp)
{
	struct hca_promising *p = &qp->promising;
	bool valid;

	if (!p->word) /* a handle of an XRC target */
		return false;
	hca_lock(&qp->rq.post_lock);
	valid = atomic_load_explicit(&p->word->word, memory_order_relaxed) &
		WORD_VALID;
	if (valid) {
		atomic_store(&p->word->word, 0);
		set_key(qp, 0);
		/* Receives that are posted now are not promised again. */
		p->upto = atomic_load(&qp->rq.head) - 1;
		p->stuck = true;
	}
	hca_unlock(&qp->rq.post_lock);
	/* Pairs with the fence of hca_promised(). */
	atomic_thread_fence(memory_order_seq_cst);
	return valid;
}

bool hca_promise_end(struct hca_qp *qp)
{
	hca_lock(&qp->rq.post_lock);
	qp->promising.ended = true;
	hca_unlock(&qp->rq.post_lock);
	return hca_promise_revoke(qp);
}

bool hca_promise_close(struct hca_qp *qp)
{
	struct hca_promising *p = &qp->promising;
	uint32_t psn;

	if (hca_promise_revoke(qp))
		return true;
	psn = atomic_load_explicit(&qp->rx_psn, memory_order_acquire);
	return p->made && ((p->limit - psn - 1) & HCA_PSN_MASK) <= HCA_PSN_MASK / 2;
}

void hca_promise_reset(struct hca_qp *qp)
{
	hca_promise_revoke(qp);
	qp->promising.stuck = false;
	qp->promising.ended = false;
	qp->promising.made = false;
	qp->promising.closing = false;
	qp->promising.upto = atomic_load(&qp->rq.tail);
	qp->promising.room = UINT32_MAX;
}

void hca_promise_pause(struct hca_qp *qp)
{
	hca_lock(&qp->rq.post_lock);
}

void hca_promise_resume(struct hca_qp *qp)
{
	hca_unlock(&qp->rq.post_lock);
}

bool hca_promise_kept(const struct hca_qp *qp, uint32_t psn)
{
	return qp->promising.closing && qp->promising.made &&
	       ((qp->promising.limit - psn - 1) & HCA_PSN_MASK) <= HCA_PSN_MASK / 2;
}

bool hca_promised(const struct hca_promise *promise, uint32_t psn, uint32_t length)
{
	uint64_t word = atomic_load_explicit(&promise->word, memory_order_acquire);
	uint32_t ahead = ((uint32_t)word - psn - 1) & HCA_PSN_MASK;

	return (word & WORD_VALID) && ahead <= HCA_PSN_MASK / 2 &&
	       length <= word >> 32;
}

struct revoking {
	uint32_t key;
	bool any;
};

static void revoke_if_by_key(struct hca_qp *qp, void *arg)
{
	struct revoking *r = arg;

	if (atomic_load(&qp->pub->qpn) && qp->promising.key == r->key)
		r->any |= hca_promise_revoke(qp);
}

static bool revoke_by_key(uint32_t key)
{
	struct revoking r = { .key = key };

	pthread_mutex_lock(&hca_process.lock);
	hca_qps_each(revoke_if_by_key, &r);
	pthread_mutex_unlock(&hca_process.lock);
	return r.any;
}

void hca_promise_hold(uint32_t key)
{
	atomic_fetch_add(&holds, HOLDS_EVER + ONE_HOLD);
	if (atomic_load(users_of(key)) && revoke_by_key(key))
		hca_take_in();
}

void hca_promise_release(void)
{
	atomic_fetch_sub(&holds, ONE_HOLD);
}
