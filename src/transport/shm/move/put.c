/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Filling one slot for an entry of a send queue: messages of connected queue pairs, also of
 * XRC, and requests that the target carries out (target.c).
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "hca/host/settings.h"
#include "hca/object/opcode.h"
#include "hca/queue/scatter.h"
#include "hca/run/elide.h"
#include "transport/shm/link/slot.h"
#include "transport/shm/link/state.h"
#include "transport/shm/link/wake.h"
#include "transport/shm/move/send.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/watch/watch.h"
#include "util/probe.h"

/* The header of a message of a connected QP. */
static inline struct shm_header header_of(const struct hca_qp *qp,
					  const struct hca_swqe *e, uint8_t op,
					  unsigned flags)
{
	return (struct shm_header){
		.op = op,
		.flags = (uint8_t)(flags | slot_flags(qp, e->flags)),
		.dst_qpn = qp->attr.dest_qp_num,
		.src_qpn = qp->ibv.qp_num,
		.length = e->length,
		.imm = e->imm,
		.psn = qp->tx_psn,
	};
}

static const uint8_t ops[] = {
	[IBV_WR_SEND] = SHM_SEND,
	[IBV_WR_SEND_WITH_IMM] = SHM_SEND_IMM,
	[IBV_WR_RDMA_WRITE_WITH_IMM] = SHM_WRITE_IMM,
	[IBV_WR_ATOMIC_CMP_AND_SWP] = SHM_COMPARE_SWAP,
	[IBV_WR_ATOMIC_FETCH_AND_ADD] = SHM_FETCH_ADD,
	[IBV_WR_SEND_WITH_INV] = SHM_SEND_INV,
	[HCA_WR_ATOMIC_WRITE] = SHM_ATOMIC_WRITE,
};

/* Fills the slot with the addresses for SHM_PULL. False if a piece has no plain address
 * (hca_sge_resolve). */
static bool put_pull(const struct hca_qp *qp, const struct hca_swqe *e, struct shm_slot *slot)
{
	struct shm_pull pull[SHM_PULL_MAX] = { 0 };

	for (unsigned i = 0; i < e->num_sge; i++) {
		const void *base = hca_sge_resolve(qp->pd, &e->sge[i], 0);

		if (unlikely(!base && e->sge[i].length))
			return false;
		pull[i] = (struct shm_pull){
			.addr = (uintptr_t)base,
			.length = e->sge[i].length,
		};
	}
	memcpy(slot->payload, pull, sizeof(pull));
	return true;
}

/* True if the peer says in its struct shm_ack, which is read anyway, that it can read our
 * memory. A peer without that permission gets no addresses, whatever it writes there. */
static inline bool may_pull(const struct shm_link *l)
{
	return atomic_load_explicit(&l->tx->ack.pulls, memory_order_relaxed) &&
	       likely(l->lends & HCA_PEER_MEMORY);
}

/* Fills the header fields of an XRC message (struct shm_xrc_header); tx_lock is held. */
static void xrc_address(const struct hca_qp *qp, const struct hca_swqe *e,
			const struct shm_slot *slot, struct shm_header *h)
{
	uint32_t target = qp->attr.dest_qp_num;
	struct shm_extent x = { .at = 0 };

	if (h->flags & SHM_IN_DATA)
		memcpy(&x, slot->payload, sizeof(x));
	h->flags |= SHM_XRC;
	if (qp->sq.next == qp->sq.tail && x.at == 0)
		h->flags |= SHM_XRC_FIRST;
	h->dst_qpn = *hca_swqe_srqn((struct hca_swqe *)e) | target << 24;
	h->src_qpn |= (target >> 8 & 0xff) << 24;
	h->psn |= (target >> 16 & 0xff) << 24;
	h->timer = (uint8_t)atomic_load_explicit(&shm_qp(qp)->remote->min_rnr_timer,
						 memory_order_relaxed);
}

/* The last step for a slot of a connected QP. */
static inline void publish(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e,
			   struct slot_writer *w, unsigned kind)
{
	PROBE(transmit, qp->ibv.qp_num, qp->attr.dest_qp_num, qp->tx_psn, e->length, e->opcode);
	if (unlikely(qp->ibv.qp_type == IBV_QPT_XRC_SEND))
		xrc_address(qp, e, w->slot, &w->header);
	if (unlikely(shm_watches)) {
		shm_watch_sent(l, w->pos, w->slot, &w->header);
		kind |= SHM_SHOWN;
	}
	slot_publish(l, w, shm_is_reliable(qp) ? qp : NULL, qp->sq.next, kind);
}

int shm_put_message(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e)
{
	struct slot_writer w;
	struct shm_slot *s;
	unsigned flags = 0, kind = 0;
	uint32_t length = e->opcode == IBV_WR_RDMA_WRITE_WITH_IMM ? 0 : e->length;

	if (unlikely(!slot_open(l, &w)))
		return -EAGAIN;
	s = w.slot;
	if (unlikely(hca_op_is_word(e->opcode))) {
		bool write = e->opcode == HCA_WR_ATOMIC_WRITE;
		uint64_t word = 0;

		/* With ibv_wr_atomic_*() the program may not have set the buffer. */
		if ((!write && !qp->attr.max_rd_atomic) || e->length != sizeof(uint64_t))
			return -EPERM;
		if (write && hca_swqe_read(qp, e, 0, &word, sizeof(word)))
			return -EFAULT;
		shm_atomic_request(e, word, s);
	} else if (likely(length <= SHM_SLOT_PAYLOAD)) {
		if (unlikely(hca_swqe_read(qp, e, 0, s->payload, length)))
			return -EFAULT;
		kind = e->opcode == IBV_WR_SEND ||
				       e->opcode == IBV_WR_SEND_WITH_IMM ?
			       SHM_PLAIN : 0;
	} else if (length > hca_settings.eager_bytes &&
		   !shm_qp(qp)->tx_offset && may_pull(l) &&
		   /* Inline data have no sge and are in the send queue only. */
		   e->num_sge - 1u < SHM_PULL_MAX && shm_is_reliable(qp) &&
		   likely(put_pull(qp, e, s))) {
		flags = SHM_PULL;
	} else {
		struct shm_extent x = {
			.at = shm_qp(qp)->tx_offset,
			.length = MIN(length - shm_qp(qp)->tx_offset, SHM_FRAGMENT),
		};

		if (!shm_data_room(l, &w, x.length, &x.offset))
			return -EAGAIN;
		if (unlikely(hca_swqe_read(qp, e, x.at, l->tx->data + x.offset, x.length)))
			return -EFAULT;
		memcpy(s->payload, &x, sizeof(x));
		shm_qp(qp)->tx_offset = x.at + x.length;
		flags = SHM_IN_DATA;
		if (shm_qp(qp)->tx_offset < length)
			flags |= SHM_MORE;
		else
			shm_qp(qp)->tx_offset = 0;
	}
	w.header = header_of(qp, e, ops[e->opcode], flags);
	publish(qp, l, e, &w,
		kind | (flags & SHM_MORE ? SHM_PART :
			hca_op_is_atomic(e->opcode) ? SHM_RESULT : 0u));
	return 0;
}

static uint32_t request_part(const struct hca_swqe *e, uint32_t at, bool *in_data)
{
	*in_data = e->length > SHM_REQUEST_PAYLOAD;
	return MIN(e->length - at, SHM_FRAGMENT);
}

int shm_put_request(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e)
{
	bool read = e->opcode == IBV_WR_RDMA_READ, in_data, last;
	struct shm_request q = { .part.at = shm_qp(qp)->tx_offset, .rkey = e->rkey,
				 .remote_addr = e->remote_addr };
	struct iovec iov[HCA_MAX_SGE];
	struct slot_writer w;
	bool kernel;
	uint8_t *to;

	if (read && !qp->attr.max_rd_atomic)
		return -EPERM;
	if (!slot_open(l, &w))
		return -EAGAIN;
	q.part.length = request_part(e, q.part.at, &in_data);
	if (in_data && !shm_data_room(l, &w, q.part.length, &q.part.offset))
		return -EAGAIN;
	to = in_data ? l->tx->data + q.part.offset : w.slot->payload + sizeof(q);
	if (read ? shm_swqe_iov(qp, e, q.part.at, q.part.length,
				IBV_ACCESS_LOCAL_WRITE, iov, &kernel) < 0 :
		   hca_swqe_read(qp, e, q.part.at, to, q.part.length))
		return -EFAULT;
	memcpy(w.slot->payload, &q, sizeof(q));
	last = q.part.at + q.part.length == e->length;
	shm_qp(qp)->tx_offset = last ? 0 : q.part.at + q.part.length;
	w.header = header_of(qp, e,
			     read ? SHM_READ :
			     e->opcode == IBV_WR_RDMA_WRITE ? SHM_WRITE :
							      SHM_WRITE_DATA_IMM,
			     (in_data ? SHM_IN_DATA : 0u) |
				     (last ? 0u : SHM_MORE));
	publish(qp, l, e, &w, (last ? 0u : SHM_PART) | (read ? SHM_DATA : 0u));
	return 0;
}

bool shm_send_fault(struct hca_qp *qp, struct shm_link *l, enum ibv_wc_status status)
{
	struct slot_writer w;
	bool room;

	hca_lock(&l->tx_lock);
	room = slot_open(l, &w);
	if (room) {
		w.header = (struct shm_header){
			.op = SHM_ACCESS_FAULT,
			.dst_qpn = qp->attr.dest_qp_num,
			.src_qpn = qp->ibv.qp_num,
			.imm = status,
		};
		slot_publish(l, &w, NULL, 0, 0);
		shm_kick(l);
	}
	hca_unlock(&l->tx_lock);
	return room;
}
