/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sending side of a link: send queue entries into slots. plain.c has a fast path for
 * the usual message, which can be sent from here as well. Datagrams are in datagram.c.
 *
 * shm_transmit() is called with the QP's sq_lock held, from posting, from
 * acknowledgements of the same QP, or from the backlog. It never waits: what
 * does not fit stays in the send queue.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "hca/host/settings.h"
#include "hca/limits.h"
#include "hca/object/opcode.h"
#include "hca/object/public.h"
#include "hca/object/qp.h"
#include "hca/object/sq.h"
#include "hca/queue/hold.h"
#include "hca/queue/post.h"
#include "hca/queue/scatter.h"
#include "hca/run/elide.h"
#include "hca/run/progress.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/shm/link/control.h"
#include "transport/shm/reach/copy.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/ring/ring.h"
#include "transport/shm/move/send.h"
#include "transport/shm/link/slot.h"
#include "transport/shm/link/state.h"
#include "transport/shm/watch/watch.h"
#include "util/container_of.h"
#include "util/list.h"
#include "util/log.h"
#include "util/probe.h"
#include "util/wakeup.h"

/* The data area is used as a ring. When no slot is in flight it starts at the front again,
 * which is likely to be in the cache. */
bool shm_data_room(struct shm_link *l, struct slot_writer *w, uint32_t bytes,
		   uint32_t *offset)
{
	uint32_t need = (bytes + CACHE_LINE - 1) & ~(uint32_t)(CACHE_LINE - 1);
	uint32_t head = l->data_head;
	uint32_t tail = atomic_load_explicit(&l->data_tail,
					     memory_order_acquire);

	if (atomic_load_explicit(&l->harvested, memory_order_acquire) == w->pos) {
		head = tail = 0;
		atomic_store_explicit(&l->data_tail, 0, memory_order_relaxed);
	}
	if (head >= tail) {
		if (need > SHM_DATA_BYTES - head ||
		    (need == SHM_DATA_BYTES - head && tail == 0)) {
			if (need >= tail)
				return false;
			head = 0;
		}
	} else if (need >= tail - head) {
		return false;
	}
	*offset = head;
	w->data_end = (head + need) % SHM_DATA_BYTES;
	return true;
}

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
static bool put_pull(const struct hca_qp *qp, const struct hca_swqe *e,
		     struct shm_slot *slot)
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

/* True if the peer can read our memory, by its struct shm_ack, which is read anyway. A peer
 * that is not allowed to is not given our addresses, whatever it writes there. */
static inline bool may_pull(const struct shm_link *l)
{
	return atomic_load_explicit(&l->tx->ack.pulls, memory_order_relaxed) &&
	       likely(l->lends & HCA_PEER_MEMORY);
}

/* Fills one slot of a message of a connected QP. tx_lock is held. 0, -EAGAIN (no room),
 * -EFAULT (a key does not allow it) or -EPERM (the QP may not do it). The buffers of an
 * unreliable message are not needed afterwards, as it is complete when it is sent. */
static __attribute__((noinline)) int
put_message(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e,
	    uint32_t index)
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
		if ((!write && !qp->attr.max_rd_atomic) ||
		    e->length != sizeof(uint64_t))
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
		   !qp->tx_offset && may_pull(l) &&
		   /* Inline data have no sge and are in the send queue only. */
		   e->num_sge - 1u < SHM_PULL_MAX && shm_is_reliable(qp) &&
		   likely(put_pull(qp, e, s))) {
		flags = SHM_PULL;
	} else {
		struct shm_extent x = {
			.at = qp->tx_offset,
			.length = MIN(length - qp->tx_offset, SHM_FRAGMENT),
		};

		if (!shm_data_room(l, &w, x.length, &x.offset))
			return -EAGAIN;
		if (unlikely(hca_swqe_read(qp, e, x.at, l->tx->data + x.offset,
					   x.length)))
			return -EFAULT;
		memcpy(s->payload, &x, sizeof(x));
		qp->tx_offset = x.at + x.length;
		flags = SHM_IN_DATA;
		if (qp->tx_offset < length)
			flags |= SHM_MORE;
		else
			qp->tx_offset = 0;
	}
	w.header = header_of(qp, e, ops[e->opcode], flags);
	PROBE(transmit, qp->ibv.qp_num, qp->attr.dest_qp_num, qp->tx_psn,
	      e->length, e->opcode);
	if (unlikely(qp->ibv.qp_type == IBV_QPT_XRC_SEND))
		shm_xrc_address(qp, e, s, &w.header);
	if (unlikely(shm_watches)) {
		shm_watch_sent(l, w.pos, s, &w.header);
		kind |= SHM_SHOWN;
	}
	slot_publish(l, &w, shm_is_reliable(qp) ? qp : NULL, index,
		     kind | (flags & SHM_MORE ? SHM_PART :
			     hca_op_is_atomic(e->opcode) ? SHM_RESULT : 0u));
	return 0;
}

/* Fills one slot of a WRITE or READ that the target carries out (target.c); result and
 * lock as for put_message(). */
static __attribute__((noinline)) int
put_request(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e,
	    uint32_t index)
{
	bool read = e->opcode == IBV_WR_RDMA_READ, in_data, last;
	struct shm_request q = { .part.at = qp->tx_offset, .rkey = e->rkey,
				 .remote_addr = e->remote_addr };
	struct iovec iov[HCA_MAX_SGE];
	unsigned kind = 0;
	struct slot_writer w;
	bool kernel;
	uint8_t *to;

	if (read && !qp->attr.max_rd_atomic)
		return -EPERM;
	if (!slot_open(l, &w))
		return -EAGAIN;
	q.part.length = shm_request_part(e, q.part.at, &in_data);
	if (in_data && !shm_data_room(l, &w, q.part.length, &q.part.offset))
		return -EAGAIN;
	to = in_data ? l->tx->data + q.part.offset :
		       w.slot->payload + sizeof(q);
	if (read ? shm_swqe_iov(qp, e, q.part.at, q.part.length,
				IBV_ACCESS_LOCAL_WRITE, iov, &kernel) < 0 :
		   hca_swqe_read(qp, e, q.part.at, to, q.part.length))
		return -EFAULT;
	memcpy(w.slot->payload, &q, sizeof(q));
	last = q.part.at + q.part.length == e->length;
	qp->tx_offset = last ? 0 : q.part.at + q.part.length;
	w.header = header_of(qp, e,
			     read ? SHM_READ :
			     e->opcode == IBV_WR_RDMA_WRITE ? SHM_WRITE :
							      SHM_WRITE_DATA_IMM,
			     (in_data ? SHM_IN_DATA : 0u) |
				     (last ? 0u : SHM_MORE));
	PROBE(transmit, qp->ibv.qp_num, qp->attr.dest_qp_num, qp->tx_psn,
	      e->length, e->opcode);
	if (unlikely(qp->ibv.qp_type == IBV_QPT_XRC_SEND))
		shm_xrc_address(qp, e, w.slot, &w.header);
	if (unlikely(shm_watches)) {
		shm_watch_sent(l, w.pos, w.slot, &w.header);
		kind = SHM_SHOWN;
	}
	slot_publish(l, &w, shm_is_reliable(qp) ? qp : NULL, index,
		     kind | (last ? 0u : SHM_PART) | (read ? SHM_DATA : 0u));
	return 0;
}

int shm_put_xrc(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e,
		bool by_target)
{
	return by_target ? put_request(qp, l, e, qp->sq.next) :
			   put_message(qp, l, e, qp->sq.next);
}

void shm_wake(struct shm_link *l)
{
	int ret = 0;

	HCA_COUNT_PROCESS(KICKS_SENT, 1);
	if (unlikely(l->kick_fd < 0))
		shm_control_kick(l->fd);
	else
		ret = wakeup_post(l->kick_fd);
	if (ret)
		log_debug("peer pid %d not woken: %s", (int)l->pid, strerror(-ret));
}

/* The target's program may read its memory only and not poll, and our program sleeps, so
 * that wake_idle_peer(), which needs polls, does not wake the target: without this the
 * request would wait for the next tick of the target's progress thread. */
void shm_wake_target(struct shm_link *l)
{
	if (atomic_load_explicit(&l->peer->wants_kick, memory_order_relaxed) ||
	    atomic_load_explicit(&hca_process.segment->wants_kick,
				 memory_order_relaxed) != HCA_WAKE_ALL)
		return;
	shm_wake(l);
}

bool shm_backlog_add(struct shm_link *l, struct hca_qp *qp)
{
	if (shm_qp(qp)->backlogged)
		return shm_qp(qp)->backlog_of == l;
	shm_qp(qp)->backlogged = true;
	shm_qp(qp)->backlog_of = l;
	list_push(&l->backlog_qps, &shm_qp(qp)->backlog_entry);
	/* Counted first, then `wants_kick` is read; a thread that goes to sleep does the
	 * reverse (hca/share/attention.c). */
	if (atomic_fetch_add(&l->backlog, 1) == 0 &&
	    atomic_load(&hca_process.segment->wants_kick) == HCA_WAKE_ALL)
		progress_kick(); /* nobody polls: the thread has to tick */
	return true;
}

void shm_backlog_wait(struct shm_link *l, struct hca_qp *qp)
{
	hca_lock(&l->tx_lock);
	shm_backlog_add(l, qp);
	hca_unlock(&l->tx_lock);
}

enum onesided {
	ONESIDED_WAIT,      /* transmission stops here for now */
	ONESIDED_DONE,      /* the entry is complete */
	ONESIDED_MESSAGE,   /* data written; the immediate is to be sent as a message */
	ONESIDED_BY_TARGET, /* the target has to carry out all of it */
};

/*
 * True if the responder expects our sequence numbers. Acknowledged messages show that. An
 * operation that is no message has no number; so before the first one the PSNs of the two
 * QPs are compared, and if they differ the operation is sent as a message, for the
 * responder to check. UC has no such check. No message of the QP is outstanding.
 */
static bool in_sequence(struct hca_qp *qp)
{
	const struct hca_qp_public *r = shm_qp(qp)->remote;
	uint32_t connection = atomic_load_explicit(&r->connection,
						   memory_order_acquire);

	if (likely(connection == shm_qp(qp)->known_connection))
		return true;
	if (shm_is_reliable(qp) &&
	    qp->tx_psn != atomic_load_explicit(&r->rq_psn,
					       memory_order_relaxed) &&
	    (shm_qp(qp)->known_connection || qp->tx_psn == qp->attr.sq_psn))
		return false;
	shm_qp(qp)->known_connection = connection;
	return true;
}

/* Copies the data of the next entry. `*room`: how many bytes this run of transmission may
 * still copy; an entry that is larger is copied later, by parts. sq_lock is held. */
static enum onesided copy_now(struct hca_qp *qp, struct shm_link *l,
			      const struct hca_swqe *e, uint32_t *room,
			      enum ibv_wc_status *status)
{
	const struct shm_way way = { l, shm_qp(qp)->remote, shm_qp(qp)->remote };
	bool fits = e->length <= *room || unlikely(hca_op_is_word(e->opcode));
	const struct shm_part part = { 0, fits ? e->length : 0 };

	if (unlikely(!in_sequence(qp)) ||
	    shm_onesided(qp, e, &way, &part, status) == SHM_STEP_TO_TARGET)
		return ONESIDED_BY_TARGET;
	if (likely(fits)) {
		*room -= MIN(*room, e->length);
		return ONESIDED_DONE;
	}
	if (*status != IBV_WC_SUCCESS)
		return ONESIDED_DONE;
	shm_copy_start(qp);
	return ONESIDED_WAIT;
}

/* Carries out the next entry, an RDMA operation, ATOMIC or ATOMIC WRITE, at the initiator
 * as far as possible. sq_lock is held. */
static __attribute__((noinline)) enum onesided
run_onesided(struct hca_qp *qp, struct shm_link *l, const struct hca_swqe *e,
	     uint32_t *room)
{
	enum ibv_wc_status status = IBV_WC_RETRY_EXC_ERR;
	bool imm = e->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;

	if (unlikely(shm_copy_ended(qp, &status)))
		goto copied;
	if (unlikely(qp->tx_offset || !shm_onesided_reaches(qp, l, e)))
		return ONESIDED_BY_TARGET;
	if (qp->sq.next != qp->sq.tail || shm_qp(qp)->tx_taken) {
		/* Earlier messages are executed first. */
		shm_backlog_wait(l, qp);
		return ONESIDED_WAIT;
	}
	if (unlikely(hca_op_takes_data(e->opcode) &&
		     (!qp->attr.max_rd_atomic ||
		      (hca_op_is_atomic(e->opcode) &&
		       e->length != sizeof(uint64_t))))) {
		/* max_rd_atomic is 0, or the result of an atomic has no buffer of 8
		 * bytes: the entry can never be sent. */
		status = IBV_WC_LOC_QP_OP_ERR;
		goto complete;
	}
	if (likely(shm_remote_ready(qp) && !shm_peer_died(l))) {
		enum onesided step = copy_now(qp, l, e, room, &status);

		if (unlikely(step != ONESIDED_DONE))
			return step;
	}
copied:
	if (!shm_is_reliable(qp) && status != IBV_WC_LOC_PROT_ERR) {
		/* Refused or lost at the responder: not reported to the sender. */
		if (unlikely(status != IBV_WC_SUCCESS))
			HCA_COUNT_RARE(qp, TX_LOST, 1);
		if (status == IBV_WC_SUCCESS && imm)
			return ONESIDED_MESSAGE;
		status = IBV_WC_SUCCESS;
		goto complete;
	}
	if (status == IBV_WC_RETRY_EXC_ERR) { /* the peer QP is not in service */
		shm_retry_lost(qp);
		return ONESIDED_WAIT;
	}
	if (status == IBV_WC_SUCCESS && imm)
		return ONESIDED_MESSAGE;
	/* The entry is tried again when there is room to tell the responder, whose queue pair has
	 * to fail as well. */
	if (unlikely(status != IBV_WC_SUCCESS && status != IBV_WC_LOC_PROT_ERR) &&
	    !shm_send_fault(qp, l, status)) {
		shm_backlog_wait(l, qp);
		return ONESIDED_WAIT;
	}
complete:
	/* The sequence number stays, as no message was sent. */
	qp->sq.next++;
	hca_sq_complete(qp, status);
	return likely(status == IBV_WC_SUCCESS) ? ONESIDED_DONE : ONESIDED_WAIT;
}

void shm_lose_unreliable(struct hca_qp *qp)
{
	while (qp->sq.next != hca_sq_end(qp) &&
	       !(hca_sq_entry(&qp->sq, qp->sq.next)->flags & HCA_SWQE_LOCAL)) {
		HCA_COUNT_RARE(qp, TX_LOST, 1);
		qp->sq.next++;
		hca_sq_complete(qp, IBV_WC_SUCCESS);
	}
}

void shm_watch_drain(struct hca_qp *qp, struct shm_link *l)
{
	if (l && qp->sq.tail != qp->sq.drain_to && qp->tx_blocked == HCA_TX_OPEN)
		shm_backlog_wait(l, qp);
}

static void transmit_connected(struct hca_qp *qp)
{
	struct shm_link *l = shm_qp(qp)->link;
	bool sent = false, by_target = false;
	uint32_t room = SHM_COPY_AT_ONCE;

	while (qp->sq.next != hca_sq_end(qp)) {
		const struct hca_swqe *e = hca_sq_entry(&qp->sq, qp->sq.next);
		enum onesided step = ONESIDED_MESSAGE;
		int ret;

		if (unlikely(!l && !(e->flags & HCA_SWQE_LOCAL))) {
			if (!shm_is_reliable(qp))
				shm_wait_for_link(qp);
			else if (qp->sq.next == qp->sq.tail)
				shm_retry_lost(qp);
			return;
		}
		if (likely(shm_transmit_plain(qp, l, e))) {
			sent = true;
			continue;
		}
		if (unlikely(e->flags & HCA_SWQE_LOCAL)) {
			if (!shm_local(qp))
				break;
			continue;
		}
		/* Fence: its data may be the result of an earlier READ or atomic. */
		if (unlikely((e->flags & HCA_SWQE_FENCE) &&
			     qp->sq.next != qp->sq.tail)) {
			shm_backlog_wait(l, qp);
			break;
		}
		if (hca_op_is_rdma(e->opcode) || unlikely(hca_op_is_word(e->opcode))) {
			step = run_onesided(qp, l, e, &room);
			if (step == ONESIDED_WAIT)
				break;
			if (step == ONESIDED_DONE)
				continue;
		}
		by_target |= step == ONESIDED_BY_TARGET;
		hca_lock(&l->tx_lock);
		ret = unlikely(step == ONESIDED_BY_TARGET &&
			       !hca_op_is_word(e->opcode)) ?
			      put_request(qp, l, e, qp->sq.next) :
			      put_message(qp, l, e, qp->sq.next);
		/* An error waits until the earlier entries are complete. */
		if (unlikely(ret == -EAGAIN ||
			     (ret && qp->sq.next != qp->sq.tail)))
			shm_backlog_add(l, qp);
		hca_unlock(&l->tx_lock);
		if (unlikely((ret == -EFAULT || ret == -EPERM) &&
			     qp->sq.next == qp->sq.tail)) {
			qp->sq.next++;
			hca_sq_complete(qp, ret == -EFAULT ?
						    IBV_WC_LOC_PROT_ERR :
						    IBV_WC_LOC_QP_OP_ERR);
		}
		if (unlikely(ret))
			break;
		sent = true;
		if (qp->tx_offset)
			continue; /* further fragments of the same entry */
		qp->sq.next++;
		qp->tx_psn = (qp->tx_psn + 1) & HCA_PSN_MASK;
		if (!shm_is_reliable(qp))
			hca_sq_complete(qp, IBV_WC_SUCCESS);
	}
	if (sent)
		shm_kick(l);
	if (unlikely(sent && by_target))
		shm_wake_target(l);
	if (unlikely(hca_qp_state(qp) == IBV_QPS_SQD))
		shm_watch_drain(qp, l);
}

void shm_transmit(struct hca_qp *qp)
{
	if (unlikely(qp->ibv.qp_type == IBV_QPT_XRC_SEND))
		shm_transmit_xrc(qp);
	else
		transmit_connected(qp);
}

bool shm_send_fault(struct hca_qp *qp, struct shm_link *l,
		    enum ibv_wc_status status)
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
