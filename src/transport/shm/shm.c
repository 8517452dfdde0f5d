/* SPDX-License-Identifier: BSD-2-Clause */
/* Transport shm: the table of its functions for the hca (hca/path/transport.h); see state.h. */
#define LOG_ROOM "shm"
#include <errno.h>

#include "hca/object/cq.h"
#include "hca/object/qp.h"
#include "hca/run/elide.h"
#include "transport/list.h"
#include "transport/shm/join/join.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/slot.h"
#include "transport/shm/link/state.h"
#include "transport/shm/link/wake.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/move/send.h"
#include "transport/shm/reach/copiers.h"
#include "transport/shm/reach/copy.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/watch/faults.h"
#include "transport/shm/watched.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"

#define SHM_COST 10 /* of a path, see hca_transport_ops.reach */

static int shm_start(void)
{
	shm_links_start();
	shm_copies_start();
	return 0;
}

static void shm_stop(void)
{
	shm_mcast_stop();
	shm_copies_stop();
	shm_links_stop();
}

static void shm_forked(void)
{
	shm_links_forked();
	shm_mcast_stop();
	shm_copiers_forked();
}

static int shm_qp_open(struct hca_qp *qp)
{
	list_init(&shm_qp(qp)->link_entry);
	list_init(&shm_qp(qp)->backlog_entry);
	list_init(&shm_qp(qp)->copy_entry);
	shm_qp(qp)->event_sends = qp->ibv.send_cq && qp->ibv.send_cq->channel;
	shm_links_settle();
	/* Messages of an earlier connection of this QP are in the rings by now, as its
	 * peer ended it before the programs agreed on the new connection. They are
	 * received here, while the QP still drops everything. */
	shm_each_link(l)
		if (atomic_load(&l->state) == SHM_LINK_UP)
			shm_receive_rest(l);
	return 0;
}

static int shm_qp_connect(struct hca_qp *qp)
{
	/* A missing peer is no error: transmission retries. An XRC target sends nothing,
	 * but needs the link to check where its messages come from. */
	if (qp->ibv.qp_type != IBV_QPT_UD)
		shm_qp_resolve(qp, true);
	return 0;
}

/* To every address of the host, and to the multicast groups of its processes. */
static int shm_reach(const struct hca_destination *to)
{
	return !to->ah || to->local || to->multicast ? SHM_COST : -EHOSTUNREACH;
}

static void shm_qp_kick(struct hca_qp *qp)
{
	shm_kick(shm_qp(qp)->link);
}

/* A poll that received something does not process acknowledgements, as the application
 * may want to answer at once; except one in so many. */
#define POLLS_TO_HARVEST 16

static inline bool got_one(struct hca_cq *cq, bool direct)
{
	return direct ? !cq->direct : !hca_cq_empty(cq);
}

/* ack_lock is held, and the link is up. */
static inline bool harvest(struct shm_link *l, struct hca_cq *cq)
{
	bool acks = !cq || atomic_load_explicit(&cq->sends, memory_order_relaxed);
	bool look, due;

	/* The progress thread (no `cq`) may sleep afterwards, so it always processes the
	 * peer's struct shm_ack. */
	due = shm_harvest_due(l, acks, &look);
	if (acks && cq && shm_promises_due(l) && shm_take_promises(l))
		return true;
	return (due || unlikely(!cq)) && shm_harvest(l, look || !cq);
}

static inline bool poll_link(struct shm_link *l, struct hca_cq *cq, bool wait)
{
	bool moved = false, postpone = false, direct = cq && cq->direct;

	if (likely(shm_lock_for(&l->rx_lock, wait))) {
		/* With the lock held the link's memory stays mapped. */
		if (likely(shm_link_is_up(l)) &&
		    shm_slot_ready(l, atomic_load_explicit(
					      &l->rx_pos,
					      memory_order_relaxed))) {
			moved = shm_receive(l);
			postpone = cq && got_one(cq, direct) && ++l->received % POLLS_TO_HARVEST;
		}
		hca_unlock(&l->rx_lock);
		if (likely(postpone))
			return true;
	}
	/* The acknowledgement may be here already, and this thread is about to sleep. */
	if (unlikely(wait))
		shm_wait_for_sender(l);
	/* If nothing is outstanding, another thread may still be completing it: with
	 * `wait` the lock is taken to wait for that thread. */
	if ((shm_outstanding(l) || unlikely(wait)) && likely(shm_lock_for(&l->ack_lock, wait))) {
		/* The link may have ended meanwhile, and its structure be in use for another
		 * peer. */
		if (likely(shm_link_is_up(l)))
			moved |= harvest(l, cq);
		hca_unlock(&l->ack_lock);
	}
	return moved;
}

/* See struct shm. */
static __attribute__((noinline, cold)) void harvest_put_off(struct hca_cq *cq, unsigned count)
{
	if (cq && !atomic_load_explicit(&cq->sends, memory_order_relaxed))
		return;
	atomic_store_explicit(&shm.put_off, false, memory_order_relaxed);
	for (unsigned i = 0; i < count; i++) {
		hca_lock(&shm.links[i]->ack_lock);
		shm_harvest(shm.links[i], true);
		hca_unlock(&shm.links[i]->ack_lock);
	}
}

static bool shm_poll(struct hca_cq *cq, bool wait)
{
	unsigned count = atomic_load_explicit(&shm.link_count, memory_order_acquire);
	bool moved = false;

	if (unlikely(wait))
		shm_copy_hurry();
	if (unlikely(!hca_self.elided && atomic_load_explicit(&shm.put_off, memory_order_relaxed)))
		harvest_put_off(cq, count);
	for (unsigned i = 0; i < count; i++) {
		struct shm_link *l = shm.links[i];

		if (!shm_link_is_up(l))
			continue;
		moved |= poll_link(l, cq, wait);
	}
	return moved;
}

static bool shm_peer_ran_on(unsigned cpu)
{
	bool any = false;

	hca_enter();
	shm_each_link(l) {
		if (any || !shm_link_is_up(l) || !hca_trylock(&l->rx_lock))
			continue;
		/* With the lock held the peer's segment stays mapped. */
		if (shm_link_is_up(l)) {
			uint32_t on = atomic_load_explicit(&l->peer->polled_on,
							   memory_order_relaxed);

			any = !on || on == cpu + 1;
		}
		hca_unlock(&l->rx_lock);
	}
	hca_leave();
	return any;
}

static bool shm_pending(void)
{
	shm_each_link(l)
		if (atomic_load(&l->state) == SHM_LINK_UP && atomic_load(&l->backlog))
			return true;
	return false;
}

static const struct hca_transport_ops *shm_variant(void)
{
	return shm_watched_variant(&shm_ops);
}

static const struct hca_local_ops shm_local_ops = {
	.block_claimed = shm_block_claimed,
	.group_enter = shm_mcast_enter,
	.region_gone = shm_region_gone,
};

const struct hca_transport_ops shm_ops = {
	.name = "shm",
	.serves_host = true,
	.variant = shm_variant,
	.start = shm_start,
	.stop = shm_stop,
	.forked = shm_forked,
	.faults = shm_faults_set,
	.reach = shm_reach,
	.open = shm_qp_open,
	.connect = shm_qp_connect,
	.close = shm_qp_forget,
	.post = shm_post_plain,
	.kick = shm_qp_kick,
	.transmit = shm_transmit,
	.datagram = shm_send_datagram,
	.posted = shm_posted,
	.expired = shm_retry_expired,
	.poll = shm_poll,
	.peer_ran_on = shm_peer_ran_on,
	.pending = shm_pending,
	.fence = {
		.qp = shm_qp_fence,
		.key = shm_key_fence,
		.key_busy = shm_key_busy,
		.srq = shm_srq_forget,
	},
	.local = &shm_local_ops,
};
