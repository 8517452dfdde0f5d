/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that leave: into the ring, again when they were refused or lost, and the
 * wake-up of the peer.
 */
#ifndef TRANSPORT_SHM_SEND_H
#define TRANSPORT_SHM_SEND_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/public.h"
#include "hca/qp.h"
#include "hca/sq.h"
#include "transport/shm/state.h"
#include "util/container_of.h"

struct shm_header;
struct shm_slot;

void shm_transmit(struct hca_qp *qp);

/* Of a UC QP without a peer: what is sent is lost. sq_lock is held. */
void shm_lose_unreliable(struct hca_qp *qp);

/* The QP tries again when the link has moved on, or is up. sq_lock is held. */
void shm_backlog_wait(struct shm_link *l, struct hca_qp *qp);
void shm_wake(struct shm_link *l);

/* What the peer wants to be woken for. */
static inline uint32_t shm_wanted(const struct shm_link *l)
{
	/* Our slot must be visible before we look whether the peer sleeps: the
	 * peer's membarrier does that for us, unless it has none. */
	if (l->fence)
		atomic_thread_fence(memory_order_seq_cst);
	else
		atomic_signal_fence(memory_order_seq_cst);
	return atomic_load_explicit(&l->peer->wants_kick, memory_order_relaxed);
}

/* Wakes the peer if it sleeps. tx_lock or rx_lock is held. */
static inline void shm_kick(struct shm_link *l)
{
	if (unlikely(shm_wanted(l) != HCA_WAKE_NOTHING))
		shm_wake(l);
}

/* Likewise behind a datagram, whose sender waits for nothing. */
static inline void shm_kick_datagram(struct shm_link *l, const struct hca_swqe *e)
{
	uint32_t wanted = shm_wanted(l);

	if (unlikely(wanted != HCA_WAKE_NOTHING) &&
	    (wanted != HCA_WAKE_SOLICITED || e->flags & HCA_SWQE_SOLICITED))
		shm_wake(l);
}

/* Behind a request that the peer has to carry out: wakes it if nobody else would. */
void shm_wake_target(struct shm_link *l);

/* Tells the peer that our one-sided access broke its rules, and which. */
void shm_send_fault(struct hca_qp *qp, struct shm_link *l,
		    enum ibv_wc_status status);

/* The parts of transmission that the other kinds of it need, too. */
/* Is `remote`, which a peer shows, connected to this QP and in service? */
static inline bool shm_answers(const struct hca_qp *qp, const struct hca_qp_public *r)
{
	uint32_t state;

	if (!r || atomic_load_explicit(&r->qpn, memory_order_relaxed) !=
			  qp->attr.dest_qp_num)
		return false;
	state = atomic_load_explicit(&r->state, memory_order_acquire);
	return (state == IBV_QPS_RTR || state == IBV_QPS_RTS ||
		state == IBV_QPS_SQD || state == IBV_QPS_SQE) &&
	       atomic_load_explicit(&r->dest_qpn, memory_order_relaxed) ==
		       qp->ibv.qp_num &&
	       (atomic_load_explicit(&r->type, memory_order_relaxed) ==
		IBV_QPT_UC) == !shm_is_reliable(qp);
}

static inline bool shm_remote_ready(const struct hca_qp *qp)
{
	return shm_answers(qp, shm_qp(qp)->remote);
}

/* A QP that waits for room. False: it waits for another link already. sq_lock and
 * tx_lock are held. */
bool shm_backlog_add(struct shm_link *l, struct hca_qp *qp);

/* One slot: 0, -EAGAIN (no room), -EFAULT (a key), -EPERM (the QP may not do
 * it). tx_lock is held. */
int shm_put_xrc(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e,
		bool by_target);

/* To the link that its address handle and number say: as hca_transport_ops.datagram. */
int shm_send_datagram(struct hca_qp *qp, const struct hca_swqe *e);

/* As shm_put_xrc(). */
int shm_put_datagram(struct hca_qp *qp, struct shm_link *l,
		     const struct hca_swqe *e);
void shm_transmit_xrc(struct hca_qp *qp);

/*
 * The link to the owner of an SRQ. It is not taken down as long as it is
 * borrowed. NULL: there is none (yet).
 */
struct shm_link *shm_link_borrow(uint32_t srqn);

static inline void shm_link_return(struct shm_link *l)
{
	atomic_fetch_sub(&l->borrowed, 1);
}

/* The addresses of an XRC message; tx_lock is held. */
void shm_xrc_address(const struct hca_qp *qp, const struct hca_swqe *e,
		     const struct shm_slot *slot, struct shm_header *h);

/* Has `srq`, which somebody shows, the number and the domain of a message's? */
bool shm_xrc_serves(const struct hca_qp_public *srq, uint32_t srqn,
		    const struct hca_qp_public *target);

/* The SRQ's side refused a message: tells the target QP's. sq_lock is held. */
void shm_xrc_refused(struct hca_qp *qp, const struct hca_swqe *e,
		     enum ibv_wc_status status);

/* The retry timer's part: looks for the owner of the next message's SRQ. */
void shm_xrc_resolve(struct hca_qp *qp);

/* A link has ended: what was on the way through it is lost. shm.lock is held,
 * and nobody transmits through the link any more. */
void shm_xrc_link_lost(struct shm_link *l);

/* A datagram to all processes that have members. sq_lock is held. 0, -EFAULT, or
 * -EAGAIN: it waits for the links. */
int shm_multicast(struct hca_qp *qp, const struct hca_swqe *e);

/* The retry timer's part. */
void shm_multicast_resolve(struct hca_qp *qp);
void shm_mcast_enter(bool joined);

/* The adapter's end, also in a forked child. */
void shm_mcast_stop(void);

/* The next entry, which sends nothing (BIND_MW, LOCAL_INV). True when it is done
 * and transmission may go on. sq_lock is held. */
bool shm_local(struct hca_qp *qp);

/* The oldest entry was lost (or could not be sent): go back to it and try
 * again later, or give up when the retry time is over. sq_lock is held. */
void shm_retry_lost(struct hca_qp *qp);
void shm_retry_rnr(struct hca_qp *qp, uint8_t timer_code);

/* The retry timer's work, on the progress thread. */
void shm_retry_expired(struct hca_qp *qp);

/* Of a UC or UD QP without a link: sends when it is there. sq_lock is held. */
void shm_wait_for_link(struct hca_qp *qp);

/* Between two looks whether a link stands that a message needs, at first. */
#define SHM_LINK_WAIT_NS 20000

/* An entry of the send queue, if it is one; false: nothing was done. The caller
 * kicks. sq_lock is held. */
bool shm_transmit_plain(struct hca_qp *qp, struct shm_link *l,
			const struct hca_swqe *e);

/* Likewise a request that is not in the queue yet (qp_post of the transport's
 * table): its slot is filled first, the entry of the queue behind that. */
bool shm_post_plain(struct hca_qp *qp, const struct ibv_send_wr *wr);

#endif
