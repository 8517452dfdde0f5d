/* SPDX-License-Identifier: BSD-2-Clause */
/* The responder's side: requests of the peer, and the answers to them. receive_lock is held, unless a
 * comment says otherwise. */
#ifndef TRANSPORT_PACKET_RESPONDER_H
#define TRANSPORT_PACKET_RESPONDER_H

#include "transport/packet/base/state.h"

struct packet_train;

/* ---- access.c ---- */
/* PACKET_ATOMIC: only to check whether it is allowed. */
enum packet_access { PACKET_WRITE, PACKET_READ, PACKET_ATOMIC };
/* `bytes` at `data` and, `more` times, at `stride` behind. */
struct packet_payload {
	uint8_t *data;
	uint32_t bytes, more, stride;
};
/* A peer's access to [addr + at, ...) of [addr, + length), which is allowed as a whole:
 * IBV_WC_SUCCESS, or the status for the peer. `p` NULL: only checks whether it is allowed. */
enum ibv_wc_status packet_access(const struct packet_qp *pq, uint32_t pd_id,
				 enum packet_access what, uint32_t rkey, uint64_t addr,
				 uint64_t length, uint64_t at, const struct packet_payload *p);
/* An atomic operation, or a WRITE of a word (RC_WORD, the word at `data`). */
enum ibv_wc_status packet_atomic(const struct packet_qp *pq, uint32_t pd_id,
				 const struct rc_packet *p, const void *data,
				 uint64_t *old);

/* ---- demand.c; the port has `demand` ---- */
/* Are the pages there that the request needs, a receive among them? False: it gets an RNR NAK, or
 * its answer, later. */
bool packet_target_there(struct packet_qp *pq, const struct packet_frame *f,
			 const struct rc_look *look, const struct hca_rwqe *receive);

/* ---- xrc.c ---- */
/* Makes the target's stand-in; 0 or -ENOMEM. No lock is held. */
int packet_xrc_new(struct packet_qp *pq);
void packet_xrc_open(struct packet_qp *pq);
void packet_xrc_close(struct packet_qp *pq);
/* Attaches the stand-in to the SRQ that the request names. 0; -EACCES: there is no such SRQ, or it is
 * of another domain; -EINVAL: the message began with another one. */
int packet_xrc_attach(struct packet_qp *pq, const struct packet_frame *f);
/* The SRQ goes: no target uses it any more. No lock is held. */
void packet_srq_forget(struct packet_port *port, struct hca_srq *srq);

/* ---- respond.c ---- */
/* Counts a request of the program that left before the poll behind that which brought the peer's. Any
 * lock or none. */
void packet_count_reply(struct packet_qp *pq);
/* Adds the acknowledgement that is owed to a train of requests to the same peer, if there is
 * one and it fits. True: when the train has left, rc_responded() is to be called for *r. */
bool packet_join_acknowledgement(struct packet_qp *pq, struct packet_train *train,
				 struct rc_response *r);
/* All responders that owe answers take their turns; those that have more to send are queued again.
 * True: some were sent. */
bool packet_run_answers(struct packet_port *port);
/* Sends up to `budget` answers. True: there are more, or the carrier has no room. */
bool packet_respond(struct packet_qp *pq, unsigned budget, bool *moved);
/* Acknowledges the requests that were carried out, at the end of the queue pair's service. */
void packet_acknowledge(struct packet_qp *pq);
/* May the acknowledgement of a message that is complete wait for the program's reply, though a queue
 * is armed? Only on a thread of the program that was woken by the message and so is the one that
 * takes the event, where such threads usually reply. */
bool packet_defers_acknowledgement(const struct packet_qp *pq);
/* The queue pair ends because a peer's access was refused with this status. */
void packet_refuse(struct packet_qp *pq, enum ibv_wc_status status);

/* ---- request.c ---- */
/* A request of the peer, or a run of them. Returns how many packets of the run were taken, as far as
 * one look at them was enough: at least 1. */
uint32_t packet_request(struct packet_qp *pq, const struct packet_frame *f,
			const uint8_t *payload);

#endif
