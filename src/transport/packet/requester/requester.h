/* SPDX-License-Identifier: BSD-2-Clause */
/* The requester's side: what a queue pair sends, and the answers that complete it. */
#ifndef TRANSPORT_PACKET_REQUESTER_H
#define TRANSPORT_PACKET_REQUESTER_H

#include "transport/packet/base/state.h"
#include "transport/packet/base/train.h"

/* ---- gather.c ---- */
/* Adds the packet that was begun and those behind it in its run to the train, which has room for them.
 * Returns how many were added; 0: none, for want of memory, and the packet can be added with pieces;
 * -EFAULT: a key does not allow the first one. To be called between hca_copy_begin() and
 * hca_copy_end(). sq_lock is held. */
int packet_add_run(struct packet_qp *pq, struct packet_train *train, const struct hca_swqe *e,
		   struct rc_tx *tx);

/* ---- requester.c; sq_lock is held ---- */
/* The longest payload of a connection. */
uint32_t packet_mtu(const struct packet_qp *pq);
void packet_requester_open(struct packet_qp *pq, uint32_t psn);
/* Brings the requester to the state of the send queue, which may have been flushed. */
void packet_settle(struct packet_qp *pq);
/* Completes what the engine has decided. False: the queue pair has failed. */
bool packet_finish(struct packet_qp *pq, struct work_done done);
/* Arms the timer for the engine's next deadline. */
void packet_arm(struct packet_qp *pq);
/* ---- late.c; sq_lock is held, unless a comment says otherwise ---- */
/* A message of UC has left, which completes `done`; `requests` is pq->requests before it left. True:
 * that waits, because an answer of the peer will come soon. */
bool packet_completes_late(struct packet_qp *pq, struct work_done done, unsigned requests,
			   uint64_t now_ns);
static inline uint64_t packet_late_until_ns(const struct packet_qp *pq)
{
	return atomic_load_explicit(&pq->late_until_ns, memory_order_relaxed);
}
/* Completes what waits, if there is no more reason to wait. False: the queue pair has failed. */
bool packet_complete_late(struct packet_qp *pq);
/* A packet of UC has come, for which a completion may wait. receive_lock is held, sq_lock is not. */
void packet_heard(struct packet_qp *pq);
/* As the entry of hca_transport_ops: what has left is complete, and is not flushed. */
void packet_failed(struct hca_qp *qp);

/* ---- requester.c; sq_lock is held ---- */
/* Why a requester sends again. */
enum packet_cause {
	PACKET_TIMEOUT,
	PACKET_RNR,       /* the receiver was not ready */
	PACKET_GAP,       /* a packet is missing, as an answer shows */
	PACKET_DISCARDED, /* this side had no page for the answer */
};
/* Counts a going back, if there was one since the last time; the next entry to be sent
 * was `next_before`. */
void packet_count_repeated(struct packet_qp *pq, uint32_t next_before, enum packet_cause cause);
/* An answer of the peer, or a run of responses. Returns how many packets of the run were taken:
 * at least 1. receive_lock is held, sq_lock is not. */
uint32_t packet_reply(struct packet_qp *pq, const struct packet_frame *f,
		      const uint8_t *payload);
/* A notification of congestion (CNP), of UC, too. It completes nothing. As packet_reply(). */
void packet_notified(struct packet_qp *pq, const struct packet_frame *f);

/* ---- demand.c; the port has `demand`, and sq_lock is held ---- */
/* The times and numbers that differ from those of the attributes. */
void packet_demand_limits(const struct packet_qp *pq, struct rc_requester_params *p);
/* The packet is about to be added to the train, and those of its run that are as it is:
 * tx->packet.more is lowered to 0 if not all are. 0; -ENOENT: pages of its payload are
 * missing, and an event will follow; -ENOBUFS: the train has to leave first, because the packet gets
 * lost behind the adapter, or those of the train do. */
int packet_demand_send(struct packet_qp *pq, struct packet_train *train,
		       const struct hca_swqe *e, struct rc_tx *tx);
/* A wait to send again may be over: what was posted in it is known now. */
void packet_demand_resume(struct packet_qp *pq, uint64_t now_ns);
/* All has left that may leave now: what is sent later does not get lost. */
void packet_demand_sent(struct packet_qp *pq);
/* Is the answer discarded, because the queue pair waits, or because the pages of its place are
 * missing? Then the queue pair waits. receive_lock is held, too. */
bool packet_discards(struct packet_qp *pq, const struct packet_frame *f,
		     const struct rc_place *where, const struct hca_swqe *e);
/* An answer was taken. */
void packet_demand_replied(struct packet_qp *pq, const struct packet_frame *f);
/* A fault of the side of the requester was served. sq_lock is not held. */
void packet_source_event(struct packet_qp *pq);

/* ---- send.c ---- */
/* As the entry of hca_transport_ops. */
void packet_transmit(struct hca_qp *qp);

#endif
