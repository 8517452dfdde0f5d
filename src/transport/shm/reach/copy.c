/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Large RDMA WRITE and READ operations (onesided.c), carried out by parts and outside of
 * all locks of the data path: neither the posting thread waits for them, nor other
 * threads that poll or post meanwhile.
 *
 * A thread that polls the send completion queue and finds nothing carries out one part,
 * so a program that waits for the completion copies without a switch of threads. The
 * progress thread carries out the parts of other entries: at once when the program
 * sleeps or may be about to sleep, else when no poll has come for a while. After each
 * part it does its other work. The parts of one entry are copied in ascending order,
 * so that the last byte is written last.
 *
 * The entry is the oldest of its queue pair: all earlier ones are complete, and later
 * ones wait (hca_tx_blocked). It does not complete during a part: if the queue pair goes
 * to the error state, the entry is flushed after the part. Each part checks again that
 * the peer, its queue pair and its key are valid; a part that fails ends the copy with
 * its status. Freeing or unmapping waits for the part: for a link by
 * shm_link.borrowed, for keys and mappings by shm_copy_fence(), for the queue pair by
 * shm_copy_forget().
 *
 * A copying thread calls hca_enter_with_locks() before it takes a part. So no thread
 * waits for it as for the owner of the elided locks, and it does not wait for another
 * thread while threads wait for its part.
 */
#include <stdatomic.h>

#include "hca/object/cq.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/reach/copiers.h"
#include "transport/shm/reach/copy.h"
#include "transport/shm/reach/reach.h"
#include "util/container_of.h"

/* How long the progress thread leaves copies to pollers: at first, and at most while
 * polls keep coming. */
#define PAUSE_NS UINT64_C(100000)
#define PAUSE_MAX_NS UINT64_C(4000000)

static struct {
	struct progress_timer timer;
	_Atomic uint64_t pause_ns; /* how long the progress thread waits for pollers */
} copies;

/* ---- one part ---- */

bool shm_copy_is_current(const struct hca_qp *qp)
{
	return shm_qp(qp)->copy_index == qp->sq.next && shm_qp(qp)->copy_epoch == qp->tx_epoch;
}

/* Fills *way for the entry's memory and borrows its links, to be released by way_close().
 * False: the memory cannot be accessed now. sq_lock is held. */
static bool way_open(struct hca_qp *qp, struct hca_swqe *e, struct shm_way *way)
{
	struct shm_link *l = shm_qp(qp)->link;

	*way = (struct shm_way){ l, shm_qp(qp)->remote, shm_qp(qp)->remote };
	if (!shm_remote_ready(qp) || shm_peer_died(l) ||
	    /* Connected anew: our sequence numbers have to be checked first. */
	    atomic_load_explicit(&way->remote->connection, memory_order_acquire) !=
		    shm_qp(qp)->known_connection)
		return false;
	atomic_fetch_add(&l->borrowed, 1);
	if (qp->ibv.qp_type != IBV_QPT_XRC_SEND)
		return true;
	way->link = shm_link_borrow(*hca_swqe_srqn(e));
	if (way->link) {
		way->owner = shm_find_remote(way->link, *hca_swqe_srqn(e));
		if (way->owner && !shm_peer_died(way->link))
			return true;
		shm_link_return(way->link);
	}
	shm_link_return(l);
	return false;
}

/* `l`: the QP's link; for XRC, way->link is the link to the owner of the SRQ. */
static void way_close(const struct shm_way *way, struct shm_link *l)
{
	if (way->link != l || way->owner != way->remote)
		shm_link_return(way->link);
	shm_link_return(l);
}

/* Resumes transmission. `ended`: the copy has ended with `status`; else the entry is
 * processed again from the beginning. sq_lock is held. */
static void go_on(struct hca_qp *qp, bool ended, enum ibv_wc_status status)
{
	shm_qp(qp)->copy_ended = ended;
	shm_qp(qp)->copy_status = (uint8_t)status;
	if (!ended)
		shm_qp(qp)->copy_index = qp->sq.next - 1;
	qp->tx_blocked = HCA_TX_OPEN;
	hca_sq_run(qp);
}

static bool is_transmitting(const struct hca_qp *qp)
{
	enum ibv_qp_state state = hca_qp_state(qp);

	return state == IBV_QPS_RTS || state == IBV_QPS_SQD;
}

/* Takes the result of a part into account. sq_lock is held. */
static void part_ended(struct hca_qp *qp, const struct hca_swqe *e,
		       uint32_t length, enum shm_step step,
		       enum ibv_wc_status status)
{
	qp->tx_blocked = HCA_TX_COPY_WAITS;
	if (!is_transmitting(qp) || step == SHM_STEP_TO_TARGET) {
		go_on(qp, false, status);
	} else if (status != IBV_WC_SUCCESS) {
		go_on(qp, true, status);
	} else {
		shm_qp(qp)->lost_since_ns = 0;
		shm_qp(qp)->copy_bytes += length;
		if (shm_qp(qp)->copy_bytes == e->length)
			go_on(qp, true, status);
	}
}

static struct shm_part next_part(const struct hca_swqe *e, uint32_t at)
{
	uint32_t most = e->length > SHM_COPY_LONG ? SHM_COPY_PART_OF_LONG : SHM_COPY_PART;

	return (struct shm_part){ at, MIN(e->length - at, most) };
}

static void carry_out(struct shm_copier *c)
{
	struct hca_qp *qp = c->qp;
	enum ibv_wc_status status;
	struct hca_swqe *e;
	struct shm_part part;
	struct shm_link *l;
	struct shm_way way;
	enum shm_step step;

	hca_lock(&qp->sq_lock);
	if (qp->tx_blocked != HCA_TX_COPY_WAITS)
		goto out;
	e = hca_sq_entry(&qp->sq, qp->sq.next);
	if (!is_transmitting(qp) || !shm_copy_is_current(qp) || !way_open(qp, e, &way)) {
		go_on(qp, false, IBV_WC_SUCCESS);
		goto out;
	}
	l = shm_qp(qp)->link;
	part = next_part(e, shm_qp(qp)->copy_bytes);
	qp->tx_blocked = HCA_TX_COPYING;
	hca_unlock(&qp->sq_lock);
	shm_copier_set(c, true);
	step = shm_onesided(qp, e, &way, &part, &status);
	shm_copier_set(c, false);
	way_close(&way, l);
	hca_lock(&qp->sq_lock);
	part_ended(qp, e, part.length, step, status);
out:
	/* sq_lock is still held, so that no other copy of the QP starts in between. */
	shm_copiers_return(qp, qp->tx_blocked == HCA_TX_COPY_WAITS);
	hca_unlock(&qp->sq_lock);
}

/* Carries out one part for a poller of `cq`, or for the progress thread (NULL). False:
 * there was none. */
static bool run_part(struct hca_cq *cq)
{
	struct shm_copier c;
	bool any;

	hca_enter_with_locks();
	any = shm_copier_take(&c, cq);
	if (any) {
		carry_out(&c);
		shm_copier_end(&c);
	}
	hca_leave();
	return any;
}

/* hca_cq.carry_on; called outside of hca_enter(). Does nothing while the thread builds
 * requests (ibv_wr_start): it holds a sq_lock then. */
static void carry_on(struct hca_cq *cq)
{
	if (!hca_self.depth)
		run_part(cq);
}

/* ---- the progress thread ---- */

/* Arms the timer of the progress thread: at once, or after the time left to pollers. Another
 * thread may do so at the same time; the earlier time counts. */
static void arm(bool at_once)
{
	uint64_t when_ns = progress_now_ns();

	if (!at_once)
		when_ns += atomic_load(&copies.pause_ns);
	progress_timer_hasten(&copies.timer, when_ns);
}

static void expired(struct progress_timer *t)
{
	bool any = run_part(NULL);

	copies.pause_ns = any ? PAUSE_NS : MIN(2 * copies.pause_ns, PAUSE_MAX_NS);
	shm_copiers_forget_polls();
	if (shm_copiers_wanted())
		arm(any);
}

void shm_copy_hurry(void)
{
	if (shm_copiers_wanted())
		arm(true);
}

/* ---- for transmission ---- */

void shm_copy_start(struct hca_qp *qp)
{
	shm_qp(qp)->copy_index = qp->sq.next;
	shm_qp(qp)->copy_epoch = qp->tx_epoch;
	shm_qp(qp)->copy_bytes = 0;
	shm_qp(qp)->copy_ended = false;
	qp->tx_blocked = HCA_TX_COPY_WAITS;
	shm_copiers_add(qp, carry_on);
	/* Queued first, then `wants_kick` is read; a thread that goes to sleep does the
	 * reverse (hca/share/attention.c). */
	arm(atomic_load(&hca_process.segment->wants_kick) == HCA_WAKE_ALL);
}

void shm_copies_start(void)
{
	progress_timer_init(&copies.timer, expired);
	copies.pause_ns = PAUSE_NS;
}

void shm_copies_stop(void)
{
	progress_timer_cancel(&copies.timer);
}
