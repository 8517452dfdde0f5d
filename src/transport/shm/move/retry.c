/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retransmission of messages: when, how often, and when to give up.
 *
 * The InfiniBand rule is retry_cnt repetitions, each after the local ACK
 * timeout of 4.096 us * 2^timeout. Here the sender learns of a loss at once, so the
 * first repetitions come sooner; the total time before giving up is the same.
 */
#include <errno.h>

#include "engine/rc/rules.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/shm/join/join.h"
#include "transport/shm/link/links.h"
#include "transport/shm/move/send.h"
#include "transport/shm/link/state.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/probe.h"

#define FIRST_WAIT_NS 100000
/* A timeout of 0 means no limit. Without a link to the peer this limit is used all the
 * same, as a process that has ended does not come back under its QP number. */
#define GONE_LIMIT_NS (4 * NSEC_PER_SEC)

static uint64_t ack_timeout_ns(const struct hca_qp *qp)
{
	return rc_timeout_ns(qp->attr.timeout);
}

static void wait_and_retry(struct hca_qp *qp, uint64_t now_ns, uint64_t wait_ns)
{
	hca_sq_go_back(qp, qp->sq.tail);
	qp->tx_blocked = HCA_TX_RETRY_WAIT;
	progress_timer_arm(&qp->retry, now_ns + wait_ns);
}

void shm_retry_lost(struct hca_qp *qp)
{
	uint64_t now = progress_now_ns();
	uint64_t timeout = ack_timeout_ns(qp);
	uint64_t limit = timeout * (qp->attr.retry_cnt + 1u);
	uint64_t wait;

	if (!qp->lost_since_ns) {
		qp->lost_since_ns = now;
		qp->lost_tries = 0;
	}
	if (!timeout)
		limit = shm_qp(qp)->link ? UINT64_MAX : GONE_LIMIT_NS;
	if (now - qp->lost_since_ns >= limit) {
		hca_sq_complete(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	HCA_COUNT_RARE(qp, TX_RETRIES, 1);
	wait = (uint64_t)FIRST_WAIT_NS << MIN(qp->lost_tries++, 10u);
	PROBE(retry, qp->ibv.qp_num, qp->lost_tries, wait);
	if (timeout)
		wait = MIN(wait, timeout);
	wait_and_retry(qp, now, MIN(wait, limit - (now - qp->lost_since_ns)));
}

void shm_retry_rnr(struct hca_qp *qp, uint8_t timer_code)
{
	HCA_COUNT_RARE(qp, TX_RNR_RECEIVED, 1);
	PROBE(rnr, qp->ibv.qp_num, timer_code, qp->rnr_left);
	qp->lost_since_ns = 0;
	if (qp->rnr_left == 0) {
		hca_sq_complete(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (qp->rnr_left != 7) /* 7: for ever */
		qp->rnr_left--;
	wait_and_retry(qp, progress_now_ns(), rc_rnr_ns(timer_code));
}

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
 * or if it has waited for GONE_LIMIT_NS: later datagrams wait behind it. */
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
		late = qp->lost_since_ns &&
		       progress_now_ns() - qp->lost_since_ns >= GONE_LIMIT_NS;
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
	if (qp->sq.next != qp->sq.head &&
	    hca_sq_entry(&qp->sq, qp->sq.next)->ud.qpn == qpn) {
		/* Completed as sent: a datagram may be lost. */
		HCA_COUNT_RARE(qp, TX_LOST, 1);
		qp->sq.next++;
		hca_sq_complete(qp, IBV_WC_SUCCESS);
	}
	hca_unlock(&qp->sq_lock);
}

/*
 * An unreliable message is lost if the peer does not exist, but not because the link is
 * still being made, as programs know nothing of links. So it waits for the link, but
 * not without a limit (GONE_LIMIT_NS).
 */
void shm_wait_for_link(struct hca_qp *qp)
{
	uint64_t now = progress_now_ns();

	if (!qp->lost_since_ns) {
		qp->lost_since_ns = now;
		qp->lost_tries = 0;
	}
	qp->tx_blocked = HCA_TX_RETRY_WAIT;
	progress_timer_arm(&qp->retry,
			   now + ((uint64_t)SHM_LINK_WAIT_NS
				  << MIN(qp->lost_tries++, 9u)));
}

static bool is_lost(const struct hca_qp *qp, enum shm_peer_known known)
{
	return qp->ibv.qp_type == IBV_QPT_UC && known != SHM_PEER_LINKED &&
	       qp->lost_since_ns &&
	       (known == SHM_PEER_ABSENT ||
		progress_now_ns() - qp->lost_since_ns >= GONE_LIMIT_NS);
}

void shm_retry_expired(struct hca_qp *qp)
{
	enum shm_peer_known known = SHM_PEER_LINKED;

	if (qp->ibv.qp_type == IBV_QPT_UD) {
		resolve_datagram(qp);
	} else {
		known = shm_qp_resolve(qp, false);
		if (qp->ibv.qp_type == IBV_QPT_XRC_SEND)
			shm_xrc_resolve(qp);
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
