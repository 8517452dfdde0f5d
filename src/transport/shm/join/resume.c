/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The retry timer of a queue pair (move/retry.c): makes the link to the peer if there is none,
 * and sends again.
 */
#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/shm/join/join.h"
#include "transport/shm/link/backlog.h"
#include "transport/shm/link/state.h"
#include "transport/shm/move/send.h"

/* Transmission goes on when the link is up; the retry timer is armed as well, in case the
 * link does not come up. shm.lock is held. */
static void wait_until_up(struct hca_qp *qp, struct shm_link *l)
{
	hca_lock(&qp->sq_lock);
	if (qp->tx_blocked == HCA_TX_RETRY_WAIT)
		shm_backlog_wait(l, qp);
	hca_unlock(&qp->sq_lock);
}

/* Makes the link for the next datagram, or drops the datagram if nobody owns its QP number
 * or if it has waited for SHM_GONE_LIMIT_NS: later datagrams wait behind it. */
static void resolve_datagram(struct hca_qp *qp)
{
	struct shm_link *l;
	uint32_t qpn = 0;
	bool waiting, late = false, multicast = false, refused = false;

	hca_lock(&qp->sq_lock);
	waiting = qp->sq.next != qp->sq.head;
	if (waiting) {
		const struct hca_swqe *e = hca_sq_entry(&qp->sq, qp->sq.next);

		qpn = e->ud.qpn;
		multicast = e->ud.ah->multicast;
		late = shm_qp(qp)->lost_since_ns &&
		       progress_now_ns() - shm_qp(qp)->lost_since_ns >= SHM_GONE_LIMIT_NS;
	}
	hca_unlock(&qp->sq_lock);
	if (!waiting)
		return;
	if (multicast) {
		shm_multicast_resolve(qp);
		return;
	}
	pthread_mutex_lock(&shm.lock);
	l = shm_link_get(qpn >> HCA_QPN_BLOCK_BITS, &refused);
	if (l)
		shm_link_hear(l);
	if (l && shm_link_is_made(l))
		wait_until_up(qp, l);
	pthread_mutex_unlock(&shm.lock);
	if (!refused && !late)
		return;
	hca_lock(&qp->sq_lock);
	if (qp->sq.next != qp->sq.head && hca_sq_entry(&qp->sq, qp->sq.next)->ud.qpn == qpn) {
		/* Completed as sent: a datagram may be lost. */
		HCA_COUNT_RARE(qp, TX_LOST, 1);
		shm_complete_next(qp, IBV_WC_SUCCESS);
	}
	hca_unlock(&qp->sq_lock);
}

/* Makes the link to the owner of the next message's SRQ; fails the message if nobody owns it. */
static void resolve_xrc(struct hca_qp *qp)
{
	bool waits, refused;
	uint32_t srqn;

	hca_lock(&qp->sq_lock);
	waits = shm_xrc_waits_for(qp, &srqn);
	hca_unlock(&qp->sq_lock);
	if (!waits)
		return;
	pthread_mutex_lock(&shm.lock);
	shm_link_get(srqn >> HCA_QPN_BLOCK_BITS, &refused);
	pthread_mutex_unlock(&shm.lock);
	if (refused)
		shm_xrc_unknown(qp, srqn);
}

static bool is_lost(const struct hca_qp *qp, enum shm_peer_known known)
{
	return qp->ibv.qp_type == IBV_QPT_UC && known != SHM_PEER_LINKED &&
	       shm_qp(qp)->lost_since_ns &&
	       (known == SHM_PEER_ABSENT ||
		progress_now_ns() - shm_qp(qp)->lost_since_ns >= SHM_GONE_LIMIT_NS);
}

void shm_retry_expired(struct hca_qp *qp)
{
	enum shm_peer_known known = SHM_PEER_LINKED;

	if (qp->ibv.qp_type == IBV_QPT_UD) {
		resolve_datagram(qp);
	} else {
		known = shm_qp_resolve(qp, false);
		if (qp->ibv.qp_type == IBV_QPT_XRC_SEND)
			resolve_xrc(qp);
	}
	hca_lock(&qp->sq_lock);
	if (qp->tx_blocked == HCA_TX_RETRY_WAIT) {
		qp->tx_blocked = HCA_TX_OPEN;
		if (unlikely(is_lost(qp, known)))
			shm_lose_unreliable(qp);
		hca_sq_run(qp);
	}
	hca_unlock(&qp->sq_lock);
}
