/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending side of extended reliable connections (InfiniBand specification
 * volume 1, annex A14).
 *
 * The target QP and the SRQ of a message may be in different processes. A message
 * goes to the process of the SRQ, which has the receives, the memory and the CQ.
 * The initiator reads the state, rights and XRC domain of the target QP in the shared
 * segment of the target's process, as it does for one-sided operations; if a message is
 * refused, it tells the target's process.
 *
 * To keep the order, a message for another process than that of the previous message is
 * sent when all earlier messages are acknowledged.
 *
 * An SRQ that does not exist or is of another domain is answered as an access
 * violation, which is what adapters do.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <sched.h>

#include "hca/limits.h"
#include "hca/object/opcode.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "transport/shm/link/backlog.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/link/wake.h"
#include "transport/shm/move/send.h"
#include "transport/shm/reach/copy.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"
#include "util/log.h"

/* Tells the target that a request was refused. False: the ring is full. */
static bool fault(struct hca_qp *qp, enum ibv_wc_status status)
{
	struct shm_link *l = shm_qp(qp)->link;

	return !l || shm_send_fault(qp, l, status);
}

void shm_xrc_refused(struct hca_qp *qp, const struct hca_swqe *e, enum ibv_wc_status status)
{
	/* A SEND that failed has completed a receive with an error, and the target's
	 * program gets no event (refuse_access() in rx.c). */
	if (!fault(qp, hca_opcodes[e->opcode].right ? status : IBV_WC_REM_OP_ERR))
		log_warn("qp 0x%x: the target does not learn that a message was refused",
			 qp->ibv.qp_num);
}

/* Completes the next entry with an error; it is tried again when there is room to tell the target.
 * sq_lock is held. */
static void fail_next(struct hca_qp *qp, enum ibv_wc_status status)
{
	if ((status == IBV_WC_REM_ACCESS_ERR || status == IBV_WC_REM_INV_REQ_ERR) &&
	    !fault(qp, status)) {
		shm_backlog_wait(shm_qp(qp)->link, qp);
		return;
	}
	shm_complete_next(qp, status);
}

/* Transmission goes on when the outstanding messages are acknowledged. */
static void wait_for_earlier(struct hca_qp *qp)
{
	shm_backlog_wait(shm_qp(qp)->xrc_link, qp);
}

/*
 * True if the target QP is in service, connected to us and expects our sequence numbers.
 * The process of an SRQ cannot check the numbers, as messages to other processes are in
 * the same sequence. `alone`: no message of the QP is outstanding.
 */
static bool target_ready(struct hca_qp *qp, bool alone)
{
	const struct hca_qp_public *r = shm_qp(qp)->remote;
	uint32_t connection;

	if (!shm_remote_ready(qp) || !r->xrcd.hi)
		return false;
	connection = atomic_load_explicit(&r->connection, memory_order_acquire);
	if (likely(connection == shm_qp(qp)->known_connection))
		return true;
	if (!alone || qp->tx_psn != atomic_load_explicit(&r->rq_psn, memory_order_relaxed))
		return false;
	shm_qp(qp)->known_connection = connection;
	return true;
}

/* Carries out an RDMA operation at the initiator. False: no further entry can be sent now.
 * `*by_target`: nothing was done, and the process of the SRQ has to carry it out. `*room`:
 * how many bytes this run of transmission may still copy. */
static bool do_onesided(struct hca_qp *qp, struct shm_link *l,
			const struct hca_swqe *e,
			const struct hca_qp_public *srq, uint32_t *room,
			bool *by_target)
{
	const struct shm_way way = { l, shm_qp(qp)->remote, srq };
	const struct shm_part part = { 0, e->length <= *room ? e->length : 0 };
	enum ibv_wc_status status = IBV_WC_RETRY_EXC_ERR;

	*by_target = false;
	if (shm_copy_ended(qp, &status))
		goto copied;
	*by_target = shm_qp(qp)->tx_offset || !shm_onesided_reaches(qp, l, e);
	if (*by_target)
		return true;
	if (unlikely(e->opcode == IBV_WR_RDMA_READ && !qp->attr.max_rd_atomic))
		/* With max_rd_atomic 0 a READ can never be sent. */
		status = IBV_WC_LOC_QP_OP_ERR;
	else if (likely(!shm_peer_died(l)))
		*by_target = shm_onesided(qp, e, &way, &part, &status) ==
			     SHM_STEP_TO_TARGET;
	if (*by_target)
		return true;
	if (status == IBV_WC_SUCCESS && part.length != e->length) {
		shm_copy_start(qp);
		return false;
	}
	*room -= part.length;
copied:
	if (status == IBV_WC_RETRY_EXC_ERR) { /* the peer died meanwhile */
		shm_retry_lost(qp);
		return false;
	}
	if (status != IBV_WC_SUCCESS) {
		fail_next(qp, status);
		return false;
	}
	if (e->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)
		return true;
	shm_complete_next(qp, IBV_WC_SUCCESS);
	return true;
}

static bool put(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e,
		bool alone, bool by_target)
{
	int ret;

	hca_lock(&l->tx_lock);
	ret = by_target ? shm_put_request(qp, l, e) : shm_put_message(qp, l, e);
	if (!ret)
		shm_kick(l);
	else if (ret == -EAGAIN || !alone)
		shm_backlog_add(l, qp);
	hca_unlock(&l->tx_lock);
	if (unlikely(!ret && by_target))
		shm_wake_target(l);
	if (ret && ret != -EAGAIN && alone)
		fail_next(qp, ret == -EFAULT ? IBV_WC_LOC_PROT_ERR : IBV_WC_LOC_QP_OP_ERR);
	if (ret)
		return false;
	shm_qp(qp)->xrc_link = l;
	if (shm_qp(qp)->tx_offset)
		return true; /* further fragments of the same entry */
	qp->sq.next++;
	qp->tx_psn = (qp->tx_psn + 1) & HCA_PSN_MASK;
	return true;
}

static bool transmit_through(struct hca_qp *qp, struct shm_link *l,
			     struct hca_swqe *e, bool alone, uint32_t *room)
{
	uint32_t srqn = *hca_swqe_srqn(e);
	const struct hca_qp_public *srq = shm_find_remote(l, srqn);
	bool serves = shm_xrc_serves(srq, srqn, shm_qp(qp)->remote);
	unsigned right = hca_opcodes[e->opcode].right;
	/* Checked here, as the process of the SRQ does not know the target QP. */
	bool lacks_right = right && !(atomic_load_explicit(&shm_qp(qp)->remote->access,
							   memory_order_relaxed) &
				      right);
	bool by_target = false;

	/* Errors, one-sided operations and messages to another process wait until all
	 * earlier messages are acknowledged. */
	if (!alone && (!serves || lacks_right || hca_op_is_rdma(e->opcode) ||
		       l != shm_qp(qp)->xrc_link || (e->flags & HCA_SWQE_FENCE))) {
		wait_for_earlier(qp);
		return false;
	}
	if (!serves || lacks_right) {
		fail_next(qp, serves ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
		return false;
	}
	if (hca_op_is_rdma(e->opcode)) {
		if (!do_onesided(qp, l, e, srq, room, &by_target))
			return false;
		if (!by_target && e->opcode != IBV_WR_RDMA_WRITE_WITH_IMM)
			return true;
	}
	return put(qp, l, e, alone, by_target);
}

static bool transmit_next(struct hca_qp *qp, uint32_t *room)
{
	struct hca_swqe *e = hca_sq_entry(&qp->sq, qp->sq.next);
	bool alone = qp->sq.next == qp->sq.tail, on;
	uint32_t srqn = *hca_swqe_srqn(e);
	struct shm_link *l;

	if (!target_ready(qp, alone)) {
		if (alone)
			shm_retry_lost(qp);
		else
			wait_for_earlier(qp);
		return false;
	}
	l = srqn <= HCA_PSN_MASK ? shm_link_borrow(srqn) : NULL;
	if (l) {
		on = transmit_through(qp, l, e, alone, room);
		shm_link_return(l);
		return on;
	}
	if (!alone) {
		wait_for_earlier(qp);
	} else if (srqn > HCA_PSN_MASK) {
		fail_next(qp, IBV_WC_REM_ACCESS_ERR);
	} else {
		/* The retry timer makes the link (join/resume.c). */
		shm_retry_at(qp, progress_now_ns() + SHM_LINK_WAIT_NS);
	}
	return false;
}

void shm_transmit_xrc(struct hca_qp *qp)
{
	uint32_t room = SHM_COPY_AT_ONCE;

	while (qp->sq.next != hca_sq_end(qp) && transmit_next(qp, &room))
		;
	if (unlikely(hca_qp_state(qp) == IBV_QPS_SQD))
		shm_backlog_drain(qp, shm_qp(qp)->xrc_link);
}

bool shm_xrc_waits_for(struct hca_qp *qp, uint32_t *srqn)
{
	enum ibv_qp_state state = hca_qp_state(qp);

	if ((state != IBV_QPS_RTS && state != IBV_QPS_SQD) ||
	    qp->sq.next == hca_sq_end(qp) || qp->sq.next != qp->sq.tail ||
	    !shm_remote_ready(qp))
		return false;
	*srqn = *hca_swqe_srqn(hca_sq_entry(&qp->sq, qp->sq.next));
	return *srqn <= HCA_PSN_MASK;
}

void shm_xrc_unknown(struct hca_qp *qp, uint32_t srqn)
{
	uint32_t now;

	hca_lock(&qp->sq_lock);
	if (shm_xrc_waits_for(qp, &now) && now == srqn)
		fail_next(qp, IBV_WC_REM_ACCESS_ERR);
	hca_unlock(&qp->sq_lock);
}

void shm_xrc_link_lost(struct shm_link *l)
{
	uint32_t end;

	while (atomic_load(&l->borrowed) > 0)
		sched_yield();
	/* Not earlier: the threads that had borrowed the link may have sent. */
	end = atomic_load(&l->tx_pos);
	if (!l->inflight)
		return;
	for (uint32_t pos = atomic_load(&l->harvested); pos != end; pos++) {
		const struct shm_inflight *f = &l->inflight[pos % SHM_SLOTS];
		struct hca_qp *qp = f->qp;

		if (!qp || qp->ibv.qp_type != IBV_QPT_XRC_SEND)
			continue;
		hca_lock(&qp->sq_lock);
		if (f->epoch == qp->tx_epoch && qp->sq.tail != qp->sq.next &&
		    qp->tx_blocked == HCA_TX_OPEN)
			shm_retry_lost(qp);
		hca_unlock(&qp->sq_lock);
	}
}
