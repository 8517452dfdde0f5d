/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending messages: filling the ring, repetition of refused or lost messages, and the
 * wake-up of the peer.
 */
#ifndef TRANSPORT_SHM_MOVE_SEND_H
#define TRANSPORT_SHM_MOVE_SEND_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "transport/shm/link/state.h"
#include "util/container_of.h"

struct shm_header;
struct shm_slot;

/* hca_transport_ops.transmit: sends the entries of the send queue as far as possible.
 * Never waits. sq_lock is held. */
void shm_transmit(struct hca_qp *qp);

/* For a UC QP without a peer: completes what is queued as sent, and counts it as lost.
 * sq_lock is held. */
void shm_lose_unreliable(struct hca_qp *qp);

/* Puts the QP into the link's backlog: it transmits again after the next
 * acknowledgements, or when the link comes up. sq_lock is held; takes tx_lock. */
void shm_backlog_wait(struct shm_link *l, struct hca_qp *qp);

/* In SQD: the same as long as entries are not acknowledged. A program that waits for the end
 * need not poll, and the peer does not wake it for what is unsignaled. `l`: where they were
 * sent; NULL: nothing is done. */
void shm_watch_drain(struct hca_qp *qp, struct shm_link *l);

/* Wakes the peer, by its eventfd or through the socket. Never waits; failure is logged. */
void shm_wake(struct shm_link *l);

/* For which messages the peer wants to be woken. */
static inline uint32_t shm_wanted(const struct shm_link *l)
{
	/* Our slot must be visible before `wants_kick` is read. The peer's membarrier()
	 * ensures that, unless one of the two processes cannot use it (l->fence). */
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

/* The same after a datagram, which a peer that waits for solicited messages only need not
 * be woken for; datagrams have no acknowledgement to wait for. */
static inline void shm_kick_datagram(struct shm_link *l, const struct hca_swqe *e)
{
	uint32_t wanted = shm_wanted(l);

	if (unlikely(wanted != HCA_WAKE_NOTHING) &&
	    (wanted != HCA_WAKE_SOLICITED || e->flags & HCA_SWQE_SOLICITED))
		shm_wake(l);
}

/* After a request that the target has to carry out: wakes the peer's progress thread if
 * our program sleeps and so does not wake it by polling. */
void shm_wake_target(struct shm_link *l);

/* Tells the responder that our one-sided access was refused, with the status. False: the ring is
 * full, and nothing was sent. Takes tx_lock. */
bool shm_send_fault(struct hca_qp *qp, struct shm_link *l,
		    enum ibv_wc_status status);

/* True if `r`, the public part of a peer's QP, is connected to this QP by the same service
 * and in a state that receives. */
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

/* Puts the QP into the link's backlog. False: it is in the backlog of another link
 * already. sq_lock and tx_lock are held. */
bool shm_backlog_add(struct shm_link *l, struct hca_qp *qp);

/* Fills one slot for the next entry: 0, -EAGAIN (no room), -EFAULT (a key does not allow
 * it), -EPERM (the QP may not do it). tx_lock is held. */
int shm_put_xrc(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e,
		bool by_target);

/* hca_transport_ops.datagram. */
int shm_send_datagram(struct hca_qp *qp, const struct hca_swqe *e);

/* Fills one slot; result and lock as for shm_put_xrc(). */
int shm_put_datagram(struct hca_qp *qp, struct shm_link *l,
		     const struct hca_swqe *e);
void shm_transmit_xrc(struct hca_qp *qp);

/*
 * The link to the owner of an SRQ, which is not taken down before shm_link_return().
 * NULL: there is none (yet).
 */
struct shm_link *shm_link_borrow(uint32_t srqn);

static inline void shm_link_return(struct shm_link *l)
{
	atomic_fetch_sub(&l->borrowed, 1);
}

/* Fills the header fields of an XRC message (struct shm_xrc_header); tx_lock is held. */
void shm_xrc_address(const struct hca_qp *qp, const struct hca_swqe *e,
		     const struct shm_slot *slot, struct shm_header *h);

/* True if `srq`, a peer's public part or NULL, has the number `srqn` and the XRC domain of
 * the target QP. */
bool shm_xrc_serves(const struct hca_qp_public *srq, uint32_t srqn,
		    const struct hca_qp_public *target);

/* The process of the SRQ refused a message: tells the target QP's process. sq_lock is
 * held. */
void shm_xrc_refused(struct hca_qp *qp, const struct hca_swqe *e,
		     enum ibv_wc_status status);

/* For the retry timer: makes the link to the owner of the next message's SRQ; fails the
 * message if nobody owns it. */
void shm_xrc_resolve(struct hca_qp *qp);

/* For a link that ends: waits until it is not borrowed, and repeats the XRC messages that
 * were outstanding on it. shm.lock is held, and nothing new is sent through the link. */
void shm_xrc_link_lost(struct shm_link *l);

/* Sends a datagram to all processes that may have members. sq_lock is held. 0, -EFAULT, or
 * -EAGAIN: it waits for links being made. */
int shm_multicast(struct hca_qp *qp, const struct hca_swqe *e);

/* For the retry timer: makes the links for multicast. Takes sq_lock and shm.lock. */
void shm_multicast_resolve(struct hca_qp *qp);

/* hca_local_ops.group_enter. */
void shm_mcast_enter(bool joined);

/* Gives up the name; when the adapter stops, and in a forked child. */
void shm_mcast_stop(void);

/* Carries out the next entry, which sends nothing (BIND_MW, LOCAL_INV). True when it is
 * complete and transmission may go on. sq_lock is held. */
bool shm_local(struct hca_qp *qp);

/* The oldest entry was lost (or could not be sent): goes back to it and tries
 * again later, or completes it with an error when the retry time is over. sq_lock is
 * held. */
void shm_retry_lost(struct hca_qp *qp);

/* The same if the receiver was not ready; after the time of its RNR timer code. */
void shm_retry_rnr(struct hca_qp *qp, uint8_t timer_code);

/* The function of the retry timer; progress thread. */
void shm_retry_expired(struct hca_qp *qp);

/* For a UC or UD QP without a link: arms the retry timer, which makes the link. sq_lock is
 * held. */
void shm_wait_for_link(struct hca_qp *qp);

/* The first interval after which it is checked whether a link is up. */
#define SHM_LINK_WAIT_NS 20000

/* Sends the next entry if it is a usual message (plain.c); false: nothing was done. The
 * caller calls shm_kick(). sq_lock is held. */
bool shm_transmit_plain(struct hca_qp *qp, struct shm_link *l,
			const struct hca_swqe *e);

/* The same for a request that is not in the send queue yet (hca_transport_ops.post): its
 * slot is filled first, then the entry of the queue. */
bool shm_post_plain(struct hca_qp *qp, const struct ibv_send_wr *wr);

#endif
