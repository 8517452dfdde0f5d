/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Send queues: posting by work request. Extended posting (ibv_wr_*) is in sq_build.c; transports
 * transmit the entries; flush.c has how they complete.
 *
 * Entries complete in posting order: a transport transmits [tail, head) in order and reports the
 * oldest first.
 */
#include <errno.h>
#include <string.h>

#include "hca/limits.h"
#include "hca/memory/window.h"
#include "hca/queue/flush.h"
#include "hca/queue/hold.h"
#include "hca/queue/post.h"
#include "hca/share/process.h"
#include "util/probe.h"

static int fill_inline(struct hca_swqe *e, const struct hca_sq *sq,
		       const struct ibv_send_wr *wr)
{
	uint32_t at = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *s = &wr->sg_list[i];

		if (s->length > sq->max_inline - at)
			return EINVAL;
		memcpy(e->inline_data + at, (const void *)(uintptr_t)s->addr,
		       s->length);
		at += s->length;
	}
	e->length = at;
	e->num_sge = 0;
	return 0;
}

static int fill_sges(struct hca_swqe *e, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;

	for (int i = 0; i < wr->num_sge; i++) {
		e->sge[i] = wr->sg_list[i];
		length += wr->sg_list[i].length;
	}
	if (unlikely(length > HCA_MAX_MSG_BYTES))
		return EINVAL;
	e->length = (uint32_t)length;
	e->num_sge = (uint8_t)wr->num_sge;
	return 0;
}

static uint8_t entry_flags(const struct hca_qp *qp, unsigned send_flags)
{
	return (uint8_t)(send_flags | qp->always_flags);
}

/* The members that only one of the less frequent operations uses. 0 or a positive errno. */
static int fill_rare(struct hca_swqe *e, const struct ibv_send_wr *wr)
{
	switch (wr->opcode) {
	case IBV_WR_BIND_MW:
		/* Windows of type 1 are bound by ibv_bind_mw() only. */
		if (!wr->bind_mw.mw || wr->bind_mw.mw->type != IBV_MW_TYPE_2)
			return EINVAL;
		hca_mw_fill_bind(e, wr->bind_mw.mw, wr->bind_mw.rkey,
				 &wr->bind_mw.bind_info);
		return 0;
	case IBV_WR_LOCAL_INV:
		e->rkey = wr->invalidate_rkey;
		e->flags |= HCA_SWQE_LOCAL;
		e->num_sge = 0;
		e->length = 0;
		return 0;
	case IBV_WR_ATOMIC_WRITE:
		if (e->length != sizeof(uint64_t))
			return EINVAL;
		e->opcode = HCA_WR_ATOMIC_WRITE;
		e->remote_addr = wr->wr.rdma.remote_addr;
		e->rkey = wr->wr.rdma.rkey;
		return 0;
	case IBV_WR_SEND_WITH_INV: /* invalidate_rkey and imm_data are one union */
		return 0;
	default:
		if (e->length != sizeof(uint64_t))
			return EINVAL;
		e->remote_addr = wr->wr.atomic.remote_addr;
		e->rkey = wr->wr.atomic.rkey;
		e->atomic.compare_add = wr->wr.atomic.compare_add;
		e->atomic.swap = wr->wr.atomic.swap;
		return 0;
	}
}

/* 0 or a positive errno, as ibv_post_send returns it. */
static int fill(struct hca_qp *qp, struct hca_swqe *e,
		const struct ibv_send_wr *wr)
{
	const struct hca_sq *sq = &qp->sq;
	int ret;

	if (unlikely(!hca_opcode_offered(qp->offered, wr->opcode)))
		return EOPNOTSUPP;
	if (unlikely((uint32_t)wr->num_sge > sq->max_sge ||
		     wr->send_flags & ~HCA_SEND_FLAGS_KNOWN))
		return EINVAL;
	e->wr_id = wr->wr_id;
	e->opcode = (uint8_t)wr->opcode;
	e->imm = wr->imm_data;
	e->flags = entry_flags(qp, wr->send_flags);
	if (wr->send_flags & IBV_SEND_INLINE) {
		if (unlikely(!hca_opcode_in(HCA_POSTED_INLINE, wr->opcode)))
			return EINVAL;
		ret = fill_inline(e, sq, wr);
	} else {
		ret = fill_sges(e, wr);
	}
	if (unlikely(ret))
		return ret;
	if (qp->ibv.qp_type == IBV_QPT_UD) {
		if (unlikely(!wr->wr.ud.ah))
			return EINVAL;
		e->ud.ah = hca_ah(wr->wr.ud.ah);
		e->ud.qpn = wr->wr.ud.remote_qpn & HCA_PSN_MASK;
		/* The top bit asks for the QP's own Q_Key (10.2.5). */
		e->ud.qkey = wr->wr.ud.remote_qkey & 0x80000000u ?
				     qp->attr.qkey : wr->wr.ud.remote_qkey;
	} else if (unlikely(wr->opcode > IBV_WR_RDMA_READ)) {
		ret = fill_rare(e, wr);
	} else {
		e->remote_addr = wr->wr.rdma.remote_addr;
		e->rkey = wr->wr.rdma.rkey;
	}
	if (unlikely(qp->ibv.qp_type == IBV_QPT_XRC_SEND))
		*hca_swqe_srqn(e) = wr->qp_type.xrc.remote_srqn & HCA_PSN_MASK;
	return ret;
}

int hca_sq_open(struct hca_qp *qp, enum ibv_wr_opcode opcode, uint64_t wr_id,
		unsigned send_flags, struct hca_swqe **out)
{
	struct hca_sq *sq = &qp->sq;
	struct hca_swqe *e;

	if (!hca_opcode_offered(qp->offered, opcode))
		return -EOPNOTSUPP;
	if (send_flags & ~HCA_SEND_FLAGS_KNOWN)
		return -EINVAL;
	if (!hca_sq_accepts(hca_qp_state(qp)))
		return -EINVAL;
	if (sq->head - sq->tail >= sq->limit)
		return -ENOMEM;
	e = hca_sq_entry(sq, sq->head);
	e->wr_id = wr_id;
	e->opcode = (uint8_t)opcode;
	e->flags = entry_flags(qp, send_flags & ~(unsigned)IBV_SEND_INLINE);
	*out = e;
	return 0;
}

void hca_sq_call(struct hca_qp *qp)
{
	/* Between ibv_wr_start() and its end (depth is not 0) a sq_lock is held. */
	if (!hca_self.depth && atomic_exchange(&qp->calls, false))
		hca_path_ops(&qp->path)->expired(qp);
}

int hca_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr,
		  struct ibv_send_wr **bad)
{
	struct hca_qp *qp = hca_qp(ibqp);
	struct hca_sq *sq = &qp->sq;
	bool sent = false;
	int ret = 0;

	hca_enter();
	hca_lock(&qp->sq_lock);
	for (; wr; wr = wr->next) {
		enum ibv_qp_state state = hca_qp_state(qp);
		struct hca_swqe *e;

		if (unlikely(!hca_sq_accepts(state))) {
			ret = EINVAL;
			break;
		}
		if (unlikely(sq->head - sq->tail >= sq->limit)) {
			ret = ENOMEM;
			break;
		}
		if (likely(sq->next == sq->head && state == IBV_QPS_RTS &&
			   qp->tx_blocked == HCA_TX_OPEN &&
			   qp->path.post(qp, wr))) {
			sent = true;
			PROBE(post_send, qp->ibv.qp_num, wr->wr_id, wr->opcode,
			      wr->sg_list->length);
			continue;
		}
		e = hca_sq_entry(sq, sq->head);
		ret = fill(qp, e, wr);
		if (unlikely(ret))
			break;
		PROBE(post_send, qp->ibv.qp_num, e->wr_id, e->opcode, e->length);
		sq->head++;
	}
	if (sent)
		hca_path_ops(&qp->path)->kick(qp);
	if (sq->next != sq->head) {
		hca_sq_run(qp);
		hca_hold_rest(qp);
	}
	hca_sq_leave(qp);
	if (unlikely(ret))
		*bad = wr;
	return ret;
}

void hca_sq_run(struct hca_qp *qp)
{
	switch (hca_qp_state(qp)) {
	case IBV_QPS_RTS:
	case IBV_QPS_SQD:
		if (likely(qp->tx_blocked == HCA_TX_OPEN))
			qp->path.transmit(qp);
		break;
	case IBV_QPS_ERR:
	case IBV_QPS_SQE:
		hca_sq_flush(qp);
		break;
	default:
		break;
	}
}

struct datagrams {
	const struct hca_cq *to;
	uint32_t count;
};

/* Adds the signaled entries of one send queue. */
static void datagrams_count(struct hca_qp *qp, void *arg)
{
	struct datagrams *d = arg;

	if (qp->send_cq != d->to || qp->ibv.qp_type != IBV_QPT_UD)
		return;
	hca_lock(&qp->sq_lock);
	for (uint32_t i = qp->sq.tail; i != qp->sq.head; i++)
		d->count += !!(hca_sq_entry(&qp->sq, i)->flags & HCA_SWQE_SIGNALED);
	hca_unlock(&qp->sq_lock);
}

uint32_t hca_sq_datagrams_to(const struct hca_cq *cq)
{
	struct datagrams d = { .to = cq };

	pthread_mutex_lock(&hca_process.lock);
	hca_qps_each(datagrams_count, &d);
	pthread_mutex_unlock(&hca_process.lock);
	return d.count;
}
