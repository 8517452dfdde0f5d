/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fast path of the usual message, from its posting to its completion at the
 * receiver: a small SEND of an RC queue pair that fits into a slot and is in sequence,
 * from one buffer into one buffer. All other messages are left to tx.c and rx.c, which
 * can handle this kind, too.
 *
 * In a ping-pong this code makes up the adapter's whole latency between a message and
 * its answer, so work that the peer does not wait for is done after the work that it
 * waits for.
 */
#define LOG_ROOM "shm"
#include <string.h>

#include "hca/limits.h"
#include "hca/object/qp.h"
#include "hca/object/rq.h"
#include "hca/object/sq.h"
#include "hca/queue/post.h"
#include "hca/queue/push.h"
#include "hca/queue/receive.h"
#include "hca/run/elide.h"
#include "hca/run/touch.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/slot.h"
#include "transport/shm/link/state.h"
#include "transport/shm/link/wake.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/move/send.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"
#include "util/probe.h"

/* ---- sending ---- */
struct plain_send {
	bool imm_data;
	unsigned flags; /* enum hca_swqe_flags */
	uint32_t length, imm;
	const struct ibv_sge *sge;
	const void *inline_data; /* in place of `sge`: HCA_SWQE_INLINE */
};

/* False: the slot cannot be filled here (no room, or the key needs more than the fast
 * path), and nothing was done. sq_lock is held. */
static inline __attribute__((always_inline)) bool
put(struct hca_qp *qp, struct shm_link *l, uint32_t index, const struct plain_send *p)
{
	const void *from = p->inline_data;
	struct slot_writer w;

	hca_lock(&l->tx_lock);
	if (unlikely(!slot_open(l, &w)))
		goto other;
	if (!(p->flags & HCA_SWQE_INLINE)) {
		from = hca_sge_resolve(qp->pd, p->sge, 0);
		if (unlikely(!from || !hca_touch_read(from, p->length)))
			goto other;
	}
	w.unsignaled = !(p->flags & HCA_SWQE_SIGNALED);
	memcpy(w.slot->payload, from, p->length);
	w.header = (struct shm_header){
		.op = p->imm_data ? SHM_SEND_IMM : SHM_SEND,
		.flags = slot_flags(qp, p->flags),
		.dst_qpn = qp->attr.dest_qp_num,
		.src_qpn = qp->ibv.qp_num,
		.length = p->length,
		.imm = p->imm,
		.psn = qp->tx_psn,
	};
	slot_publish(l, &w, shm_is_reliable(qp) ? qp : NULL, index, SHM_PLAIN);
	PROBE(transmit, qp->ibv.qp_num, qp->attr.dest_qp_num, qp->tx_psn,
	      p->length, p->imm_data ? IBV_WR_SEND_WITH_IMM : IBV_WR_SEND);
	/* The peer polls the first cache line of the next slot, not the second one,
	 * which can be fetched already. */
	__builtin_prefetch(&l->tx->slots[(w.pos + 1) % SHM_SLOTS].payload[SHM_FIRST_LINE], 1);
	hca_unlock(&l->tx_lock);
	qp->tx_psn = (qp->tx_psn + 1) & HCA_PSN_MASK;
	return true;

other:
	hca_unlock(&l->tx_lock);
	return false;
}

bool shm_transmit_plain(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e)
{
	struct plain_send p = {
		.imm_data = e->opcode == IBV_WR_SEND_WITH_IMM,
		.flags = e->flags,
		.length = e->length,
		.imm = e->imm,
		.sge = &e->sge[0],
		.inline_data = e->inline_data,
	};

	if (unlikely((e->opcode != IBV_WR_SEND &&
		      e->opcode != IBV_WR_SEND_WITH_IMM) ||
		     e->length > SHM_SLOT_PAYLOAD ||
		     (e->flags & (HCA_SWQE_FENCE | HCA_SWQE_WATCHED)) ||
		     (e->num_sge != 1 && !(e->flags & HCA_SWQE_INLINE))) ||
	    !put(qp, l, qp->sq.next, &p))
		return false;
	qp->sq.next++;
	if (unlikely(!shm_is_reliable(qp)))
		shm_complete(qp, IBV_WC_SUCCESS);
	return true;
}

/* Fills the send queue entry of a request whose slot is already published, as it may
 * have to be sent again. */
static inline void keep(struct hca_sq *sq, const struct ibv_send_wr *wr, unsigned flags)
{
	struct hca_swqe *e = hca_sq_entry(sq, sq->head);

	e->wr_id = wr->wr_id;
	e->opcode = (uint8_t)wr->opcode;
	e->flags = (uint8_t)flags;
	e->length = wr->sg_list->length;
	e->imm = wr->imm_data;
	if (flags & HCA_SWQE_INLINE) {
		e->num_sge = 0;
		memcpy(e->inline_data, (const void *)(uintptr_t)wr->sg_list->addr, e->length);
	} else {
		e->num_sge = 1;
		e->sge[0] = *wr->sg_list;
	}
	sq->next = ++sq->head;
}

bool shm_post_plain(struct hca_qp *qp, const struct ibv_send_wr *wr)
{
	struct shm_link *l = shm_qp(qp)->link;
	struct plain_send p;

	if (unlikely(qp->ibv.qp_type != IBV_QPT_RC || !l || wr->num_sge != 1 ||
		     !qp->sq.max_sge ||
		     (wr->opcode != IBV_WR_SEND &&
		      wr->opcode != IBV_WR_SEND_WITH_IMM) ||
		     wr->send_flags & ~(HCA_SEND_FLAGS_KNOWN & ~IBV_SEND_FENCE)))
		return false;
	p = (struct plain_send){
		.imm_data = wr->opcode == IBV_WR_SEND_WITH_IMM,
		.flags = wr->send_flags | qp->always_flags,
		.length = wr->sg_list->length,
		.imm = wr->imm_data,
		.sge = wr->sg_list,
		.inline_data = (const void *)(uintptr_t)wr->sg_list->addr,
	};
	if (unlikely(p.length > SHM_SLOT_PAYLOAD ||
		     ((p.flags & HCA_SWQE_INLINE) &&
		      p.length > qp->sq.max_inline)) ||
	    !put(qp, l, qp->sq.head, &p))
		return false;
	keep(&qp->sq, wr, p.flags);
	return true;
}

/* ---- receiving ---- */
static inline __attribute__((always_inline)) void
complete(struct shm_link *l, uint32_t pos, struct hca_qp *qp, const struct hca_rwqe *e,
	 const struct shm_header *h)
{
	struct ibv_wc wc = {
		.wr_id = e->wr_id,
		.status = IBV_WC_SUCCESS,
		.opcode = IBV_WC_RECV,
		.byte_len = h->length,
		.qp_num = qp->ibv.qp_num,
		.src_qp = h->src_qpn,
	};

	if (unlikely(h->op == SHM_SEND_IMM)) {
		wc.wc_flags = IBV_WC_WITH_IMM;
		wc.imm_data = h->imm;
	}
	HCA_COUNT_RECEIVED(qp, false, h->length);
	hca_recv_done(qp);
	shm_tell_received(l, pos + 1);
	hca_cq_push(qp->recv_cq, &wc, h->flags & SHM_SOLICITED);
}

/* False: not the usual message, or it cannot be received here; nothing was done, and
 * shm_receive_other() handles it. */
static inline __attribute__((always_inline)) bool
take(struct shm_link *l, uint32_t pos, const struct shm_slot *slot, const struct shm_header *h,
     struct hca_qp *qp)
{
	struct hca_rwqe *e;
	void *to;

	if (unlikely(!qp || hca_qp_state(qp) != IBV_QPS_RTS ||
		     (h->op != SHM_SEND && h->op != SHM_SEND_IMM) ||
		     h->flags & (SHM_IN_DATA | SHM_PULL | SHM_MORE |
				 SHM_UNRELIABLE) ||
		     h->length > SHM_SLOT_PAYLOAD ||
		     qp->ibv.qp_type != IBV_QPT_RC ||
		     !shm_from_peer(qp, l, h->src_qpn) ||
		     h->psn != atomic_load_explicit(&qp->rx_psn,
						    memory_order_relaxed)))
		return false;
	hca_lock(&qp->recv->consume_lock);
	e = hca_recv_first(qp);
	if (unlikely(!e || e->num_sge != 1 || h->length > e->sge[0].length))
		goto other;
	to = hca_sge_resolve(qp->recv_pd, &e->sge[0], IBV_ACCESS_LOCAL_WRITE);
	if (unlikely(!to || !hca_touch_write(to, h->length)))
		goto other;
	memcpy(to, slot->payload, h->length);
	complete(l, pos, qp, e, h);
	/* After the receive is consumed: see hca_promise_extend(). */
	atomic_store_explicit(&qp->rx_psn, (h->psn + 1) & HCA_PSN_MASK, memory_order_release);
	hca_unlock(&qp->recv->consume_lock);
	return true;

other:
	hca_unlock(&qp->recv->consume_lock);
	return false;
}

bool shm_receive(struct shm_link *l)
{
	struct shm_slot *s;
	uint32_t pos, start;
	bool kick = false;

	if (unlikely(atomic_load_explicit(&l->state, memory_order_acquire) !=
			     SHM_LINK_UP ||
		     atomic_load_explicit(&l->broken, memory_order_relaxed)))
		return false;
	start = pos = atomic_load_explicit(&l->rx_pos, memory_order_relaxed);
	while (pos - start < SHM_RECEIVE_BUDGET && (s = shm_slot_ready(l, pos))) {
		struct shm_header h;
		struct hca_qp *qp;
		uint32_t ack;

		shm_slot_read(s, &h, &ack);
		/* The slot's second cache line is still in the sender's cache. */
		if (h.length > SHM_FIRST_LINE)
			__builtin_prefetch(&s->payload[SHM_FIRST_LINE]);
		qp = hca_qp_find(h.dst_qpn);
		shm_take_hint(l, qp, ack);
		PROBE(receive, h.dst_qpn, h.src_qpn, h.psn, h.length, h.op);
		if (unlikely(!take(l, pos, s, &h, qp))) {
			if (shm_receive_other(l, s, h)) {
				l->rx_marks++;
				kick = true;
			}
			shm_tell_received(l, pos + 1);
		}
		kick |= !!(h.flags & SHM_KICK_ON_ACK);
		atomic_store_explicit(&l->rx_pos, ++pos, memory_order_relaxed);
	}
	if (pos != start) {
		atomic_store_explicit(&l->rx->ack.word,
				      shm_ack_word(pos, l->rx_marks),
				      memory_order_release);
		if (unlikely(kick))
			shm_kick(l);
	}
	return pos != start;
}
