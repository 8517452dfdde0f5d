/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Extended posting (ibv_wr_start() ... ibv_wr_complete()): entries are built in place in the
 * send queue. sq_lock is held from ibv_wr_start() to ibv_wr_complete() or ibv_wr_abort().
 */
#include <errno.h>
#include <string.h>

#include "hca/limits.h"
#include "hca/memory/window.h"
#include "hca/object/ah.h"
#include "hca/object/opcode.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/hold.h"
#include "hca/queue/post.h"
#include "hca/run/elide.h"
#include "util/container_of.h"
#include "util/probe.h"

/* build_error: no request was begun, so setters are ignored. */
#define NOTHING_BEGUN (-1)

static struct hca_swqe *current(struct hca_qp *qp)
{
	return hca_sq_entry(&qp->sq, qp->sq.build_head - 1);
}

/* Begins the next entry. NULL: not permitted; build_error says why. */
static struct hca_swqe *begin(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode)
{
	struct hca_qp *qp = hca_qp_of_ex(ex);
	struct hca_sq *sq = &qp->sq;
	struct hca_swqe *e;

	if (unlikely(sq->build_error > 0))
		return NULL;
	sq->build_error = 0;
	if (unlikely(!hca_opcode_in(qp->send_ops, opcode))) {
		sq->build_error = EOPNOTSUPP;
		return NULL;
	}
	if (unlikely(ex->wr_flags & ~HCA_SEND_FLAGS_KNOWN)) {
		sq->build_error = EINVAL;
		return NULL;
	}
	if (unlikely(sq->build_head - sq->tail >= sq->limit)) {
		sq->build_error = ENOMEM;
		return NULL;
	}
	e = hca_sq_entry(sq, sq->build_head++);
	e->wr_id = ex->wr_id;
	e->opcode = (uint8_t)opcode;
	/* Setters of inline data set HCA_SWQE_INLINE. */
	e->flags = (uint8_t)((ex->wr_flags & ~(unsigned)IBV_SEND_INLINE) |
			     qp->always_flags);
	e->num_sge = 0;
	e->length = 0;
	e->imm = 0;
	e->ud.ah = NULL;
	return e;
}

static void wr_start(struct ibv_qp_ex *ex)
{
	struct hca_qp *qp = hca_qp_of_ex(ex);

	hca_enter();
	hca_lock(&qp->sq_lock);
	qp->sq.build_head = qp->sq.head;
	qp->sq.build_error = hca_sq_accepts(hca_qp_state(qp)) ? NOTHING_BEGUN :
								EINVAL;
}

/* Has every datagram that was built an address handle? */
static bool all_addressed(struct hca_qp *qp)
{
	for (uint32_t i = qp->sq.head; i != qp->sq.build_head; i++)
		if (!hca_sq_entry(&qp->sq, i)->ud.ah)
			return false;
	return true;
}

static int wr_complete(struct ibv_qp_ex *ex)
{
	struct hca_qp *qp = hca_qp_of_ex(ex);
	int ret = MAX(qp->sq.build_error, 0);

	if (unlikely(!ret && qp->ibv.qp_type == IBV_QPT_UD &&
		     !all_addressed(qp)))
		ret = EINVAL;
	if (likely(!ret)) {
		qp->sq.head = qp->sq.build_head;
		hca_sq_run(qp);
		hca_hold_rest(qp);
	}
	hca_sq_leave(qp);
	return ret;
}

static void wr_abort(struct ibv_qp_ex *ex)
{
	hca_unlock(&hca_qp_of_ex(ex)->sq_lock);
	hca_leave();
}

static void wr_send(struct ibv_qp_ex *ex)
{
	begin(ex, IBV_WR_SEND);
}

static void wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
	struct hca_swqe *e = begin(ex, IBV_WR_SEND_WITH_IMM);

	if (e)
		e->imm = imm_data;
}

static void wr_send_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct hca_swqe *e = begin(ex, IBV_WR_SEND_WITH_INV);

	if (e)
		e->imm = invalidate_rkey;
}

static void wr_local_inv(struct ibv_qp_ex *ex, uint32_t invalidate_rkey)
{
	struct hca_swqe *e = begin(ex, IBV_WR_LOCAL_INV);

	if (!e)
		return;
	e->rkey = invalidate_rkey;
	e->flags |= HCA_SWQE_LOCAL;
}

static void wr_bind_mw(struct ibv_qp_ex *ex, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	struct hca_swqe *e = begin(ex, IBV_WR_BIND_MW);

	if (!e)
		return;
	if (mw->type == IBV_MW_TYPE_2)
		hca_mw_fill_bind(e, mw, rkey, info);
	else
		hca_qp_of_ex(ex)->sq.build_error = EINVAL;
}

static void rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
		 uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	struct hca_swqe *e = begin(ex, opcode);

	if (!e)
		return;
	e->rkey = rkey;
	e->remote_addr = remote_addr;
	e->imm = imm_data;
}

static void wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
			  uint64_t remote_addr)
{
	rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, __be32 imm_data)
{
	rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr, imm_data);
}

static void wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
			 uint64_t remote_addr)
{
	rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void atomic_op(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
		      uint32_t rkey, uint64_t remote_addr, uint64_t compare_add,
		      uint64_t swap)
{
	struct hca_swqe *e = begin(ex, opcode);

	if (!e)
		return;
	e->rkey = rkey;
	e->remote_addr = remote_addr;
	e->atomic.compare_add = compare_add;
	e->atomic.swap = swap;
}

static void wr_atomic_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
			      uint64_t remote_addr, uint64_t compare,
			      uint64_t swap)
{
	atomic_op(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
				uint64_t remote_addr, uint64_t add)
{
	atomic_op(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add, 0);
}

/* The data are an argument; no setter follows. */
static void wr_atomic_write(struct ibv_qp_ex *ex, uint32_t rkey,
			    uint64_t remote_addr, const void *atomic_wr)
{
	struct hca_swqe *e = begin(ex, (enum ibv_wr_opcode)HCA_WR_ATOMIC_WRITE);

	if (!e)
		return;
	e->rkey = rkey;
	e->remote_addr = remote_addr;
	e->flags |= HCA_SWQE_INLINE;
	e->length = sizeof(uint64_t);
	memcpy(e->inline_data, atomic_wr, sizeof(uint64_t));
	PROBE(post_send, hca_qp_of_ex(ex)->ibv.qp_num, e->wr_id, e->opcode,
	      e->length);
}

static void wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
			   uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct hca_qp *qp = hca_qp_of_ex(ex);
	struct hca_swqe *e;

	if (qp->sq.build_error)
		return;
	e = current(qp);
	e->ud.ah = ah ? hca_ah(ah) : NULL;
	e->ud.qpn = remote_qpn & HCA_PSN_MASK;
	e->ud.qkey = remote_qkey & 0x80000000u ? qp->attr.qkey : remote_qkey;
}

/* Setters of other services, whose members of the entry have another meaning here. */
static void wr_set_ud_addr_wrong(struct ibv_qp_ex *ex, struct ibv_ah *ah,
				 uint32_t remote_qpn, uint32_t remote_qkey)
{
	hca_qp_of_ex(ex)->sq.build_error = EINVAL;
}

static void wr_set_xrc_srqn_wrong(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	hca_qp_of_ex(ex)->sq.build_error = EINVAL;
}

static void wr_set_xrc_srqn(struct ibv_qp_ex *ex, uint32_t remote_srqn)
{
	struct hca_qp *qp = hca_qp_of_ex(ex);

	if (!qp->sq.build_error)
		*hca_swqe_srqn(current(qp)) = remote_srqn & HCA_PSN_MASK;
}

/* Always inlined: with a probe in it the compiler would not do so. */
static inline __attribute__((always_inline)) void
set_sge_list(struct ibv_qp_ex *ex, size_t num_sge, const struct ibv_sge *sg_list)
{
	struct hca_qp *qp = hca_qp_of_ex(ex);
	struct hca_swqe *e;
	uint64_t length = 0;

	if (unlikely(qp->sq.build_error))
		return;
	if (unlikely(num_sge > qp->sq.max_sge)) {
		qp->sq.build_error = EINVAL;
		return;
	}
	e = current(qp);
	if (unlikely(e->opcode == HCA_WR_ATOMIC_WRITE)) {
		qp->sq.build_error = EINVAL;
		return;
	}
	for (size_t i = 0; i < num_sge; i++) {
		e->sge[i] = sg_list[i];
		length += sg_list[i].length;
	}
	if (unlikely(length > HCA_MAX_MSG_BYTES)) {
		qp->sq.build_error = EINVAL;
		return;
	}
	if (unlikely(hca_op_is_atomic(e->opcode) && length != sizeof(uint64_t))) {
		qp->sq.build_error = EINVAL;
		return;
	}
	e->flags &= (uint8_t)~HCA_SWQE_INLINE; /* set by an earlier setter */
	e->num_sge = (uint8_t)num_sge;
	e->length = (uint32_t)length;
	PROBE(post_send, qp->ibv.qp_num, e->wr_id, e->opcode, e->length);
}

static void wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
			    const struct ibv_sge *sg_list)
{
	set_sge_list(ex, num_sge, sg_list);
}

static void wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey, uint64_t addr,
		       uint32_t length)
{
	const struct ibv_sge sge = { .addr = addr, .length = length,
				     .lkey = lkey };

	set_sge_list(ex, 1, &sge);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *ex, size_t num_buf,
				    const struct ibv_data_buf *bufs)
{
	struct hca_qp *qp = hca_qp_of_ex(ex);
	struct hca_swqe *e;
	size_t at = 0;

	if (unlikely(qp->sq.build_error))
		return;
	e = current(qp);
	for (size_t i = 0; i < num_buf; i++) {
		if (unlikely(bufs[i].length > qp->sq.max_inline - at ||
			     hca_op_takes_data(e->opcode) ||
			     hca_op_is_word(e->opcode))) {
			qp->sq.build_error = EINVAL;
			return;
		}
		memcpy(e->inline_data + at, bufs[i].addr, bufs[i].length);
		at += bufs[i].length;
	}
	e->flags |= HCA_SWQE_INLINE;
	e->num_sge = 0;
	e->length = (uint32_t)at;
	PROBE(post_send, qp->ibv.qp_num, e->wr_id, e->opcode, e->length);
}

static void wr_set_inline_data(struct ibv_qp_ex *ex, void *addr, size_t length)
{
	const struct ibv_data_buf buf = { .addr = addr, .length = length };

	wr_set_inline_data_list(ex, 1, &buf);
}

void hca_sq_builders_init(struct hca_qp *qp)
{
	struct ibv_qp_ex *ex = &qp->ex;

	ex->wr_start = wr_start;
	ex->wr_complete = wr_complete;
	ex->wr_abort = wr_abort;
	ex->wr_send = wr_send;
	ex->wr_send_imm = wr_send_imm;
	ex->wr_send_inv = wr_send_inv;
	ex->wr_local_inv = wr_local_inv;
	ex->wr_bind_mw = wr_bind_mw;
	ex->wr_rdma_write = wr_rdma_write;
	ex->wr_rdma_write_imm = wr_rdma_write_imm;
	ex->wr_rdma_read = wr_rdma_read;
	ex->wr_atomic_cmp_swp = wr_atomic_cmp_swp;
	ex->wr_atomic_fetch_add = wr_atomic_fetch_add;
	ex->wr_atomic_write = wr_atomic_write;
	ex->wr_set_ud_addr = qp->ibv.qp_type == IBV_QPT_UD ?
				     wr_set_ud_addr : wr_set_ud_addr_wrong;
	ex->wr_set_xrc_srqn = qp->ibv.qp_type == IBV_QPT_XRC_SEND ?
				      wr_set_xrc_srqn : wr_set_xrc_srqn_wrong;
	ex->wr_set_sge = wr_set_sge;
	ex->wr_set_sge_list = wr_set_sge_list;
	ex->wr_set_inline_data = wr_set_inline_data;
	ex->wr_set_inline_data_list = wr_set_inline_data_list;
}
