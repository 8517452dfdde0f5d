/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending datagrams: each entry of the send queue to the link of its destination, or
 * nowhere. One that has to wait holds up those behind it; hca/hold.c has copied it.
 */
#include <errno.h>
#include <string.h>

#include "hca/hold.h"
#include "transport/shm/slot.h"
#include "util/clock.h"
#include "util/probe.h"

/* A peer that takes nothing in for so long does not hold up the datagrams to
 * others. */
#define FULL_LIMIT_NS NSEC_PER_SEC

/* Datagrams that go nowhere are checked all the same. */
static bool gather_check(const struct hca_qp *qp, const struct hca_swqe *e)
{
	if (e->flags & (HCA_SWQE_INLINE | HCA_SWQE_HELD))
		return true;
	for (unsigned i = 0; i < e->num_sge; i++)
		if (unlikely(e->sge[i].length &&
			     !hca_sge_resolve(qp->pd, &e->sge[i], 0) &&
			     !hca_sge_for_kernel(qp->pd, &e->sge[i], 0)))
			return false;
	return true;
}

int shm_put_datagram(struct hca_qp *qp, struct shm_link *l,
		     const struct hca_swqe *e)
{
	uint32_t length = HCA_GRH_BYTES + e->length;
	struct slot_writer w;
	uint8_t *to;

	if (unlikely(!slot_open(l, &w)))
		return -EAGAIN;
	w.header = (struct shm_header){
		.op = e->opcode == IBV_WR_SEND ? SHM_DATAGRAM : SHM_DATAGRAM_IMM,
		.flags = (e->flags & HCA_SWQE_SOLICITED ? SHM_SOLICITED : 0) |
			 (hca_ah_is_ipv4(e->ud.ah) ? SHM_IPV4 : 0),
		.dst_qpn = e->ud.qpn,
		.src_qpn = qp->ibv.qp_num,
		.length = length,
		.imm = e->imm,
		.psn = e->ud.qkey,
	};
	to = w.slot->payload;
	if (length > SHM_SLOT_PAYLOAD) {
		struct shm_extent x = { .length = length };

		if (!shm_data_room(l, &w, length, &x.offset))
			return -EAGAIN;
		memcpy(w.slot->payload, &x, sizeof(x));
		w.header.flags |= SHM_IN_DATA;
		to = l->tx->data + x.offset;
	}
	hca_ah_header(e->ud.ah, e->length, e->opcode != IBV_WR_SEND, to);
	if (unlikely(!shm_gather(qp, e, 0, e->length, to + HCA_GRH_BYTES)))
		return -EFAULT;
	PROBE(transmit, qp->ibv.qp_num, e->ud.qpn, e->ud.qkey, length, e->opcode);
	slot_publish(l, &w, NULL, 0, 0);
	return 0;
}

/* The link is full; for how long already? tx_lock is held. */
static bool is_stuck(struct shm_link *l)
{
	uint32_t pos = atomic_load_explicit(&l->harvested, memory_order_relaxed);
	uint64_t now = progress_now_ns();

	if (!l->full_ns || l->full_pos != pos) {
		l->full_pos = pos;
		l->full_ns = now;
	}
	return now - l->full_ns >= FULL_LIMIT_NS;
}

/* It is sent and lost on the way, as datagrams may be. */
static int lose(struct hca_qp *qp, const struct hca_swqe *e)
{
	HCA_COUNT_RARE(qp, TX_LOST, 1);
	return gather_check(qp, e) ? 0 : -EFAULT;
}

/* Into the link: 0, -EFAULT, or -EAGAIN: its turn comes again. */
static inline int send_to(struct hca_qp *qp, struct shm_link *l,
			  const struct hca_swqe *e)
{
	bool other = false;
	int ret;

	/* A hint for shm_posted(), as links are never freed. */
	atomic_store_explicit(&qp->link, l, memory_order_release);
	hca_lock(&l->tx_lock);
	if (unlikely(atomic_load_explicit(&l->state, memory_order_acquire) !=
		     SHM_LINK_UP)) {
		ret = lose(qp, e);
	} else {
		ret = shm_put_datagram(qp, l, e);
		if (likely(!ret))
			shm_kick_datagram(l, e);
		else if (ret == -EAGAIN && is_stuck(l))
			ret = lose(qp, e);
		else if (ret == -EAGAIN)
			other = !shm_backlog_add(l, qp);
	}
	hca_unlock(&l->tx_lock);
	if (unlikely(other)) /* nobody tells us of room here */
		shm_wait_for_link(qp);
	return ret;
}

/* To wherever its address handle says; as send_to(). */
static inline int send_datagram(struct hca_qp *qp, const struct hca_swqe *e)
{
	struct shm_link *l = atomic_load_explicit(
		&shm.by_block[e->ud.qpn >> HCA_QPN_BLOCK_BITS],
		memory_order_acquire);

	if (unlikely(e->flags & HCA_SWQE_HELD) && hca_held(e)->refused)
		return -EFAULT;
	if (likely(e->ud.ah->local && l))
		return send_to(qp, l, e);
	/* It fails at once, wherever it goes. */
	if (!gather_check(qp, e))
		return -EFAULT;
	if (e->ud.ah->multicast)
		return shm_multicast(qp, e);
	if (!e->ud.ah->local)
		return lose(qp, e);
	qp->calls = !qp->lost_since_ns;
	shm_wait_for_link(qp);
	return -EAGAIN;
}

void shm_transmit_datagrams(struct hca_qp *qp)
{
	enum ibv_wc_status status = IBV_WC_SUCCESS;

	while (status == IBV_WC_SUCCESS && qp->sq.next != hca_sq_end(qp)) {
		const struct hca_swqe *e = hca_sq_entry(&qp->sq, qp->sq.next);

		if (unlikely(e->ud.ah->pd_id != qp->pd->id)) {
			/* The handle belongs to another domain (10.2.3). */
			status = IBV_WC_LOC_QP_OP_ERR;
		} else if (unlikely(e->length > HCA_UD_MTU)) {
			status = IBV_WC_LOC_LEN_ERR;
		} else {
			int ret = send_datagram(qp, e);

			if (unlikely(ret == -EAGAIN))
				return;
			if (unlikely(ret))
				status = IBV_WC_LOC_PROT_ERR;
		}
		/* A datagram is complete when it is on its way, or lost. */
		qp->sq.next++;
		hca_sq_complete(qp, status);
	}
}
