/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests of the peer, into posted receives and memory. The engine says what a packet needs;
 * here the receive is found, the key is checked and the bytes are copied; then the engine is told
 * how that ended.
 *
 * All of it under the port's receive_lock.
 */
#include <errno.h>
#include <string.h>

#include "hca/event/async.h"
#include "hca/memory/window.h"
#include "hca/queue/flush.h"
#include "hca/queue/push.h"
#include "hca/queue/receive.h"
#include "hca/queue/scatter.h"
#include "transport/packet/responder/responder.h"

/* Answers that leave with the NAK of a connection that ends, at most. */
#define LAST_ANSWERS 16

/* A request while it is carried out. */
struct request {
	struct packet_qp *pq;
	const struct packet_frame *f;
	const uint8_t *payload;
	struct rc_look look;
	struct hca_rwqe *receive;  /* consume_lock is held; NULL: none is needed */
	enum rc_answer answer;
	enum ibv_wc_status refused; /* why the peer's access is refused, or IBV_WC_SUCCESS */
	enum ibv_wc_status failed;  /* why our receive has failed, likewise */
	uint64_t old;
};

/* ---- completing ---- */

static void complete(struct request *r, enum ibv_wc_status status, uint32_t bytes)
{
	const struct rc_packet *p = &r->f->rc;
	struct hca_qp *as = r->pq->as;
	bool write = r->look.op == RC_WRITE;
	struct ibv_wc wc = {
		.wr_id = r->receive->wr_id,
		.status = status,
		.opcode = write ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV,
		.byte_len = bytes,
		.qp_num = r->pq->qp->ibv.qp_num,
		.src_qp = r->f->src_qpn,
	};

	if (p->flags & RC_IMM)
		wc.wc_flags = IBV_WC_WITH_IMM;
	if (p->flags & RC_INVALIDATE)
		wc.wc_flags = IBV_WC_WITH_INV;
	if (wc.wc_flags)
		wc.imm_data = p->imm;
	if (likely(status == IBV_WC_SUCCESS))
		HCA_COUNT_RECEIVED(as, write, bytes);
	else
		HCA_COUNT_RARE(as, RX_ERRORS, 1);
	hca_recv_done(as);
	hca_cq_push(as->recv_cq, &wc, p->flags & RC_SOLICITED);
}

/* ---- carrying out ---- */

static void refuse(struct request *r, enum ibv_wc_status status)
{
	r->refused = status;
	r->answer = status == IBV_WC_REM_INV_REQ_ERR ? RC_NOT_VALID :
		    status == IBV_WC_REM_ACCESS_ERR  ? RC_NO_ACCESS :
						       RC_NO_OPERATION;
}

static void place_send(struct request *r)
{
	const struct rc_packet *p = &r->f->rc;
	const struct hca_rwqe *e = r->receive;
	struct packet_port *port = r->pq->port;
	uint64_t room = hca_rwqe_room(e);
	unsigned turn;
	int ret = 0;

	/* If a run is too long, the packets that fit are placed. */
	if (unlikely(r->look.at + (1 + (uint64_t)r->look.more) * p->bytes > room))
		r->look.more = 0;
	if (unlikely((uint64_t)r->look.at + p->bytes > room)) {
		r->failed = IBV_WC_LOC_LEN_ERR;
		r->answer = RC_NOT_VALID;
		return;
	}
	turn = hca_copy_begin(&port->copies);
	for (uint32_t i = 0; !ret && i <= r->look.more; i++)
		ret = hca_sges_write(r->pq->as->recv_pd, e->sge, e->num_sge,
				     r->look.at + i * p->bytes,
				     r->payload + (size_t)i * r->f->stride, p->bytes);
	hca_copy_end(&port->copies, turn);
	if (unlikely(ret)) {
		r->failed = IBV_WC_LOC_PROT_ERR;
		r->answer = RC_NO_OPERATION;
	}
}

/* `data` NULL: only checks whether it is allowed. */
static void carry_out_write(struct request *r, const uint8_t *data)
{
	const struct rc_packet *p = &r->f->rc;
	const struct rc_look *l = &r->look;
	const struct packet_payload payload = {
		.data = (uint8_t *)(uintptr_t)data, .bytes = p->bytes, .more = l->more,
		.stride = r->f->stride,
	};
	uint32_t pd_id = r->pq->as->pd->id;
	enum ibv_wc_status status;

	if (p->flags & RC_WORD)
		status = data && p->bytes == sizeof(uint64_t) && (p->flags & RC_FIRST) ?
				 packet_atomic(r->pq, pd_id, p, data, &r->old) :
				 IBV_WC_REM_INV_REQ_ERR;
	else
		/* Each packet checks the access of the whole message: nothing is written of one
		 * that is not allowed. */
		status = packet_access(r->pq, pd_id, PACKET_WRITE, l->rkey,
				       l->remote_addr - l->at, l->length, l->at,
				       data ? &payload : NULL);
	if (unlikely(status != IBV_WC_SUCCESS))
		refuse(r, status);
}

static void carry_out_read(struct request *r)
{
	const struct rc_packet *p = &r->f->rc;
	uint32_t pd_id = r->pq->as->pd->id;
	enum ibv_wc_status status =
		p->op == RC_READ ?
			packet_access(r->pq, pd_id, PACKET_READ, p->rkey, p->remote_addr,
				      p->length, 0, NULL) :
			packet_atomic(r->pq, pd_id, p, NULL, &r->old);

	if (status != IBV_WC_SUCCESS) {
		refuse(r, status);
		return;
	}
	if (p->op != RC_READ)
		HCA_COUNT_RARE(r->pq->as, RX_ATOMICS, 1);
	r->pq->read_pd[r->pq->responder.resources_taken % RC_RESOURCES_MAX] = pd_id;
}

static void carry_out(struct request *r)
{
	switch (r->look.op) {
	case RC_SEND:
		place_send(r);
		break;
	case RC_WRITE:
		carry_out_write(r, r->payload);
		break;
	case RC_FLUSH:
		/* No queue pair here has the access rights for FLUSH (A19, IBV_ACCESS_FLUSH_...). */
		refuse(r, IBV_WC_REM_INV_REQ_ERR);
		break;
	default:
		carry_out_read(r);
		break;
	}
	/* A key that must not be invalidated is no reason for a NAK: a queue pair in error sends
	 * no answer (9.9.6.3, class J). */
	if (r->answer == RC_OK && (r->look.needs & WORK_NEED_INVALIDATE) &&
	    hca_key_invalidate(r->pq->as, r->f->rc.imm)) {
		r->failed = IBV_WC_MW_BIND_ERR;
		r->answer = RC_NOT_NOW;
	}
}

/* No receive is posted. A WRITE that is not allowed is refused all the same. */
static void carry_out_nothing(struct request *r)
{
	if (r->look.op == RC_WRITE)
		carry_out_write(r, NULL);
	if (r->answer == RC_OK)
		r->answer = RC_NO_RECEIVE;
}

/* Where a reliable message gets a NAK an unreliable one is lost, except if its receive cannot be
 * written. */
static void drop_uc_error(struct request *r)
{
	if (r->pq->service != PACKET_UC)
		return;
	if (r->refused != IBV_WC_SUCCESS || r->failed == IBV_WC_LOC_LEN_ERR ||
	    r->answer == RC_NO_RECEIVE)
		HCA_COUNT_RARE(r->pq->as, RX_DROPPED, 1);
	r->refused = IBV_WC_SUCCESS;
	if (r->failed == IBV_WC_LOC_LEN_ERR)
		r->failed = IBV_WC_SUCCESS;
}

static void count_answer(const struct request *r)
{
	if (r->pq->service == PACKET_UC || likely(r->answer == RC_OK))
		return;
	if (r->answer == RC_NO_RECEIVE)
		HCA_COUNT_RARE(r->pq->as, RX_RNR_SENT, 1);
	else if (r->answer != RC_NOT_NOW && r->answer != RC_NOT_THERE)
		HCA_COUNT_RARE(r->pq->as, RX_NAKS_SENT, 1);
}

static struct rc_taken take(struct request *r)
{
	struct packet_qp *pq = r->pq;
	struct rc_taken taken = rc_take(&pq->responder, &r->f->rc, &r->look, r->answer,
					r->old, pq->port->now_ns);

	if (pq->service != PACKET_XRC)
		atomic_store_explicit(&pq->qp->rx_psn, pq->responder.expected_psn,
				      memory_order_relaxed);
	return taken;
}

static void take_expected(struct request *r)
{
	struct hca_qp *as = r->pq->as;
	bool uses = r->look.op == RC_SEND ||
		    (r->look.needs & (WORK_NEED_RECEIVE | WORK_NEED_COMPLETE));
	struct rc_taken taken;
	int ret = r->pq->service == PACKET_XRC ? packet_xrc_attach(r->pq, r->f) : 0;

	if (unlikely(ret)) {
		refuse(r, ret == -EINVAL ? IBV_WC_REM_INV_REQ_ERR : IBV_WC_REM_ACCESS_ERR);
		count_answer(r);
		take(r);
		return;
	}
	if (uses) {
		hca_lock(&as->recv->consume_lock);
		r->receive = hca_recv_first(as);
	}
	if (unlikely(r->pq->port->demand) && (!uses || r->receive) &&
	    !packet_target_there(r->pq, r->f, &r->look, r->receive))
		r->answer = RC_NOT_THERE;
	else if (uses && !r->receive)
		carry_out_nothing(r);
	else
		carry_out(r);
	drop_uc_error(r);
	count_answer(r);
	taken = take(r);
	if (r->receive) {
		if (unlikely(r->failed != IBV_WC_SUCCESS)) {
			hca_qp_failing(r->pq->qp);
			complete(r, r->failed, r->look.at + r->f->rc.bytes);
		} else if (likely(taken.complete)) {
			/* The completion may wake another thread that answers at once, so the
			 * acknowledgement leaves before. */
			if (unlikely(atomic_load_explicit(&hca_process.armed,
							  memory_order_relaxed)) &&
			    !packet_defers_acknowledgement(r->pq))
				packet_acknowledge(r->pq);
			complete(r, IBV_WC_SUCCESS, taken.bytes);
		} else if (r->answer == RC_OK && r->look.op == RC_SEND) {
			hca_recv_keep(as);
		}
	}
	if (uses)
		hca_unlock(&as->recv->consume_lock);
}

uint32_t packet_request(struct packet_qp *pq, const struct packet_frame *f,
			const uint8_t *payload)
{
	struct request r = { .pq = pq, .f = f, .payload = payload };
	bool moved;

	pq->responder.p.min_rnr_timer = (uint8_t)atomic_load_explicit(
		&pq->qp->pub->min_rnr_timer, memory_order_relaxed);
	rc_look(&pq->responder, &f->rc, &r.look);
	if (likely(r.look.verdict == RC_EXPECTED)) {
		if (unlikely(!pq->qp->established && hca_qp_state(pq->qp) == IBV_QPS_RTR))
			hca_qp_established(pq->qp);
		take_expected(&r);
	} else {
		if (r.look.verdict == RC_WRONG)
			r.refused = IBV_WC_REM_INV_REQ_ERR;
		drop_uc_error(&r);
		take(&r);
	}
	/* The NAK leaves first: afterwards the program may end the queue pair. */
	if (packet_respond(pq, pq->responder.failed ? LAST_ANSWERS : 0, &moved))
		packet_owes(pq);
	if (unlikely(r.refused != IBV_WC_SUCCESS))
		packet_refuse(pq, r.refused);
	else if (unlikely(r.failed != IBV_WC_SUCCESS))
		hca_qp_fail(pq->qp);
	return 1 + (r.answer == RC_OK ? r.look.more : 0);
}
