/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers that responders owe: acknowledgements, NAKs and the responses to READs. */
#include <errno.h>

#include "hca/event/async.h"
#include "hca/queue/flush.h"
#include "hca/share/arrival.h"
#include "transport/packet/base/train.h"
#include "transport/packet/responder/responder.h"

/* replies_before_polling() is true from so many replies on. */
#define REPLIES_TO_WAIT 2
#define REPLIES_MOST 8u
#define ANSWER_BUDGET 16u /* packets, or a train, of one responder before the turn of the others */

void packet_refuse(struct packet_qp *pq, enum ibv_wc_status status)
{
	HCA_COUNT_RARE(pq->qp, RX_ACCESS_FAULTS, 1);
	/* In this order: a thread that reads the event finds the state. */
	hca_qp_fail(pq->qp);
	if (status != IBV_WC_REM_OP_ERR) /* that completes with an error */
		hca_async_qp_event(pq->qp, status == IBV_WC_REM_INV_REQ_ERR ?
						   IBV_EVENT_QP_REQ_ERR :
						   IBV_EVENT_QP_ACCESS_ERR);
}

/* Adds a response to a READ, or a run of them, for which the train has room. */
static enum ibv_wc_status add_responses(struct packet_qp *pq, struct packet_train *train,
					const struct rc_response *r)
{
	const uint32_t pd_id = pq->read_pd[pq->responder.resources_answered % RC_RESOURCES_MAX];
	struct packet_payload p = { .bytes = r->packet.bytes, .more = r->packet.more };
	enum ibv_wc_status status;

	p.data = packet_train_place(train, p.bytes, &p.stride);
	status = packet_access(pq, pd_id, PACKET_READ, r->rkey, r->remote_addr,
			       p.bytes * (1 + p.more), 0, &p);
	for (uint32_t i = 0; status == IBV_WC_SUCCESS && i <= p.more; i++)
		packet_train_placed(train, &r->packet, i);
	return status;
}

/* Adds the answer, or as many of a run as leave together: r->packet.more is lowered to them. 0;
 * -ENOBUFS: the train has to leave first; -EACCES: the memory may not be read any more, see
 * *status. */
static int add_answer(struct packet_qp *pq, struct packet_train *train,
		      struct rc_response *r, enum ibv_wc_status *status)
{
	struct packet_frame f = {
		.rc = r->packet,
		.service = pq->service,
		.dst_qpn = pq->qp->attr.dest_qp_num,
		.src_qpn = pq->qp->ibv.qp_num,
	};

	f.rc.more = 0;
	if (!packet_train_begin(train, &f))
		return -ENOBUFS;
	if (r->packet.more)
		r->packet.more = MIN(r->packet.more,
				     packet_train_room(train, r->packet.bytes) - 1);
	/* The response to a FLUSH or an ATOMIC WRITE has no bytes either. */
	if (r->packet.op == RC_READ_RESPONSE && r->packet.bytes) {
		*status = add_responses(pq, train, r);
		if (unlikely(*status != IBV_WC_SUCCESS))
			return -EACCES;
	} else {
		packet_train_end(train, 0);
	}
	/* rc_responded() has to be called for it before the next answer. */
	train->ended |= r->packet.op != RC_READ_RESPONSE;
	return 0;
}

static void fetch_failed(struct packet_qp *pq, const struct rc_response *r,
			 enum ibv_wc_status status)
{
	rc_responded(&pq->responder, r,
		     status == IBV_WC_REM_ACCESS_ERR ? RC_NO_ACCESS : RC_NO_OPERATION);
	HCA_COUNT_RARE(pq->qp, RX_NAKS_SENT, 1);
	packet_refuse(pq, status);
}

/* Does the program reply to what it receives before it polls again? */
static bool replies_before_polling(const struct packet_qp *pq)
{
	return atomic_load_explicit(&pq->replies, memory_order_relaxed) >= REPLIES_TO_WAIT;
}

bool packet_defers_acknowledgement(const struct packet_qp *pq)
{
	return hca_self.waits_for && hca_arrival_aside() && replies_before_polling(pq);
}

void packet_count_reply(struct packet_qp *pq)
{
	unsigned replies = atomic_load_explicit(&pq->replies, memory_order_relaxed);

	if (replies < REPLIES_MOST)
		atomic_store_explicit(&pq->replies, replies + 1, memory_order_relaxed);
}

/* An acknowledgement has waited in vain. A program that has replied often may just have had no
 * processor. */
static void no_reply_came(struct packet_qp *pq)
{
	atomic_store_explicit(&pq->replies,
			      atomic_load_explicit(&pq->replies, memory_order_relaxed) / 2,
			      memory_order_relaxed);
}

/* Sends answers that leave together, `budget` packets at most; `at_once`: also an acknowledgement
 * that could wait for a reply. Returns how many; 0: there are none, or the carrier had no room
 * (*full). */
static unsigned send_answers(struct packet_qp *pq, unsigned budget, bool at_once, bool *full)
{
	struct rc_responder *rs = &pq->responder;
	struct rc_respond_mark before;
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	unsigned turn = atomic_load_explicit(&pq->port->turn, memory_order_relaxed);
	bool waits = rs->p.ack_delay_ns && replies_before_polling(pq);
	bool early = at_once || pq->port->no_waiting || !waits;
	/* The clock is read only if the time is needed; whoever does not wait may be no poll. */
	uint64_t now = !early ? pq->port->now_ns : rs->pace.active ? packet_now_ns() : 0;
	bool acknowledges = false;
	struct packet_train train;
	struct rc_response r;
	int ret;

	if (!rc_respond_next(rs, early, now, &r))
		return 0;
	packet_train_open(&train, pq->port, pq->qp->ibv.qp_num, &pq->route, &pq->answer_series);
	train.room = pq->port->answers;
	rc_respond_mark(rs, &before);
	do {
		ret = add_answer(pq, &train, &r, &status);
		if (ret)
			break;
		acknowledges |= r.packet.op == RC_ACK;
		rc_responded(rs, &r, RC_OK);
	} while (train.packets < budget && rc_respond_next(rs, early, now, &r));
	if (train.packets && packet_train_emit(&train) == -EAGAIN) {
		rc_respond_undo(rs, &before);
		*full = true;
		return 0;
	}
	if (acknowledges) {
		atomic_store_explicit(&pq->told_turn, turn, memory_order_relaxed);
		if (waits)
			no_reply_came(pq);
	}
	if (unlikely(ret == -EACCES)) {
		fetch_failed(pq, &r, status);
		return train.packets + 1;
	}
	return train.packets;
}

void packet_acknowledge(struct packet_qp *pq)
{
	struct rc_response r;
	bool full = false;

	while (!full && rc_respond_next(&pq->responder, true, 0, &r) &&
	       (r.packet.op == RC_ACK || r.packet.op == RC_CNP))
		send_answers(pq, 1, true, &full);
}

bool packet_join_acknowledgement(struct packet_qp *pq, struct packet_train *train,
				 struct rc_response *r)
{
	enum ibv_wc_status status;

	return pq->answering && packet_receives(pq->qp) &&
	       rc_respond_next(&pq->responder, true, 0, r) && r->packet.op == RC_ACK &&
	       !add_answer(pq, train, r, &status);
}

bool packet_respond(struct packet_qp *pq, unsigned budget, bool *moved)
{
	struct rc_responder *rs = &pq->responder;
	bool full = false;

	/* A queue pair in the error state still sends the NAK that led there, and acknowledges
	 * requests that were carried out. */
	if (!packet_receives(pq->qp) && !rs->failed) {
		packet_acknowledge(pq);
		return false;
	}
	while (budget) {
		unsigned sent = send_answers(pq, budget, false, &full);

		if (!sent)
			break;
		*moved = true;
		budget -= MIN(sent, budget);
	}
	/* True also for an answer that may not leave yet. */
	return full || rc_respond_deadline(rs);
}

bool packet_run_answers(struct packet_port *port)
{
	unsigned budget = MAX(ANSWER_BUDGET, port->train());
	struct list turn, *entry;
	bool moved = false;

	port->unanswered_bytes = 0;
	list_init(&turn);
	list_splice(&turn, &port->answering);
	while ((entry = list_pop(&turn))) {
		struct packet_qp *pq = list_entry(entry, struct packet_qp, answer_entry);

		pq->answering = false;
		atomic_fetch_sub(&port->backlog, 1);
		if (packet_respond(pq, budget, &moved))
			packet_owes(pq);
	}
	return moved;
}
