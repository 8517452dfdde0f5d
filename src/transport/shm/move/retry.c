/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Retransmission of messages: when, how often, and when to give up.
 *
 * The InfiniBand rule is retry_cnt repetitions, each after the local ACK
 * timeout of 4.096 us * 2^timeout. Here the sender learns of a loss at once, so the
 * first repetitions come sooner; the total time before giving up is the same.
 */
#include "engine/rc/rules.h"
#include "hca/object/qp.h"
#include "hca/queue/post.h"
#include "hca/run/progress.h"
#include "hca/share/counters.h"
#include "transport/shm/link/state.h"
#include "transport/shm/move/send.h"
#include "util/container_of.h"
#include "util/probe.h"

#define FIRST_WAIT_NS 100000

static uint64_t ack_timeout_ns(const struct hca_qp *qp)
{
	return rc_timeout_ns(qp->attr.timeout);
}

void shm_go_back(struct hca_qp *qp)
{
	uint32_t resend = qp->sq.next - qp->sq.tail;

	HCA_COUNT_RARE(qp, TX_REPEATED, resend);
	qp->sq.next = qp->sq.tail;
	qp->tx_psn = (qp->tx_psn - resend) & HCA_PSN_MASK;
	qp->tx_epoch++;
	shm_qp(qp)->tx_offset = 0;
}

static void wait_and_retry(struct hca_qp *qp, uint64_t now_ns, uint64_t wait_ns)
{
	shm_go_back(qp);
	shm_retry_at(qp, now_ns + wait_ns);
}

void shm_retry_lost(struct hca_qp *qp)
{
	uint64_t now = progress_now_ns();
	uint64_t timeout = ack_timeout_ns(qp);
	uint64_t limit = timeout * (qp->attr.retry_cnt + 1u);
	uint64_t lost_for = shm_lost_for_ns(qp, now), wait;

	if (!timeout)
		limit = shm_qp(qp)->link ? UINT64_MAX : SHM_GONE_LIMIT_NS;
	if (lost_for >= limit) {
		shm_complete(qp, IBV_WC_RETRY_EXC_ERR);
		return;
	}
	HCA_COUNT_RARE(qp, TX_RETRIES, 1);
	wait = (uint64_t)FIRST_WAIT_NS << MIN(shm_qp(qp)->lost_tries++, 10u);
	PROBE(retry, qp->ibv.qp_num, shm_qp(qp)->lost_tries, wait);
	if (timeout)
		wait = MIN(wait, timeout);
	wait_and_retry(qp, now, MIN(wait, limit - lost_for));
}

void shm_retry_rnr(struct hca_qp *qp, uint8_t timer_code)
{
	int left = qp->attr.rnr_retry == 7 ? 7 : qp->attr.rnr_retry - shm_qp(qp)->rnr_tries;

	HCA_COUNT_RARE(qp, TX_RNR_RECEIVED, 1);
	PROBE(rnr, qp->ibv.qp_num, timer_code, left);
	shm_qp(qp)->lost_since_ns = 0;
	if (left <= 0) {
		shm_complete(qp, IBV_WC_RNR_RETRY_EXC_ERR);
		return;
	}
	if (left != 7) /* 7: for ever */
		shm_qp(qp)->rnr_tries++;
	wait_and_retry(qp, progress_now_ns(), rc_rnr_ns(timer_code));
}

/*
 * An unreliable message is lost if the peer does not exist, but not because the link is
 * still being made, as programs know nothing of links. So it waits for the link, but
 * not without a limit (SHM_GONE_LIMIT_NS).
 */
void shm_wait_for_link(struct hca_qp *qp)
{
	uint64_t now = progress_now_ns();

	shm_lost_for_ns(qp, now);
	shm_retry_at(qp, now + ((uint64_t)SHM_LINK_WAIT_NS << MIN(shm_qp(qp)->lost_tries++, 9u)));
}
