/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Requests by ibv_wr_start(), ibv_wr_*() and ibv_wr_complete(). They are collected, since
 * ibv_wr_abort() may take them back, and the adapter gets them with ibv_wr_complete() alone.
 */
#include "preload/build.h"

#include <errno.h>

#include "preload/listener.h"
#include "preload/record.h"
#include "preload/saved.h"

static const struct ibv_qp_ex *real(const struct ibv_qp_ex *qp)
{
	return &saved_find(qp)->qp;
}

static struct record *record(const struct ibv_qp_ex *qp)
{
	return record_of(&qp->qp_base);
}

static struct preload_request *last(const struct ibv_qp_ex *qp)
{
	struct batch *b = record(qp)->current;

	return b ? batch_last(b) : NULL;
}

/* Out of memory: ibv_wr_complete() finds that there is no batch, or that it is full. */
static void begin(const struct ibv_qp_ex *qp, enum ibv_wr_opcode opcode, uint32_t rkey,
		  uint64_t remote_addr)
{
	struct record *own = record(qp);
	struct batch *b = record_batch(own);
	struct preload_request *r = b ? batch_begin(b) : NULL;

	if (!r)
		return;
	r->opcode = opcode;
	r->wr_id = qp->wr_id;
	r->signaled = own->completes_all || (qp->wr_flags & IBV_SEND_SIGNALED);
	r->rkey = rkey;
	r->remote_addr = remote_addr;
}

static void add_bytes(const struct ibv_qp_ex *qp, uint64_t bytes)
{
	struct preload_request *r = last(qp);

	if (r)
		r->bytes += bytes;
}

static void add_sges(const struct ibv_qp_ex *qp, const struct ibv_sge *list, size_t count)
{
	struct batch *b = record(qp)->current;

	if (b)
		batch_add_sges(b, list, count);
}

/* ---- operations ---- */

static void wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			      uint64_t compare, uint64_t swap)
{
	begin(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);
	real(qp)->wr_atomic_cmp_swp(qp, rkey, remote_addr, compare, swap);
}

static void wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
				uint64_t add)
{
	begin(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr);
	real(qp)->wr_atomic_fetch_add(qp, rkey, remote_addr, add);
}

static void wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			    const void *value)
{
	begin(qp, IBV_WR_ATOMIC_WRITE, rkey, remote_addr);
	add_bytes(qp, sizeof(uint64_t));
	real(qp)->wr_atomic_write(qp, rkey, remote_addr, value);
}

static void wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw, uint32_t rkey,
		       const struct ibv_mw_bind_info *info)
{
	begin(qp, IBV_WR_BIND_MW, 0, 0);
	real(qp)->wr_bind_mw(qp, mw, rkey, info);
}

static void wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, IBV_WR_LOCAL_INV, 0, 0);
	real(qp)->wr_local_inv(qp, rkey);
}

static void wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	begin(qp, IBV_WR_RDMA_READ, rkey, remote_addr);
	real(qp)->wr_rdma_read(qp, rkey, remote_addr);
}

static void wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr)
{
	begin(qp, IBV_WR_RDMA_WRITE, rkey, remote_addr);
	real(qp)->wr_rdma_write(qp, rkey, remote_addr);
}

static void wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t remote_addr,
			      __be32 imm_data)
{
	begin(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);
	real(qp)->wr_rdma_write_imm(qp, rkey, remote_addr, imm_data);
}

static void wr_send(struct ibv_qp_ex *qp)
{
	begin(qp, IBV_WR_SEND, 0, 0);
	real(qp)->wr_send(qp);
}

static void wr_send_imm(struct ibv_qp_ex *qp, __be32 imm_data)
{
	begin(qp, IBV_WR_SEND_WITH_IMM, 0, 0);
	real(qp)->wr_send_imm(qp, imm_data);
}

static void wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	begin(qp, IBV_WR_SEND_WITH_INV, 0, 0);
	real(qp)->wr_send_inv(qp, rkey);
}

static void wr_send_tso(struct ibv_qp_ex *qp, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	begin(qp, IBV_WR_TSO, 0, 0);
	add_bytes(qp, hdr_sz);
	real(qp)->wr_send_tso(qp, hdr, hdr_sz, mss);
}

/* ---- their data ---- */

static void wr_set_inline_data(struct ibv_qp_ex *qp, void *addr, size_t length)
{
	add_bytes(qp, length);
	real(qp)->wr_set_inline_data(qp, addr, length);
}

static void wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t count,
				    const struct ibv_data_buf *list)
{
	for (size_t i = 0; i < count; i++)
		add_bytes(qp, list[i].length);
	real(qp)->wr_set_inline_data_list(qp, count, list);
}

static void wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr, uint32_t length)
{
	const struct ibv_sge sge = { addr, length, lkey };

	add_sges(qp, &sge, 1);
	real(qp)->wr_set_sge(qp, lkey, addr, length);
}

static void wr_set_sge_list(struct ibv_qp_ex *qp, size_t count, const struct ibv_sge *list)
{
	add_sges(qp, list, count);
	real(qp)->wr_set_sge_list(qp, count, list);
}

/* ---- begin and end ---- */

static void wr_start(struct ibv_qp_ex *qp)
{
	struct batch *b;

	/* Another thread may be in its critical section until this returns. */
	real(qp)->wr_start(qp);
	b = record_batch(record(qp));
	if (b)
		batch_clear(b);
}

static void wr_abort(struct ibv_qp_ex *qp)
{
	struct batch *b = record(qp)->current;

	if (b)
		batch_clear(b);
	real(qp)->wr_abort(qp);
}

static int no_memory(struct ibv_qp_ex *qp)
{
	wr_abort(qp);
	return ENOMEM;
}

static int wr_complete(struct ibv_qp_ex *qp)
{
	struct record *own = record(qp);
	struct batch *b;
	int ret;

	if (!own->current || own->current->full)
		return no_memory(qp);
	/* Behind the real function the record is another thread's. */
	b = record_take(own);
	batch_end(b);
	for (unsigned i = 0; i < b->begun_count; i++)
		preload_listener.posting(&qp->qp_base, &b->begun[i]);
	ret = real(qp)->wr_complete(qp);
	for (unsigned i = 0; ret && i < b->begun_count; i++)
		preload_listener.refused(&qp->qp_base, &b->begun[i], ret);
	record_give(own, b);
	return ret;
}

#define HEAR(member) \
	if (qp->member) \
		qp->member = member

void build_hear(struct ibv_qp_ex *qp)
{
	struct saved *s = saved_make(qp);

	if (!s || !s->own || !qp->wr_start)
		return;
	s->qp = *qp;
	HEAR(wr_atomic_cmp_swp);
	HEAR(wr_atomic_fetch_add);
	HEAR(wr_atomic_write);
	HEAR(wr_bind_mw);
	HEAR(wr_local_inv);
	HEAR(wr_rdma_read);
	HEAR(wr_rdma_write);
	HEAR(wr_rdma_write_imm);
	HEAR(wr_send);
	HEAR(wr_send_imm);
	HEAR(wr_send_inv);
	HEAR(wr_send_tso);
	HEAR(wr_set_inline_data);
	HEAR(wr_set_inline_data_list);
	HEAR(wr_set_sge);
	HEAR(wr_set_sge_list);
	HEAR(wr_start);
	HEAR(wr_complete);
	HEAR(wr_abort);
}
