/* SPDX-License-Identifier: BSD-2-Clause */
/* Transport shm: what the hca calls; see shm.h. */
#define LOG_ROOM "shm"
#include "transport/shm/shm.h"

#include "util/log.h"

struct shm shm = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
};

static void shm_qp_clear(struct hca_qp *qp)
{
	unsigned count;

	shm_links_settle();
	count = atomic_load(&shm.link_count);
	/* The QP accepts nothing yet. Whoever was connected to it had ended
	 * that before the programs agreed on this connection, so all of its
	 * messages are in the rings by now. */
	for (unsigned i = 0; i < count; i++)
		if (atomic_load(&shm.links[i]->state) == SHM_LINK_UP)
			shm_receive_rest(shm.links[i]);
}

static int shm_qp_connect(struct hca_qp *qp)
{
	/* A peer that is not there yet is no error: transmission retries. An
	 * XRC target sends nothing and has to know all the same whom to believe. */
	if (qp->ibv.qp_type != IBV_QPT_UD)
		shm_qp_resolve(qp, true);
	return 0;
}

static void shm_qp_kick(struct hca_qp *qp)
{
	shm_kick(qp->link);
}

/* Acknowledgements wait for the next poll, but not for ever, when the application
 * got what it polls for: it may want to answer. */
#define POLLS_TO_HARVEST 16

static inline bool got_one(struct hca_cq *cq, bool direct)
{
	return direct ? !cq->direct : !hca_cq_empty(cq);
}

static inline bool poll_link(struct shm_link *l, struct hca_cq *cq, bool wait)
{
	bool moved = false, postpone = false, direct = cq && cq->direct;

	if (likely(shm_lock_for(&l->rx_lock, wait))) {
		/* Under the lock the memory stays. */
		if (likely(atomic_load_explicit(&l->state,
						memory_order_acquire) ==
			   SHM_LINK_UP) &&
		    shm_slot_ready(l, atomic_load_explicit(
					      &l->rx_pos,
					      memory_order_relaxed))) {
			moved = shm_receive(l);
			postpone = cq && got_one(cq, direct) &&
				   ++l->received % POLLS_TO_HARVEST;
		}
		hca_unlock(&l->rx_lock);
		if (likely(postpone))
			return true;
	}
	/* A slot of ours may be visible and not counted yet, and its
	 * acknowledgement here already: nobody would tell us again. */
	if (unlikely(wait)) {
		hca_lock(&l->tx_lock);
		hca_unlock(&l->tx_lock);
	}
	/* Nothing outstanding may mean that another thread is at it: who waits
	 * for that also waits for what it completes. */
	if ((shm_outstanding(l) || unlikely(wait)) &&
	    likely(shm_lock_for(&l->ack_lock, wait))) {
		bool acks = !cq || atomic_load_explicit(&cq->sends,
							memory_order_relaxed);
		bool look, due;

		/* Who goes to sleep afterwards must not leave anything in the
		 * peer's line: no other look follows. */
		due = shm_harvest_due(l, acks, &look);
		if (acks && cq && shm_promises_due(l) && shm_take_promises(l))
			moved = true;
		else if (due || unlikely(!cq))
			moved |= shm_harvest(l, look || !cq);
		hca_unlock(&l->ack_lock);
	}
	return moved;
}

static bool shm_poll(struct hca_cq *cq, bool wait)
{
	unsigned count = atomic_load_explicit(&shm.link_count,
					      memory_order_acquire);
	bool moved = false;

	for (unsigned i = 0; i < count; i++) {
		struct shm_link *l = shm.links[i];

		if (atomic_load_explicit(&l->state, memory_order_acquire) !=
		    SHM_LINK_UP)
			continue;
		moved |= poll_link(l, cq, wait);
	}
	return moved;
}

static bool shm_pending(void)
{
	unsigned count = atomic_load(&shm.link_count);

	for (unsigned i = 0; i < count; i++) {
		struct shm_link *l = shm.links[i];

		if (atomic_load(&l->state) == SHM_LINK_UP &&
		    atomic_load(&l->backlog))
			return true;
	}
	return false;
}

static const struct hca_transport_ops shm_ops = {
	.name = "shm",
	.start = shm_links_start,
	.stop = shm_links_stop,
	.block_claimed = shm_block_claimed,
	.qp_clear = shm_qp_clear,
	.qp_connect = shm_qp_connect,
	.qp_post = shm_post_plain,
	.qp_kick = shm_qp_kick,
	.qp_transmit = shm_transmit,
	.qp_posted = shm_posted,
	.qp_retry = shm_retry_expired,
	.qp_forget = shm_qp_forget,
	.qp_fence = shm_qp_fence,
	.key_fence = shm_key_fence,
	.srq_forget = shm_srq_forget,
	.mcast_enter = shm_mcast_enter,
	.key_busy = shm_key_busy,
	.region_gone = shm_region_gone,
	.poll = shm_poll,
	.pending = shm_pending,
	.forked = shm_links_forked,
};

__attribute__((constructor)) static void shm_register(void)
{
	hca_transport_register(&shm_ops);
}
