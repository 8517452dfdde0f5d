/* SPDX-License-Identifier: BSD-2-Clause */
/* Sending messages: filling the ring, and repetition of refused or lost messages. */
#ifndef TRANSPORT_SHM_MOVE_SEND_H
#define TRANSPORT_SHM_MOVE_SEND_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "transport/shm/link/state.h"
#include "transport/shm/ring/ring.h"
#include "util/clock.h"

/* hca_transport_ops.transmit: sends the entries of the send queue as far as possible.
 * Never waits. sq_lock is held. */
void shm_transmit(struct hca_qp *qp);

/* For a UC QP without a peer: completes what is queued as sent, and counts it as lost.
 * sq_lock is held. */
void shm_lose_unreliable(struct hca_qp *qp);

/* hca_transport_ops.datagram. */
int shm_send_datagram(struct hca_qp *qp, const struct hca_swqe *e);

void shm_transmit_xrc(struct hca_qp *qp);

/* The process of the SRQ refused a message: tells the target QP's process. sq_lock is
 * held. */
void shm_xrc_refused(struct hca_qp *qp, const struct hca_swqe *e, enum ibv_wc_status status);

/* True if the next message waits for the link to the owner of its SRQ, whose number is *srqn.
 * sq_lock is held. */
bool shm_xrc_waits_for(struct hca_qp *qp, uint32_t *srqn);

/* Nobody owns the SRQ: fails the message that waits for the link. Takes sq_lock. */
void shm_xrc_unknown(struct hca_qp *qp, uint32_t srqn);

/* For a link that ends: waits until it is not borrowed, and repeats the XRC messages that
 * were outstanding on it. shm.lock is held, and nothing new is sent through the link. */
void shm_xrc_link_lost(struct shm_link *l);

/* Carries out the next entry, which sends nothing (BIND_MW, LOCAL_INV). True when it is
 * complete and transmission may go on. sq_lock is held. */
bool shm_local(struct hca_qp *qp);

/* Transmission starts again at the oldest entry; acknowledgements of what was sent are ignored.
 * sq_lock is held. */
void shm_go_back(struct hca_qp *qp);

/* The oldest entry was lost (or could not be sent): goes back to it and tries
 * again later, or completes it with an error when the retry time is over. sq_lock is
 * held. */
void shm_retry_lost(struct hca_qp *qp);

/* The same if the receiver was not ready; after the time of its RNR timer code. */
void shm_retry_rnr(struct hca_qp *qp, uint8_t timer_code);

/* For a UC or UD QP without a link: arms the retry timer, which makes the link. sq_lock is
 * held. */
void shm_wait_for_link(struct hca_qp *qp);

/* The first interval after which it is checked whether a link is up. */
#define SHM_LINK_WAIT_NS 20000

/* How long datagrams to groups wait for links being made. */
#define SHM_MULTICAST_LIMIT_NS NSEC_PER_SEC

/* A timeout of 0 means no limit. Without a link to the peer this limit is used all the
 * same, as a process that has ended does not come back under its QP number. */
#define SHM_GONE_LIMIT_NS (4 * NSEC_PER_SEC)

/* Sends the next entry if it is a usual message (plain.c); false: nothing was done. The
 * caller calls shm_kick(). sq_lock is held. */
bool shm_transmit_plain(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e);

/* The same for a request that is not in the send queue yet (hca_transport_ops.post): its
 * slot is filled first, then the entry of the queue. */
bool shm_post_plain(struct hca_qp *qp, const struct ibv_send_wr *wr);

/* ---- put.c ---- */

/* Fills one slot of a message for the next entry of a connected QP. tx_lock is held. 0, -EAGAIN
 * (no room), -EFAULT (a key does not allow it) or -EPERM (the QP may not do it). The buffers of
 * an unreliable message are not needed afterwards, as it is complete when it is sent. */
int shm_put_message(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e);

/* The same for a WRITE or READ that the target carries out (target.c). */
int shm_put_request(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e);

/* Tells the responder that our one-sided access was refused, with the status. False: the ring is
 * full, and nothing was sent. Takes tx_lock. */
bool shm_send_fault(struct hca_qp *qp, struct shm_link *l, enum ibv_wc_status status);

#endif
