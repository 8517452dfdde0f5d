/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Multicast inside a host: a datagram to a group is copied to every process whose
 * segment says that it may have members (a filter, see hca/mcast.c), and given
 * to the members there.
 *
 * Who joins a group links with all processes that have a QP, and so does a QP
 * before its first datagram to a group; so whichever comes second finds the
 * other, and sending is a look at the links.
 *
 * A process that does not take its messages in loses datagrams; the others do
 * not wait for it.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <time.h>

#include "transport/shm/shm.h"
#include "util/clock.h"
#include "util/log.h"

#define REACH_WAIT_NS 500000 /* between two looks at the links being made */
#define REACH_LIMIT_NS NSEC_PER_SEC

/* tx_lock is held. */
static bool may_have_members(const struct shm_link *l, unsigned bit)
{
	if (atomic_load_explicit(&l->state, memory_order_acquire) != SHM_LINK_UP)
		return false;
	/* Of the two ends of the link with ourselves only one is used. */
	if (l->target_block == 0 && shm_uuid_is(l, hca_process.uuid))
		return false;
	return atomic_load_explicit(&l->peer->mcast_filter[bit / 64],
				    memory_order_relaxed) >> bit % 64 & 1;
}

static int send_copy(struct hca_qp *qp, struct shm_link *l,
		     const struct hca_swqe *e)
{
	int ret = 0;

	spin_lock(&l->tx_lock);
	if (may_have_members(l, e->ud.ah->mcast_bit)) {
		/* For shm_posted(): acknowledgements are to be seen to. */
		atomic_store_explicit(&qp->link, l, memory_order_relaxed);
		ret = shm_put_datagram(qp, l, e);
		if (!ret)
			shm_kick(l);
	}
	spin_unlock(&l->tx_lock);
	return ret == -EAGAIN ? 0 : ret; /* full: lost */
}

int shm_multicast(struct hca_qp *qp, const struct hca_swqe *e)
{
	unsigned count = atomic_load_explicit(&shm.link_count,
					      memory_order_acquire);

	if (unlikely(!qp->mcast_ready)) {
		qp->tx_blocked = HCA_TX_RETRY_WAIT;
		progress_timer_arm(&qp->retry,
				   progress_now_ns() +
					   (qp->lost_since_ns ? REACH_WAIT_NS : 0));
		return -EAGAIN;
	}
	/* With any other number it is no multicast datagram: nobody's. */
	if (e->ud.qpn != HCA_QPN_MULTICAST)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		int ret = send_copy(qp, shm.links[i], e);

		if (ret)
			return ret;
	}
	return 0;
}

void shm_multicast_resolve(struct hca_qp *qp)
{
	uint64_t now = progress_now_ns();
	bool pending;

	pthread_mutex_lock(&shm.lock);
	pending = shm_reach_all();
	pthread_mutex_unlock(&shm.lock);
	spin_lock(&qp->sq_lock);
	if (!qp->lost_since_ns)
		qp->lost_since_ns = now;
	/* Who does not answer within the time is done without. */
	if (!pending || now - qp->lost_since_ns > REACH_LIMIT_NS)
		qp->mcast_ready = true;
	spin_unlock(&qp->sq_lock);
}

void shm_mcast_joined(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += REACH_LIMIT_NS / NSEC_PER_SEC;
	pthread_mutex_lock(&shm.lock);
	while (shm_reach_all() && !progress_is_self())
		if (pthread_cond_timedwait(&shm.changed, &shm.lock, &until))
			break;
	pthread_mutex_unlock(&shm.lock);
}
