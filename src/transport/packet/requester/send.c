/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * From the send queue to the carrier: the engine gets the entries in their order and says what
 * packet is next. Local operations are carried out here, when everything that was posted before
 * them is complete.
 */
#define LOG_ROOM "packet"
#include <errno.h>
#include <string.h>

#include "hca/memory/window.h"
#include "hca/queue/complete.h"
#include "hca/queue/post.h"
#include "hca/queue/scatter.h"
#include "transport/packet/base/train.h"
#include "transport/packet/requester/requester.h"
#include "transport/packet/responder/responder.h"
#include "util/log.h"
#include "util/probe.h"

static const struct {
	uint8_t op, flags;
} ops[] = {
	[IBV_WR_RDMA_WRITE] = { RC_WRITE, 0 },
	[IBV_WR_RDMA_WRITE_WITH_IMM] = { RC_WRITE, RC_IMM },
	[IBV_WR_SEND] = { RC_SEND, 0 },
	[IBV_WR_SEND_WITH_IMM] = { RC_SEND, RC_IMM },
	[IBV_WR_RDMA_READ] = { RC_READ, 0 },
	[IBV_WR_ATOMIC_CMP_AND_SWP] = { RC_COMPARE_SWAP, 0 },
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = { RC_FETCH_ADD, 0 },
	[IBV_WR_SEND_WITH_INV] = { RC_SEND, RC_INVALIDATE },
	[HCA_WR_ATOMIC_WRITE] = { RC_WRITE, RC_WORD },
};

/* Is it an entry that can never be sent? A builder may have omitted the buffer for the result. */
static bool is_impossible(const struct packet_qp *pq, const struct hca_swqe *e)
{
	const struct hca_qp *qp = pq->qp;

	if (e->opcode == IBV_WR_SEND_WITH_INV)
		return pq->service == PACKET_UC && !pq->port->medium->uc_invalidates;
	if (e->opcode == IBV_WR_RDMA_READ)
		return !qp->attr.max_rd_atomic;
	return (hca_op_is_atomic(e->opcode) || e->opcode == HCA_WR_ATOMIC_WRITE) &&
	       (!qp->attr.max_rd_atomic || e->length != sizeof(uint64_t));
}

static void hand_over(struct packet_qp *pq, const struct hca_swqe *e)
{
	struct rc_requester *rq = &pq->requester;
	struct packet_entry *to = container_of(rc_entry(rq, rq->head),
					       struct packet_entry, rc);

	to->sq_index = pq->qp->sq.next;
	to->rc = (struct rc_wqe){
		.op = ops[e->opcode].op,
		.flags = (uint8_t)(ops[e->opcode].flags |
				   (e->flags & HCA_SWQE_SOLICITED ? RC_SOLICITED : 0) |
				   (e->flags & HCA_SWQE_FENCE ? RC_FENCE : 0)),
		.length = e->length,
		.imm = e->imm,
		.rkey = e->rkey,
		.remote_addr = e->remote_addr,
	};
	if (hca_op_is_atomic(e->opcode)) {
		to->rc.compare_add = e->atomic.compare_add;
		to->rc.swap = e->atomic.swap;
	}
	rc_post(rq);
	pq->qp->sq.next++;
	pq->qp->tx_psn = rq->post_psn;
}

/* ---- local operations ---- */

#define FIRST_LOOK_NS 20000
#define LOOK_LIMIT_NS (10 * UINT64_C(1000000000))

/* A peer copies with the key, so the operation is tried again later. False: a peer has copied for
 * too long. */
static bool look_again(struct packet_qp *pq)
{
	uint64_t now = packet_now_ns();

	if (!pq->look_since_ns)
		pq->look_since_ns = now;
	if (now - pq->look_since_ns > LOOK_LIMIT_NS) {
		log_error("qp 0x%x: a peer copies for too long with a key that is taken back",
			  pq->qp->ibv.qp_num);
		return false;
	}
	pq->look_ns = now + FIRST_LOOK_NS;
	packet_arm(pq);
	return true;
}

/* Carries out the operation at sq.next, which is the oldest entry. False: it waits, or has
 * failed. */
static __attribute__((noinline)) bool run_local(struct packet_qp *pq)
{
	struct hca_qp *qp = pq->qp;
	struct hca_swqe *e = hca_sq_entry(&qp->sq, qp->sq.next);
	int ret = hca_local_run(qp, e, false);

	if (ret == -EAGAIN) {
		if (look_again(pq))
			return false;
		ret = hca_local_run(qp, e, true);
	}
	pq->look_ns = pq->look_since_ns = 0;
	qp->sq.next++;
	hca_sq_complete(qp, ret ? IBV_WC_MW_BIND_ERR : IBV_WC_SUCCESS);
	return ret == 0;
}

/* ---- packets ---- */

/* Hands over all entries that may be sent. False: the queue pair has failed. */
static bool take_new(struct packet_qp *pq)
{
	struct hca_qp *qp = pq->qp;
	struct hca_sq *sq = &qp->sq;

	while (sq->next != hca_sq_end(qp)) {
		const struct hca_swqe *e = hca_sq_entry(sq, sq->next);
		bool local = e->flags & HCA_SWQE_LOCAL;

		if (likely(!local && !is_impossible(pq, e))) {
			hand_over(pq, e);
			continue;
		}
		if (sq->next != sq->tail)
			return true;
		if (local) {
			if (!run_local(pq))
				return pq->epoch == qp->tx_epoch;
			continue;
		}
		sq->next++;
		hca_sq_complete(qp, IBV_WC_LOC_QP_OP_ERR);
		return false;
	}
	return true;
}

/* Adds the payload of the packet that was begun. 0, or -EFAULT: a key does not allow it. */
static int add_payload(struct packet_qp *pq, struct packet_train *train,
		       const struct hca_swqe *e, const struct rc_tx *tx, struct iovec *iov,
		       uint8_t bounce[PACKET_MTU])
{
	int n = hca_swqe_gather(pq->qp, e, tx->at, tx->packet.bytes, iov, bounce);
	bool bounced = false;

	if (unlikely(n < 0))
		return n;
	for (int i = 0; i < n; i++)
		bounced |= (uint8_t *)iov[i].iov_base - bounce < PACKET_MTU &&
			   (uint8_t *)iov[i].iov_base >= bounce;
	packet_train_end(train, (unsigned)n);
	train->ended |= bounced; /* two packets cannot share `bounce` */
	return 0;
}

/* Adds the packet, or as many of a run as leave together and have their payload in one piece:
 * tx->packet.more is lowered to them. 0; -ENOBUFS: the train has to leave first; -EFAULT: a key
 * does not allow it. */
static int add_packet(struct packet_qp *pq, struct packet_train *train, struct rc_tx *tx,
		      uint8_t bounce[PACKET_MTU])
{
	const struct packet_entry *entry = container_of(
		rc_entry(&pq->requester, tx->index), struct packet_entry, rc);
	struct hca_qp *qp = pq->qp;
	struct hca_swqe *e = hca_sq_entry(&qp->sq, entry->sq_index);
	struct packet_frame f = {
		.rc = tx->packet,
		.service = pq->service,
		.dst_qpn = qp->attr.dest_qp_num,
		.src_qpn = qp->ibv.qp_num,
	};
	struct iovec *iov;
	int ret;

	f.rc.more = 0;
	if (pq->service == PACKET_XRC)
		f.srqn = *hca_swqe_srqn(e);
	if (unlikely(pq->port->demand)) {
		ret = packet_demand_send(pq, train, e, tx);
		if (ret)
			return ret;
	}
	iov = packet_train_begin(train, &f);
	if (!iov)
		return -ENOBUFS;
	PROBE(transmit, qp->ibv.qp_num, f.dst_qpn, f.rc.psn, f.rc.bytes, e->opcode);
	if (tx->packet.more)
		tx->packet.more = MIN(tx->packet.more,
				      packet_train_room(train, f.rc.bytes) - 1);
	ret = tx->packet.more ? packet_add_run(pq, train, e, tx) : 0;
	if (unlikely(ret < 0))
		return ret;
	tx->packet.more = ret ? (uint32_t)ret - 1 : 0;
	return ret ? 0 : add_payload(pq, train, e, tx, iov, bounce);
}

/* Counts a reply whose acknowledgement left by itself in the same turn. */
static void notice_reply(struct packet_qp *pq)
{
	unsigned turn = atomic_load_explicit(&pq->port->turn, memory_order_relaxed);

	if (atomic_load_explicit(&pq->told_turn, memory_order_relaxed) != turn)
		return;
	packet_count_reply(pq);
	/* Count one reply for each acknowledgement. */
	atomic_store_explicit(&pq->told_turn, turn - 1, memory_order_relaxed);
}

/* receive_lock is held. 0, or the error for which the carrier took nothing. */
static int emit_with_acknowledgement(struct packet_qp *pq, struct packet_train *train)
{
	struct rc_response r;
	bool joined = packet_join_acknowledgement(pq, train, &r);
	int ret;

	if (!joined) {
		if (pq->answering)
			packet_acknowledge(pq);
		notice_reply(pq);
	}
	ret = packet_train_emit(train);
	if (joined && ret != -EAGAIN)
		rc_responded(&pq->responder, &r, RC_OK);
	return ret;
}

/* Emits the train, and with it the acknowledgement that this queue pair owes to the same peer:
 * one call to the kernel instead of two. But not while another thread moves what arrives, as
 * receive_lock comes before sq_lock; nor outside of hca_enter(), where timers and changes of
 * state run and a lock cannot just be tried. 0, or why the carrier took nothing. */
static int emit_requests(struct packet_qp *pq, struct packet_train *train)
{
	struct packet_port *port = pq->port;
	int ret;

	if (!atomic_load_explicit(&port->backlog, memory_order_relaxed) ||
	    pq->service != PACKET_RC || !hca_self.depth ||
	    !hca_trylock(&port->receive_lock)) {
		notice_reply(pq);
		return packet_train_emit(train);
	}
	ret = emit_with_acknowledgement(pq, train);
	hca_unlock(&port->receive_lock);
	return ret;
}

/* Sends what the engine has to send, as much as leaves together. *done: what completes with it.
 * 0: it has left; -ENOENT: there is nothing to send; -EAGAIN: the carrier has no room, and the
 * requester is as it was; -EFAULT: a key does not allow the first packet; other errors are as if
 * it had been lost. */
static int send_train(struct packet_qp *pq, uint64_t now_ns, struct work_done *done)
{
	struct rc_requester *rq = &pq->requester;
	const struct rc_requester before = *rq;
	struct packet_train train;
	uint8_t bounce[PACKET_MTU];
	struct rc_tx tx;
	unsigned turn;
	int ret = 0;

	packet_train_open(&train, pq->port, pq->qp->ibv.qp_num, &pq->route, &pq->request_series);
	if (unlikely(pq->port->demand))
		packet_demand_resume(pq, now_ns);
	turn = hca_copy_begin(&pq->port->copies);
	while (!ret && rc_next(rq, rq->head, now_ns, &tx)) {
		ret = add_packet(pq, &train, &tx, bounce);
		if (ret)
			break;
		*done = rc_sent(rq, &tx, now_ns);
	}
	if (likely(train.packets))
		ret = emit_requests(pq, &train);
	else if (!ret)
		ret = -ENOENT;
	hca_copy_end(&pq->port->copies, turn);
	if (unlikely(ret == -EAGAIN))
		*rq = before;
	return ret;
}

/* Sends all that the engine has to send. False: the queue pair has failed. */
static bool send_all(struct packet_qp *pq, uint64_t now_ns)
{
	struct rc_requester *rq = &pq->requester;
	struct work_done done;
	struct rc_tx tx;

	while (rq->next != rq->head) {
		unsigned requests = atomic_load_explicit(&pq->requests, memory_order_relaxed);
		int ret = send_train(pq, now_ns, &done);

		if (ret == -ENOENT)
			break;
		if (ret == -EAGAIN) {
			packet_wait(pq);
			return true;
		}
		if (unlikely(ret == -EFAULT)) {
			/* An error waits until the earlier entries are complete. */
			if (rc_next(rq, rq->head, now_ns, &tx) && tx.index != rq->tail)
				return true;
			return packet_finish(pq, (struct work_done){
							 rq->tail, IBV_WC_LOC_PROT_ERR });
		}
		if (pq->service == PACKET_UC && packet_completes_late(pq, done, requests, now_ns))
			continue;
		if (!packet_finish(pq, done))
			return false;
	}
	if (unlikely(pq->port->demand))
		packet_demand_sent(pq);
	return true;
}

/* Messages that a program posts one by one behind others leave together, when there is a train of
 * them or with the next poll. Small ones need few before them, if the program polls without a
 * gap. */
#define GATHER_BEHIND 8u
#define GATHER_MOST 16u
#define GATHER_BYTES 4096u

static bool gathers(const struct packet_qp *pq)
{
	const struct rc_requester *rq = &pq->requester;
	uint32_t unacked, waiting, train;

	rc_load(rq, &unacked, &waiting);
	if (!unacked || pq->polled)
		return false;
	train = pq->port->train();
	if (train == 1 || waiting >= MIN(train, PACKET_TRAIN_BYTES / rq->p.mtu))
		return false;
	/* An acknowledgement is on its way and will be here soon. */
	if (unacked >= 2 * rq->window.least)
		return true;
	return rq->next - rq->tail >= GATHER_BEHIND && rq->head - rq->next < GATHER_MOST &&
	       rc_entry(rq, rq->next)->length <= GATHER_BYTES &&
	       packet_is_relied_on(pq->port);
}

/* False: the queue pair has failed. */
static bool transmit(struct packet_qp *pq)
{
	const struct rc_requester *rq = &pq->requester;
	const struct hca_sq *sq = &pq->qp->sq;

	do {
		if (!take_new(pq))
			return false;
		/* As behind the acknowledgement of the last message. */
		if (rq->next == rq->head)
			return true;
		if (gathers(pq)) {
			packet_wait(pq);
			return true;
		}
		if (!send_all(pq, packet_now_ns()))
			return false;
		/* Unreliable entries are complete now; a local operation may follow. */
	} while (pq->service == PACKET_UC && sq->next == sq->tail && !pq->look_ns &&
		 sq->next != hca_sq_end(pq->qp));
	return true;
}

void packet_transmit(struct hca_qp *qp)
{
	struct packet_qp *pq = packet_part(qp)->state;

	if (!pq || !pq->ready)
		return;
	packet_settle(pq);
	if (packet_complete_late(pq) && transmit(pq))
		packet_arm(pq);
	atomic_store_explicit(&packet_part(qp)->unfinished, qp->sq.head - qp->sq.tail,
			      memory_order_relaxed);
}
