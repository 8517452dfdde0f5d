/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The acknowledgement side of a link: how far the peer has received, and the
 * completion or repetition of the entries that were sent.
 *
 * Acknowledgements come in two ways: piggybacked on the peer's messages, and in struct
 * shm_ack, which the peer writes. shm_harvest() processes both; ack_lock is held.
 */
#define LOG_ROOM "shm"
#include <string.h>

#include "hca/memory/promising.h"
#include "hca/object/opcode.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/complete.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "transport/shm/link/backlog.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/link/wake.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/move/send.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"
#include "util/log.h"

/* About 50 us, in which a polling thread yields once or twice (cq.c): a peer on the same
 * processor has run by then. */
#define IDLE_POLLS_TO_KICK 2048
#define IDLE_POLLS_TO_KICK_TARGET (SHM_IDLE_POLLS_WHEN_CARRIED + 8)
#define SLOTS_TO_HARVEST (SHM_SLOTS / 4)

/*
 * A program that posts unsignaled work need not poll for thousands of messages.
 * The ring must not fill up meanwhile, which would leave the rest to the progress
 * thread.
 */
void shm_posted(struct hca_qp *qp)
{
	struct shm_link *l = atomic_load_explicit(&shm_qp(qp)->link, memory_order_acquire);

	if (likely(!l || atomic_load_explicit(&l->tx_pos, memory_order_relaxed) -
					 atomic_load_explicit(
						 &l->harvested,
						 memory_order_relaxed) <
				 SLOTS_TO_HARVEST))
		return;
	if (hca_trylock(&l->ack_lock)) {
		shm_harvest(l, true);
		hca_unlock(&l->ack_lock);
	}
}

static void refused(struct hca_qp *qp, const struct hca_swqe *e, enum ibv_wc_status status)
{
	/* The process of the SRQ refused; the target QP may be in another one. */
	if (qp->ibv.qp_type == IBV_QPT_XRC_SEND)
		shm_xrc_refused(qp, e, status);
	shm_complete(qp, status);
}

/* Carries out the status that the receiver gave one slot; the QP's sq_lock is held. */
static __attribute__((noinline)) void
settle(struct hca_qp *qp, const struct shm_inflight *f, uint64_t result,
       enum shm_status status, uint8_t timer)
{
	const struct hca_swqe *e = hca_sq_entry(&qp->sq, f->index);

	switch (status) {
	case SHM_OK:
		if (f->kind & SHM_PART)
			return;
		shm_qp(qp)->rnr_tries = 0;
		shm_complete(qp, unlikely(hca_op_is_atomic(e->opcode)) ?
					    shm_atomic_result(qp, e, result) :
					    IBV_WC_SUCCESS);
		break;
	case SHM_RNR:
		shm_retry_rnr(qp, timer);
		break;
	case SHM_DROPPED:
		shm_retry_lost(qp);
		break;
	case SHM_INVALID:
		refused(qp, e, IBV_WC_REM_INV_REQ_ERR);
		break;
	case SHM_REMOTE_ACCESS:
		refused(qp, e, IBV_WC_REM_ACCESS_ERR);
		break;
	case SHM_NO_PULL: /* the peer has cleared shm_ack.pulls, too: sent again */
		shm_go_back(qp);
		break;
	case SHM_LOCAL_FAULT:
		shm_complete(qp, IBV_WC_LOC_PROT_ERR);
		break;
	default:
		refused(qp, e, IBV_WC_REM_OP_ERR);
		break;
	}
	if (qp->sq.next != qp->sq.head)
		hca_sq_run(qp);
}

/* Position of an acknowledgement word; false when it is not in [from, limit]: it is
 * older than an acknowledgement that came by the other way, or not valid. */
static inline bool ack_pos(uint32_t word, uint32_t from, uint32_t limit, uint32_t *pos)
{
	uint32_t ahead = (word - from) & SHM_ACK_POS_MASK;

	*pos = from + ahead;
	return ahead <= limit - from;
}

/*
 * True if a piggybacked acknowledgement is new. Each word is used once only: if the
 * peer sends no further messages its last word stays, and 2^SHM_ACK_POS_BITS slots
 * later it would be taken for a new one. A word may be ahead of `limit` for a
 * moment, as a slot is visible before it is counted; it is then checked again later.
 */
static inline bool carried_news(struct shm_link *l, uint32_t from,
				uint32_t limit, uint32_t *word, uint32_t *pos)
{
	bool good;

	*word = atomic_load_explicit(&l->acked_hint, memory_order_acquire);
	if (*word == l->hint_seen)
		return false;
	good = ack_pos(*word, from, limit, pos);
	if (good || ((from - *word) & SHM_ACK_POS_MASK) <= SHM_ACK_POS_MASK / 2)
		l->hint_seen = *word;
	return good && *pos != from;
}

/* The position up to which the peer has acknowledged; `from`: nothing new. *marks: it
 * marked slots since the last time. ack_lock is held. */
static uint32_t acknowledged(struct shm_link *l, uint32_t from, uint32_t limit,
			     bool look, bool *marks)
{
	uint32_t word, pos;

	*marks = false;
	if (carried_news(l, from, limit, &word, &pos)) {
		l->carried = true;
	} else if (look) {
		word = atomic_load_explicit(&l->tx->ack.word, memory_order_acquire);
		if (!ack_pos(word, from, limit, &pos) || pos == from)
			return from;
		l->carried = false;
	} else {
		return from;
	}
	word >>= SHM_ACK_POS_BITS;
	*marks = word != l->marks_seen;
	l->marks_seen = word;
	return pos;
}

static void wake_idle_peer(struct shm_link *l)
{
	/* If the peer's application has stopped polling, its progress thread takes over
	 * at its next tick only; waking it is sooner. A target that carries out
	 * operations for us may not poll at all, so it is woken earlier. */
	if (likely((!l->idle_polls || l->idle_polls % IDLE_POLLS_TO_KICK) &&
		   (l->idle_polls != IDLE_POLLS_TO_KICK_TARGET ||
		    atomic_load_explicit(&l->path, memory_order_relaxed) !=
			    SHM_PATH_TARGET)))
		return;
	shm_wake(l);
}

bool shm_harvest(struct shm_link *l, bool look)
{
	uint32_t pos, end, limit;
	bool moved, marks;

	if (atomic_load_explicit(&l->state, memory_order_acquire) != SHM_LINK_UP)
		return false;
	limit = atomic_load_explicit(&l->tx_pos, memory_order_acquire);
	pos = atomic_load_explicit(&l->harvested, memory_order_relaxed);
	end = acknowledged(l, pos, limit, look, &marks);
	moved = pos != end;
	if (moved || pos == limit)
		l->idle_polls = 0;
	else
		wake_idle_peer(l);
	for (; pos != end; pos++) {
		struct shm_inflight f = l->inflight[pos % SHM_SLOTS];
		struct shm_slot *s = &l->tx->slots[pos % SHM_SLOTS];
		uint8_t status = SHM_OK, timer = 0;
		uint64_t result = 0;

		/* Read before `harvested` allows the slot to be used again. */
		if (unlikely(marks)) {
			status = atomic_load_explicit(&s->status, memory_order_relaxed);
			timer = atomic_load_explicit(&s->timer, memory_order_relaxed);
		}
		if (unlikely(f.kind & SHM_RESULT))
			memcpy(&result, s->payload +
					offsetof(struct shm_atomic, result),
			       sizeof(result));
		/* One test for both flags, as both are rare. */
		if (unlikely(f.kind & (SHM_DATA | SHM_SHOWN)))
			status = (uint8_t)shm_read_arrived(l, &f, s, (enum shm_status)status);
		atomic_store_explicit(&l->data_tail, f.data_end, memory_order_release);
		atomic_store_explicit(&l->harvested, pos + 1, memory_order_release);
		if (!f.qp)
			continue;
		hca_lock(&f.qp->sq_lock);
		if (f.kind & SHM_TAKEN) {
			shm_qp(f.qp)->tx_taken--;
		} else if (unlikely(f.epoch != f.qp->tx_epoch)) {
			/* The entry was transmitted again, or flushed, meanwhile. */
		} else if (likely(status == SHM_OK &&
				  !(f.kind & (SHM_PART | SHM_RESULT)) &&
				  f.qp->sq.next == f.qp->sq.head)) {
			shm_qp(f.qp)->rnr_tries = 0;
			shm_qp(f.qp)->lost_since_ns = 0;
			hca_sq_complete_ok(f.qp);
		} else {
			settle(f.qp, &f, result, status, timer);
		}
		hca_unlock(&f.qp->sq_lock);
	}
	if (atomic_load_explicit(&l->backlog, memory_order_relaxed))
		shm_backlog_resume(l);
	return moved;
}

static void harvest_now(struct shm_link *l, bool look)
{
	shm_wait_for_sender(l);
	/* Waits for a thread that completes what is acknowledged. */
	hca_lock(&l->ack_lock);
	/* shm_harvest() checks that the link is up, and looks first at acknowledgements that
	 * came with messages. */
	while (shm_harvest(l, look))
		;
	hca_unlock(&l->ack_lock);
}

/* Are there requests that `ack` acknowledges, or that another thread is completing just now? */
static bool is_due(const struct shm_link *l, uint32_t ack)
{
	return shm_is_awaited(l, ack) || (!hca_self.elided && spin_is_held(&l->ack_lock));
}

void shm_harvest_before(struct shm_link *l)
{
	if (is_due(l, atomic_load_explicit(&l->acked_hint, memory_order_relaxed)))
		harvest_now(l, false);
}

static bool is_twin(const struct shm_link *l, const struct shm_link *other)
{
	return other != l && shm_link_is_up(other) && other->rx_peer == l->rx_peer;
}

/* The other end of a link of the process with itself. */
static struct shm_link *twin_of(struct shm_link *l)
{
	/* The structure may belong to another link by now. */
	if (likely(l->twin && is_twin(l, l->twin)))
		return l->twin;
	l->twin = NULL;
	shm_each_link(other)
		if (!l->twin && is_twin(l, other))
			l->twin = other;
	return l->twin;
}

void shm_harvest_twin(struct shm_link *l, const struct hca_qp *qp)
{
	struct shm_link *o = twin_of(l);

	if (!o || !is_due(o, atomic_load_explicit(&l->rx_pos, memory_order_relaxed)) ||
	    !shm_order_shows(qp))
		return;
	atomic_store_explicit(
		&l->rx->ack.word,
		shm_ack_word(atomic_load_explicit(&l->rx_pos, memory_order_relaxed), l->rx_marks),
		memory_order_release);
	harvest_now(o, true);
}

/* Completes the message of one slot if it is promised; false: it has to wait for its
 * acknowledgement, and so have the later ones. */
static bool take_promise(struct shm_inflight *f, const struct shm_slot *slot)
{
	struct hca_qp *qp = f->qp;
	bool good = false;

	hca_lock(&qp->sq_lock);
	if (f->kind == SHM_PLAIN && f->epoch == qp->tx_epoch &&
	    qp->ibv.qp_type == IBV_QPT_RC && shm_qp(qp)->remote_promise)
		good = hca_promised(shm_qp(qp)->remote_promise, f->psn,
				    hca_sq_entry(&qp->sq, f->index)->length) &&
		       /* The promise is for this QP only while the peer is connected
			* to it. */
		       atomic_load_explicit(&shm_qp(qp)->remote->dest_qpn,
					    memory_order_relaxed) ==
			       qp->ibv.qp_num &&
		       /* The message may have been refused, and the promise made later,
			* for its repetition. */
		       atomic_load_explicit(&slot->status, memory_order_relaxed) == SHM_OK;
	if (good) {
		/* The slot is not free before it is acknowledged. */
		f->kind |= SHM_TAKEN;
		shm_qp(qp)->tx_taken++;
		settle(qp, f, 0, SHM_OK, 0);
	}
	hca_unlock(&qp->sq_lock);
	return good;
}

bool shm_take_promises(struct shm_link *l)
{
	uint32_t limit = atomic_load_explicit(&l->tx_pos, memory_order_acquire);
	uint32_t pos = atomic_load_explicit(&l->harvested, memory_order_relaxed);
	bool any = false;

	l->promises_pos = limit;
	/* Our slots are visible before the promises are read (hca/memory/promise.c). */
	atomic_thread_fence(memory_order_seq_cst);
	if (unlikely(atomic_load_explicit(&l->state, memory_order_relaxed) !=
			     SHM_LINK_UP ||
		     shm_peer_died(l)))
		return false;
	for (; pos != limit; pos++) {
		struct shm_inflight *f = &l->inflight[pos % SHM_SLOTS];

		if (!f->qp || f->kind & SHM_TAKEN)
			continue;
		if (!take_promise(f, &l->tx->slots[pos % SHM_SLOTS]))
			break;
		any = true;
	}
	if (any)
		l->idle_polls = 0;
	return any;
}

void shm_harvest_rest(struct shm_link *l)
{
	hca_lock(&l->ack_lock);
	/* Twice: the first call may use a piggybacked acknowledgement, the second one
	 * reads struct shm_ack. */
	l->carried = false;
	shm_harvest(l, true);
	l->carried = false;
	shm_harvest(l, true);
	hca_unlock(&l->ack_lock);
}
