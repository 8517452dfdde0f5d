/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending side of a link: send queue entries into slots. plain.c has a fast path for
 * the usual message, which can be sent from here as well. Datagrams are in datagram.c.
 *
 * shm_transmit() is called with the QP's sq_lock held, from posting, from
 * acknowledgements of the same QP, or from the backlog. It never waits: what
 * does not fit stays in the send queue.
 */
#define LOG_ROOM "shm"
#include <errno.h>

#include "hca/limits.h"
#include "hca/object/opcode.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/share/counters.h"
#include "transport/shm/link/backlog.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/link/wake.h"
#include "transport/shm/move/send.h"
#include "transport/shm/reach/copy.h"
#include "transport/shm/reach/reach.h"
#include "util/container_of.h"
#include "util/log.h"

enum onesided {
	ONESIDED_WAIT,      /* transmission stops here for now */
	ONESIDED_DONE,      /* the entry is complete */
	ONESIDED_MESSAGE,   /* data written; the immediate is to be sent as a message */
	ONESIDED_BY_TARGET, /* the target has to carry out all of it */
};

/*
 * True if the responder expects our sequence numbers. Acknowledged messages show that. An
 * operation that is no message has no number; so before the first one the PSNs of the two
 * QPs are compared, and if they differ the operation is sent as a message, for the
 * responder to check. UC has no such check. No message of the QP is outstanding.
 */
static bool in_sequence(struct hca_qp *qp)
{
	const struct hca_qp_public *r = shm_qp(qp)->remote;
	uint32_t connection = atomic_load_explicit(&r->connection, memory_order_acquire);

	if (likely(connection == shm_qp(qp)->known_connection))
		return true;
	if (shm_is_reliable(qp) &&
	    qp->tx_psn != atomic_load_explicit(&r->rq_psn,
					       memory_order_relaxed) &&
	    (shm_qp(qp)->known_connection || qp->tx_psn == qp->attr.sq_psn))
		return false;
	shm_qp(qp)->known_connection = connection;
	return true;
}

/* Copies the data of the next entry. `*room`: how many bytes this run of transmission may
 * still copy; an entry that is larger is copied later, by parts. sq_lock is held. */
static enum onesided copy_now(struct hca_qp *qp, struct shm_link *l,
			      const struct hca_swqe *e, uint32_t *room,
			      enum ibv_wc_status *status)
{
	const struct shm_way way = { l, shm_qp(qp)->remote, shm_qp(qp)->remote };
	bool fits = e->length <= *room || unlikely(hca_op_is_word(e->opcode));
	const struct shm_part part = { 0, fits ? e->length : 0 };

	if (unlikely(!in_sequence(qp)) ||
	    shm_onesided(qp, e, &way, &part, status) == SHM_STEP_TO_TARGET)
		return ONESIDED_BY_TARGET;
	if (likely(fits)) {
		*room -= MIN(*room, e->length);
		return ONESIDED_DONE;
	}
	if (*status != IBV_WC_SUCCESS)
		return ONESIDED_DONE;
	shm_copy_start(qp);
	return ONESIDED_WAIT;
}

/* Carries out the next entry, an RDMA operation, ATOMIC or ATOMIC WRITE, at the initiator
 * as far as possible. sq_lock is held. */
static __attribute__((noinline)) enum onesided
run_onesided(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e, uint32_t *room)
{
	enum ibv_wc_status status = IBV_WC_RETRY_EXC_ERR;
	bool imm = e->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (unlikely(shm_copy_ended(qp, &status)))
		goto copied;
	if (unlikely(shm_qp(qp)->tx_offset || !shm_onesided_reaches(qp, l, e)))
		return ONESIDED_BY_TARGET;
	if (qp->sq.next != qp->sq.tail || shm_qp(qp)->tx_taken) {
		/* Earlier messages are executed first. */
		shm_backlog_wait(l, qp);
		return ONESIDED_WAIT;
	}
	if (unlikely(hca_op_takes_data(e->opcode) &&
		     (!qp->attr.max_rd_atomic ||
		      (hca_op_is_atomic(e->opcode) &&
		       e->length != sizeof(uint64_t))))) {
		/* max_rd_atomic is 0, or the result of an atomic has no buffer of 8
		 * bytes: the entry can never be sent. */
		status = IBV_WC_LOC_QP_OP_ERR;
		goto complete;
	}
	if (likely(shm_remote_ready(qp) && !shm_peer_died(l))) {
		enum onesided step = copy_now(qp, l, e, room, &status);

		if (unlikely(step != ONESIDED_DONE))
			return step;
	}
copied:
	if (!shm_is_reliable(qp) && status != IBV_WC_LOC_PROT_ERR) {
		/* Refused or lost at the responder: not reported to the sender. */
		if (unlikely(status != IBV_WC_SUCCESS))
			HCA_COUNT_RARE(qp, TX_LOST, 1);
		if (status == IBV_WC_SUCCESS && imm)
			return ONESIDED_MESSAGE;
		status = IBV_WC_SUCCESS;
		goto complete;
	}
	if (status == IBV_WC_RETRY_EXC_ERR) { /* the peer QP is not in service */
		shm_retry_lost(qp);
		return ONESIDED_WAIT;
	}
	if (status == IBV_WC_SUCCESS && imm)
		return ONESIDED_MESSAGE;
	/* The entry is tried again when there is room to tell the responder, whose queue pair has
	 * to fail as well. */
	if (unlikely(status != IBV_WC_SUCCESS && status != IBV_WC_LOC_PROT_ERR) &&
	    !shm_send_fault(qp, l, status)) {
		shm_backlog_wait(l, qp);
		return ONESIDED_WAIT;
	}
complete:
	/* The sequence number stays, as no message was sent. */
	shm_complete_next(qp, status);
	return likely(status == IBV_WC_SUCCESS) ? ONESIDED_DONE : ONESIDED_WAIT;
}

void shm_lose_unreliable(struct hca_qp *qp)
{
	while (qp->sq.next != hca_sq_end(qp) &&
	       !(hca_sq_entry(&qp->sq, qp->sq.next)->flags & HCA_SWQE_LOCAL)) {
		HCA_COUNT_RARE(qp, TX_LOST, 1);
		shm_complete_next(qp, IBV_WC_SUCCESS);
	}
}

static void transmit_connected(struct hca_qp *qp)
{
	struct shm_link *l = shm_qp(qp)->link;
	bool sent = false, by_target = false;
	uint32_t room = SHM_COPY_AT_ONCE;

	while (qp->sq.next != hca_sq_end(qp)) {
		const struct hca_swqe *e = hca_sq_entry(&qp->sq, qp->sq.next);
		enum onesided step = ONESIDED_MESSAGE;
		int ret;

		if (unlikely(!l && !(e->flags & HCA_SWQE_LOCAL))) {
			if (!shm_is_reliable(qp))
				shm_wait_for_link(qp);
			else if (qp->sq.next == qp->sq.tail)
				shm_retry_lost(qp);
			return;
		}
		if (likely(shm_transmit_plain(qp, l, e))) {
			sent = true;
			continue;
		}
		if (unlikely(e->flags & HCA_SWQE_LOCAL)) {
			if (!shm_local(qp))
				break;
			continue;
		}
		/* Fence: its data may be the result of an earlier READ or atomic. */
		if (unlikely((e->flags & HCA_SWQE_FENCE) && qp->sq.next != qp->sq.tail)) {
			shm_backlog_wait(l, qp);
			break;
		}
		if (hca_op_is_rdma(e->opcode) || unlikely(hca_op_is_word(e->opcode))) {
			step = run_onesided(qp, l, e, &room);
			if (step == ONESIDED_WAIT)
				break;
			if (step == ONESIDED_DONE)
				continue;
		}
		by_target |= step == ONESIDED_BY_TARGET;
		hca_lock(&l->tx_lock);
		ret = unlikely(step == ONESIDED_BY_TARGET &&
			       !hca_op_is_word(e->opcode)) ?
			      shm_put_request(qp, l, e) : shm_put_message(qp, l, e);
		/* An error waits until the earlier entries are complete. */
		if (unlikely(ret == -EAGAIN || (ret && qp->sq.next != qp->sq.tail)))
			shm_backlog_add(l, qp);
		hca_unlock(&l->tx_lock);
		if (unlikely((ret == -EFAULT || ret == -EPERM) && qp->sq.next == qp->sq.tail)) {
			shm_complete_next(qp, ret == -EFAULT ?
						    IBV_WC_LOC_PROT_ERR :
						    IBV_WC_LOC_QP_OP_ERR);
		}
		if (unlikely(ret))
			break;
		sent = true;
		if (shm_qp(qp)->tx_offset)
			continue; /* further fragments of the same entry */
		qp->sq.next++;
		qp->tx_psn = (qp->tx_psn + 1) & HCA_PSN_MASK;
		if (!shm_is_reliable(qp))
			shm_complete(qp, IBV_WC_SUCCESS);
	}
	if (sent)
		shm_kick(l);
	if (unlikely(sent && by_target))
		shm_wake_target(l);
	if (unlikely(hca_qp_state(qp) == IBV_QPS_SQD))
		shm_backlog_drain(qp, l);
}

void shm_transmit(struct hca_qp *qp)
{
	if (unlikely(qp->ibv.qp_type == IBV_QPT_XRC_SEND))
		shm_transmit_xrc(qp);
	else
		transmit_connected(qp);
}
