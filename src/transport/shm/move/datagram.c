/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sending datagrams, each through the link of its destination. Later datagrams of the QP
 * wait behind one that has to wait; hca/queue/hold.c holds a copy of it.
 */
#include <errno.h>
#include <string.h>

#include "hca/limits.h"
#include "hca/object/ah.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/qp/address.h"
#include "hca/queue/datagram.h"
#include "hca/queue/scatter.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/process.h"
#include "transport/shm/link/backlog.h"
#include "transport/shm/link/slot.h"
#include "transport/shm/link/state.h"
#include "transport/shm/link/wake.h"
#include "transport/shm/move/send.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/watch/watch.h"
#include "util/clock.h"
#include "util/container_of.h"
#include "util/probe.h"

/* If a peer has received nothing for so long, datagrams to it are dropped, so that those
 * to others are not delayed. */
#define FULL_LIMIT_NS NSEC_PER_SEC
#define MULTICAST_WAIT_NS 500000 /* between two checks of the links being made */

/* Fills one slot; result and lock as for shm_put_message(). */
static int put_datagram(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e)
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
	if (unlikely(hca_swqe_read(qp, e, 0, to + HCA_GRH_BYTES, e->length)))
		return -EFAULT;
	PROBE(transmit, qp->ibv.qp_num, e->ud.qpn, e->ud.qkey, length, e->opcode);
	if (unlikely(shm_watches))
		shm_watch_sent(l, w.pos, w.slot, &w.header);
	slot_publish(l, &w, NULL, 0, 0);
	return 0;
}

/* The link is full: true if the peer has received nothing for FULL_LIMIT_NS. tx_lock is
 * held. */
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

/* 0 (sent or lost), -EFAULT (a key does not allow it), or -EAGAIN (the QP is to try
 * again). sq_lock is held. */
static inline int send_to(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e)
{
	bool other = false;
	int ret;

	/* A hint for shm_posted(), as links are never freed. */
	atomic_store_explicit(&shm_qp(qp)->link, l, memory_order_release);
	hca_lock(&l->tx_lock);
	if (unlikely(atomic_load_explicit(&l->state, memory_order_acquire) !=
		     SHM_LINK_UP)) {
		ret = hca_datagram_lose(qp, e);
	} else {
		ret = put_datagram(qp, l, e);
		if (likely(!ret))
			shm_kick_datagram(l, e);
		else if (ret == -EAGAIN && is_stuck(l))
			ret = hca_datagram_lose(qp, e);
		else if (ret == -EAGAIN)
			other = !shm_backlog_add(l, qp);
	}
	hca_unlock(&l->tx_lock);
	if (unlikely(other)) /* it is in the backlog of another link: the timer sends it */
		shm_wait_for_link(qp);
	return ret;
}

/* tx_lock is held. */
static bool may_have_members(const struct shm_link *l, unsigned bit)
{
	if (atomic_load_explicit(&l->state, memory_order_acquire) != SHM_LINK_UP)
		return false;
	/* Of the two ends of the link with ourselves only one is used. */
	if (l->target_block == 0 && shm_uuid_is(l, hca_process.uuid))
		return false;
	return atomic_load_explicit(&l->peer->mcast_filter[bit / 64],
				    memory_order_relaxed) >> bit % 64 & 1;
}

static int send_copy(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e)
{
	int ret = 0;

	hca_lock(&l->tx_lock);
	if (may_have_members(l, e->ud.ah->mcast_bit)) {
		/* shm_posted() processes the acknowledgements of this link. */
		atomic_store_explicit(&shm_qp(qp)->link, l, memory_order_release);
		ret = put_datagram(qp, l, e);
		if (!ret)
			shm_kick_datagram(l, e);
	}
	hca_unlock(&l->tx_lock);
	if (ret != -EAGAIN)
		return ret;
	HCA_COUNT_RARE(qp, TX_LOST, 1); /* the ring is full */
	return 0;
}

/*
 * True if a link is still waiting for READY, for at most SHM_MULTICAST_LIMIT_NS. For the member
 * that connected the link is up already, and its program may rely on that before READY
 * is processed here.
 */
static bool must_wait(struct hca_qp *qp, unsigned count)
{
	bool greeted = false;

	for (unsigned i = 0; i < count && !greeted; i++)
		greeted = shm_link_is_greeted(shm.links[i]);
	return unlikely(greeted) &&
	       shm_lost_for_ns(qp, progress_now_ns()) <= SHM_MULTICAST_LIMIT_NS;
}

static int multicast(struct hca_qp *qp, const struct hca_swqe *e)
{
	unsigned count = atomic_load_explicit(&shm.link_count, memory_order_acquire);

	if (unlikely(!atomic_load_explicit(&shm.mcast_ready, memory_order_acquire) ||
		     must_wait(qp, count))) {
		shm_retry_at(qp, progress_now_ns() +
					 (shm_qp(qp)->lost_since_ns ? MULTICAST_WAIT_NS : 0));
		return -EAGAIN;
	}
	/* A datagram to a group with any other QP number has no receivers. */
	if (e->ud.qpn != HCA_QPN_MULTICAST)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		int ret = send_copy(qp, shm.links[i], e);

		if (ret)
			return ret;
	}
	return 0;
}

static inline int send_datagram(struct hca_qp *qp, const struct hca_swqe *e)
{
	struct shm_link *l = atomic_load_explicit(
		&shm.by_block[e->ud.qpn >> HCA_QPN_BLOCK_BITS],
		memory_order_acquire);

	if (likely(e->ud.ah->local && l))
		return send_to(qp, l, e);
	/* A local error is reported at once, whatever the destination. */
	if (!hca_datagram_allowed(qp, e))
		return -EFAULT;
	if (e->ud.ah->multicast)
		return multicast(qp, e);
	qp->calls = !shm_qp(qp)->lost_since_ns;
	shm_wait_for_link(qp);
	return -EAGAIN;
}

int shm_send_datagram(struct hca_qp *qp, const struct hca_swqe *e)
{
	int ret = send_datagram(qp, e);

	if (likely(ret != -EAGAIN))
		shm_qp(qp)->lost_since_ns = 0;
	return ret;
}
