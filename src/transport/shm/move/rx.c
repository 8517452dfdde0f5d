/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The receiving side of a link: slots into posted receives. plain.c reads the slots and
 * handles the usual message; all other messages are handled here.
 *
 * Runs inside poll_cq of any thread, or on the progress thread.
 */
#define LOG_ROOM "shm"
#include <errno.h>
#include <sys/uio.h>

#include "hca/event/async.h"
#include "hca/host/mapping.h"
#include "hca/limits.h"
#include "hca/memory/promising.h"
#include "hca/memory/window.h"
#include "hca/object/rq.h"
#include "hca/qp/address.h"
#include "hca/queue/flush.h"
#include "hca/queue/push.h"
#include "hca/queue/receive.h"
#include "hca/queue/scatter.h"
#include "hca/run/elide.h"
#include "hca/share/counters.h"
#include "hca/share/process.h"
#include "transport/shm/link/links.h"
#include "transport/shm/link/peer.h"
#include "transport/shm/link/state.h"
#include "transport/shm/move/ack.h"
#include "transport/shm/move/receive.h"
#include "transport/shm/reach/reach.h"
#include "transport/shm/ring/ring.h"
#include "util/container_of.h"
#include "util/log.h"

/* A slot's header, copied once, as the peer may change it at any time. */
struct message {
	struct shm_header h;
	struct shm_extent x; /* SHM_IN_DATA: copied once, too */
	struct shm_slot *slot;
	bool marked; /* the sender has to act and is woken if it sleeps */
};

static void mark(struct message *m, enum shm_status status, uint8_t timer)
{
	atomic_store_explicit(&m->slot->timer, timer, memory_order_relaxed);
	atomic_store_explicit(&m->slot->status, (uint8_t)status, memory_order_relaxed);
	m->marked = true;
}

/* Drops the message: the sender repeats it, or learns that it is not wanted. */
static void drop(struct hca_qp *qp, struct message *m)
{
	HCA_COUNT_RARE(qp, RX_DROPPED, 1);
	mark(m, SHM_DROPPED, 0);
}

static void refuse(struct hca_qp *qp, struct message *m, enum shm_status status)
{
	HCA_COUNT_RARE(qp, RX_NAKS_SENT, 1);
	mark(m, status, 0);
}

/* Copies a large message out of the sender's memory. */
static int pull_in(struct shm_link *l, const struct hca_qp *qp,
		   const struct hca_rwqe *e, const struct message *m)
{
	struct shm_pull pull[SHM_PULL_MAX];
	struct iovec local[HCA_MAX_SGE], remote[SHM_PULL_MAX];
	uint64_t left = m->h.length;
	bool kernel; /* not used: system calls copy in any case */
	int n, r = 0;

	shm_copy_once(pull, m->slot->payload, sizeof(pull));
	for (unsigned i = 0; i < SHM_PULL_MAX; i++) {
		uint64_t part = MIN(pull[i].length, left);

		if (part)
			remote[r++] = (struct iovec){
				(void *)(uintptr_t)pull[i].addr, part };
		left -= part;
	}
	if (left)
		return -EBADMSG;
	n = hca_sges_iov(qp->recv_pd, e->sge, e->num_sge, 0, m->h.length,
			IBV_ACCESS_LOCAL_WRITE, local, &kernel);
	if (n < 0)
		return n;
	switch (shm_access_copy(l, true, local, n, remote, r, m->h.length)) {
	case 0:
		return 0;
	case -EPERM:
		return -EPERM;
	default:
		/* `local` begins where the copy stopped: is our page missing there? */
		return hca_page_usable(local[0].iov_base, true) ? -EIO : -EFAULT;
	}
}

/* 0, -EFAULT (our buffer is not accessible), -EBADMSG (the peer broke the protocol),
 * -EIO (its data could not be read), -EPERM (nor can any of its memory). */
static int place(struct shm_link *l, struct hca_qp *qp,
		 const struct hca_rwqe *e, const struct message *m)
{
	if (m->h.op == SHM_WRITE_IMM || m->h.length == 0)
		return 0;
	if (m->h.flags & SHM_PULL)
		return pull_in(l, qp, e, m);
	if (!(m->h.flags & SHM_IN_DATA)) {
		if (m->h.length > SHM_SLOT_PAYLOAD)
			return -EBADMSG;
		return hca_rwqe_write(qp, e, 0, m->slot->payload, m->h.length);
	}
	return hca_rwqe_write(qp, e, m->x.at, l->rx->data + m->x.offset, m->x.length);
}

/*
 * Copies the extent of a message of more than a slot. False if it contradicts its flags:
 * the data are in the data area or pulled, not both; only a SEND or a request has several
 * parts, all in the data area; a part lies within the area and the message, the last
 * part ends the message, and a datagram has one part.
 */
static bool take_extent(struct message *m)
{
	struct shm_extent *x = &m->x;
	/* A WRITE or READ for us to carry out has parts like a SEND. */
	bool send = m->h.op == SHM_SEND || m->h.op == SHM_SEND_IMM ||
		    m->h.op == SHM_SEND_INV || m->h.op == SHM_WRITE ||
		    m->h.op == SHM_WRITE_DATA_IMM || m->h.op == SHM_READ;
	bool datagram = m->h.op == SHM_DATAGRAM || m->h.op == SHM_DATAGRAM_IMM;

	if (!(m->h.flags & SHM_IN_DATA))
		return send && !(m->h.flags & SHM_MORE);
	shm_copy_once(x, m->slot->payload, sizeof(*x));
	if ((m->h.flags & SHM_PULL) || !(send || datagram) ||
	    x->offset > SHM_DATA_BYTES || x->length > SHM_DATA_BYTES - x->offset ||
	    x->at > m->h.length || x->length > m->h.length - x->at)
		return false;
	if (m->h.flags & SHM_MORE)
		return send && x->length > 0 && x->at + x->length < m->h.length;
	return x->at + x->length == m->h.length && (send || x->at == 0);
}

/*
 * A completion of RoCE v2 says which header the datagram had (IBTA annex 17,
 * A17.4.5.1). The verbs have no field for it; adapters put it where InfiniBand
 * has the service level, and UCX drops what does not match.
 */
enum { ROCE_V2_IPV6 = 0x9, ROCE_V2_IPV4 = 0xa };

static void complete_recv(struct shm_link *l, struct hca_qp *qp, const struct hca_rwqe *e,
			  const struct message *m, enum ibv_wc_status status)
{
	static const uint8_t wc_flags[] = {
		[SHM_SEND_IMM] = IBV_WC_WITH_IMM,
		[SHM_WRITE_IMM] = IBV_WC_WITH_IMM,
		[SHM_DATAGRAM] = IBV_WC_GRH,
		[SHM_DATAGRAM_IMM] = IBV_WC_GRH | IBV_WC_WITH_IMM,
		[SHM_SEND_INV] = IBV_WC_WITH_INV,
	};
	struct ibv_wc wc = {
		.wr_id = e->wr_id,
		.status = status,
		.opcode = m->h.op == SHM_WRITE_IMM ? IBV_WC_RECV_RDMA_WITH_IMM :
						   IBV_WC_RECV,
		.byte_len = m->h.length,
		.qp_num = qp->ibv.qp_num,
		.src_qp = m->h.src_qpn,
		.wc_flags = wc_flags[m->h.op],
	};

	/* The immediate data, or the key that was invalidated. */
	if (wc.wc_flags & (IBV_WC_WITH_IMM | IBV_WC_WITH_INV))
		wc.imm_data = m->h.imm;
	if (unlikely(wc.wc_flags & IBV_WC_GRH))
		wc.sl = m->h.flags & SHM_IPV4 ? ROCE_V2_IPV4 : ROCE_V2_IPV6;
	if (likely(status == IBV_WC_SUCCESS)) {
		HCA_COUNT_RECEIVED(qp, m->h.op == SHM_WRITE_IMM, m->h.length);
		shm_tell_received(l, atomic_load_explicit(&l->rx_pos, memory_order_relaxed) + 1);
	} else {
		HCA_COUNT_RARE(qp, RX_ERRORS, 1);
	}
	hca_recv_done(qp);
	hca_cq_push(qp->recv_cq, &wc, m->h.flags & SHM_SOLICITED);
}

/* A receive that failed on our side: completion with error, QP to ERR. */
static void receive_failed(struct shm_link *l, struct hca_qp *qp, const struct hca_rwqe *e,
			   const struct message *m, enum ibv_wc_status status)
{
	hca_qp_failing(qp);
	complete_recv(l, qp, e, m, status);
	hca_unlock(&qp->recv->consume_lock);
	hca_qp_fail(qp);
}

static void receive_datagram(struct shm_link *l, struct hca_qp *qp, struct message *m)
{
	struct hca_rwqe *e;

	if (unlikely(m->h.length < HCA_GRH_BYTES ||
		     m->h.length > HCA_GRH_BYTES + HCA_UD_MTU ||
		     m->h.src_qpn > HCA_PSN_MASK)) {
		shm_link_violation(l, "malformed datagram");
		return;
	}
	/* Wrong Q_Key or no receive posted: dropped silently (9.8.3, 9.6.1). */
	if (qp->ibv.qp_type != IBV_QPT_UD || m->h.psn != qp->attr.qkey) {
		HCA_COUNT_RARE(qp, RX_DROPPED, 1);
		return;
	}
	hca_lock(&qp->recv->consume_lock);
	e = hca_recv_first(qp);
	if (!e) {
		hca_unlock(&qp->recv->consume_lock);
		HCA_COUNT_RARE(qp, RX_DROPPED, 1);
		return;
	}
	/* Too long. Any sender with the Q_Key can send such a datagram, so it must not put the
	 * QP into error: it is dropped, and the receive is for the next one (9.9.3, class D),
	 * also in a shared queue. */
	if (unlikely(m->h.length > hca_rwqe_room(e))) {
		hca_unlock(&qp->recv->consume_lock);
		HCA_COUNT_RARE(qp, RX_DROPPED, 1);
		return;
	}
	switch (place(l, qp, e, m)) {
	case 0:
		complete_recv(l, qp, e, m, IBV_WC_SUCCESS);
		/* The counter does not include the GRH. */
		HCA_COUNT(qp, RX_SEND_BYTES, -(uint64_t)HCA_GRH_BYTES);
		hca_unlock(&qp->recv->consume_lock);
		break;
	case -EFAULT:
		receive_failed(l, qp, e, m, IBV_WC_LOC_PROT_ERR);
		break;
	default:
		hca_unlock(&qp->recv->consume_lock);
		shm_link_violation(l, "malformed datagram");
		break;
	}
}

/* True if the message comes from the QP's peer, by the same service (9.6.1), and is in
 * sequence or the next fragment of the message in progress. */
static bool expected(struct shm_link *l, struct hca_qp *qp, const struct message *m)
{
	if (unlikely(!shm_from_peer(qp, l, m->h.src_qpn) ||
		     !(m->h.flags & SHM_UNRELIABLE) !=
			     (qp->ibv.qp_type != IBV_QPT_UC)))
		return false;
	/* UC: a first fragment sets the sequence, whatever was lost before it. */
	if (qp->ibv.qp_type == IBV_QPT_UC && m->x.at == 0) {
		atomic_store_explicit(&qp->rx_psn, m->h.psn & HCA_PSN_MASK,
				      memory_order_relaxed);
		qp->rx_offset = 0;
	}
	return m->h.psn == atomic_load_explicit(&qp->rx_psn,
					      memory_order_relaxed) &&
	       (m->x.at == 0 || m->x.at == qp->rx_offset);
}

/* consume_lock is held, and released. */
static void refuse_too_long(struct shm_link *l, struct hca_qp *qp, const struct hca_rwqe *e,
			    struct message *m)
{
	if (qp->ibv.qp_type == IBV_QPT_UC) {
		/* Dropped; the receive is for the next one (9.9.3, class D). */
		hca_unlock(&qp->recv->consume_lock);
		HCA_COUNT_RARE(qp, RX_DROPPED, 1);
		return;
	}
	refuse(qp, m, SHM_INVALID);
	receive_failed(l, qp, e, m, IBV_WC_LOC_LEN_ERR);
}

/*
 * Drops a message that is not expected; true if it was dropped. The check is repeated
 * with promises paused, as the message may be promised concurrently; see
 * hca_promise_pause().
 */
static bool drop_unless_expected(struct shm_link *l, struct hca_qp *qp, struct message *m)
{
	bool drop;

	hca_promise_pause(qp);
	drop = !expected(l, qp, m);
	if (drop)
		mark(m, SHM_DROPPED, 0);
	hca_promise_resume(qp);
	if (drop)
		HCA_COUNT_RARE(qp, RX_DROPPED, 1);
	return drop;
}

/* The receive for the message, with the queue's consume_lock held; or NULL, with the
 * message marked RNR and the lock not held. */
static __attribute__((noinline)) struct hca_rwqe *
first_or_not_ready(struct hca_qp *qp, struct message *m)
{
	struct hca_rwqe *e;

	hca_promise_pause(qp);
	hca_lock(&qp->recv->consume_lock);
	e = hca_recv_first(qp);
	if (!e) {
		hca_unlock(&qp->recv->consume_lock);
		mark(m, SHM_RNR, qp->attr.min_rnr_timer);
	}
	hca_promise_resume(qp);
	if (!e)
		HCA_COUNT_RARE(qp, RX_RNR_SENT, 1);
	return e;
}

static void receive_message(struct shm_link *l, struct hca_qp *qp, struct message *m)
{
	struct hca_rwqe *e;
	uint32_t bytes = m->h.length;
	int ret;

	if (qp->ibv.qp_type == IBV_QPT_UD) {
		drop(qp, m);
		return;
	}
	if (unlikely(!expected(l, qp, m)) && drop_unless_expected(l, qp, m))
		return;
	hca_lock(&qp->recv->consume_lock);
	e = hca_recv_first(qp);
	if (unlikely(!e)) {
		hca_unlock(&qp->recv->consume_lock);
		e = first_or_not_ready(qp, m);
		if (!e)
			return;
	}
	if (unlikely(m->h.op != SHM_WRITE_IMM && bytes > hca_rwqe_room(e))) {
		refuse_too_long(l, qp, e, m);
		return;
	}
	ret = place(l, qp, e, m);
	if (unlikely(ret == -EFAULT)) {
		refuse(qp, m, SHM_REMOTE_ERROR);
		receive_failed(l, qp, e, m, IBV_WC_LOC_PROT_ERR);
		return;
	}
	if (unlikely(ret)) {
		hca_unlock(&qp->recv->consume_lock);
		refuse(qp, m, ret == -EIO   ? SHM_REMOTE_ERROR :
			      ret == -EPERM ? SHM_NO_PULL : SHM_INVALID);
		if (ret == -EBADMSG)
			shm_link_violation(l, "malformed message");
		return;
	}
	if (unlikely(m->h.flags & SHM_MORE)) {
		qp->rx_offset = m->x.at + m->x.length;
		hca_recv_keep(qp);
		hca_unlock(&qp->recv->consume_lock);
		return;
	}
	qp->rx_offset = 0;
	/* No NAK for a key that is not to be invalidated: the sender gets no
	 * answer from a QP that is in error (9.9.6.3, class J). */
	if (unlikely(m->h.op == SHM_SEND_INV && hca_key_invalidate(qp, m->h.imm))) {
		mark(m, SHM_DROPPED, 0);
		receive_failed(l, qp, e, m, IBV_WC_MW_BIND_ERR);
		return;
	}
	complete_recv(l, qp, e, m, IBV_WC_SUCCESS);
	atomic_store_explicit(&qp->rx_psn, (m->h.psn + 1) & HCA_PSN_MASK, memory_order_release);
	hca_unlock(&qp->recv->consume_lock);
}

/* The responder's part of a refused access (9.9.3): the QP goes to the error state, and
 * the program gets an event. */
static void refuse_access(struct hca_qp *qp, enum ibv_wc_status status)
{
	HCA_COUNT_RARE(qp, RX_ACCESS_FAULTS, 1);
	/* Before the event: a program that reads the event finds the error state. */
	hca_qp_fail(qp);
	if (status != IBV_WC_REM_OP_ERR) /* the program has an error completion */
		hca_async_qp_event(qp, status == IBV_WC_REM_INV_REQ_ERR ?
					       IBV_EVENT_QP_REQ_ERR :
					       IBV_EVENT_QP_ACCESS_ERR);
}

static void refuse_request(struct hca_qp *qp, struct message *m, enum ibv_wc_status status)
{
	refuse(qp, m, status == IBV_WC_REM_INV_REQ_ERR ? SHM_INVALID :
		      status == IBV_WC_REM_ACCESS_ERR  ? SHM_REMOTE_ACCESS : SHM_REMOTE_ERROR);
}

/* A WRITE or READ for us to carry out, or a part of one. */
static void receive_request(struct shm_link *l, struct hca_qp *qp, struct message *m)
{
	bool reliable = qp->ibv.qp_type == IBV_QPT_RC || qp->ibv.qp_type == IBV_QPT_XRC_RECV;
	enum ibv_wc_status status;
	struct shm_extent part = m->x;

	if (qp->ibv.qp_type == IBV_QPT_UD || (m->h.op == SHM_READ && !reliable) ||
	    !expected(l, qp, m)) {
		drop(qp, m);
		return;
	}
	status = shm_request_execute(l, qp, m->slot, m->h.op, m->h.flags, m->h.length, &part);
	if (unlikely(status == IBV_WC_GENERAL_ERR)) {
		mark(m, SHM_INVALID, 0);
		shm_link_violation(l, "malformed request");
		return;
	}
	if (unlikely(status != IBV_WC_SUCCESS)) {
		refuse_request(qp, m, status);
		if (reliable) /* an unreliable one is dropped */
			refuse_access(qp, status);
		return;
	}
	if (m->h.flags & SHM_MORE) {
		qp->rx_offset = part.at + part.length;
		return;
	}
	if (m->h.op == SHM_WRITE_DATA_IMM) {
		m->h.op = SHM_WRITE_IMM;
		receive_message(l, qp, m);
		return;
	}
	qp->rx_offset = 0;
	atomic_store_explicit(&qp->rx_psn, (m->h.psn + 1) & HCA_PSN_MASK, memory_order_relaxed);
}

static void receive_atomic(struct shm_link *l, struct hca_qp *qp, struct message *m)
{
	enum ibv_wc_status status;

	if ((qp->ibv.qp_type != IBV_QPT_RC &&
	     qp->ibv.qp_type != IBV_QPT_XRC_RECV) ||
	    !expected(l, qp, m)) {
		drop(qp, m);
		return;
	}
	status = shm_atomic_execute(qp, m->slot, (enum shm_op)m->h.op);
	if (unlikely(status != IBV_WC_SUCCESS)) {
		refuse_request(qp, m, status);
		refuse_access(qp, status);
		return;
	}
	HCA_COUNT_RARE(qp, RX_ATOMICS, 1);
	atomic_store_explicit(&qp->rx_psn, (m->h.psn + 1) & HCA_PSN_MASK, memory_order_relaxed);
}

/* The responder for a message to an XRC SRQ, whose addresses it unpacks; NULL: dropped. */
static struct hca_qp *xrc_responder(struct shm_link *l, struct message *m)
{
	struct shm_xrc_header h = shm_xrc_header(m->h.dst_qpn, m->h.src_qpn, m->h.psn);

	m->h.src_qpn = h.src_qpn;
	m->h.psn = h.psn;
	return shm_xrc_responder(l, &h, m->h.flags & SHM_XRC_FIRST, m->h.timer);
}

struct delivery {
	struct shm_link *link;
	const struct message *message;
};

static void deliver_copy(struct hca_qp *qp, void *arg)
{
	const struct delivery *d = arg;
	struct message m = *d->message;

	if (shm_receives_in(hca_qp_state(qp)) &&
	    !(qp->no_self_multicast && m.h.src_qpn == qp->ibv.qp_num))
		receive_datagram(d->link, qp, &m);
}

/* A copy for each QP that is attached to the group in the datagram's header. */
static void receive_multicast(struct shm_link *l, struct message *m)
{
	struct delivery d = { l, m };
	uint8_t grh[HCA_GRH_BYTES];
	union ibv_gid group;
	const uint8_t *from = m->slot->payload;

	if (((m->h.flags & (SHM_IN_DATA | SHM_PULL | SHM_MORE)) &&
	     !take_extent(m)) ||
	    m->h.length < sizeof(grh)) {
		shm_link_violation(l, "malformed datagram");
		return;
	}
	if (m->h.flags & SHM_IN_DATA)
		from = l->rx->data + m->x.offset;
	shm_copy_once(grh, from, sizeof(grh));
	if (hca_grh_destination(grh, &group))
		hca_mcast_each(&group, deliver_copy, &d);
}

/* True if the message is received in this state; in the error state only a promised one. */
static bool receives_in(const struct hca_qp *qp, enum ibv_qp_state state,
			const struct message *m)
{
	if (state == IBV_QPS_ERR)
		return qp->ibv.qp_type == IBV_QPT_RC &&
		       (m->h.op == SHM_SEND || m->h.op == SHM_SEND_IMM) &&
		       hca_promise_kept(qp, m->h.psn);
	return shm_receives_in(state);
}

/* As drop_unless_expected(), if the QP's state does not allow the message. */
static bool drop_unless_accepted(struct hca_qp *qp, struct message *m)
{
	bool drop;

	hca_promise_pause(qp);
	drop = !receives_in(qp, hca_qp_state(qp), m);
	if (drop)
		mark(m, SHM_DROPPED, 0);
	hca_promise_resume(qp);
	return drop;
}

/* For a message to a group, an XRC SRQ, or a QP that does not receive: the QP that is to
 * receive it, or NULL: done. Not inlined, to keep the path of other messages short. */
static __attribute__((noinline, cold)) struct hca_qp *
other_destination(struct shm_link *l, struct hca_qp *qp, struct message *m)
{
	bool datagram = m->h.op == SHM_DATAGRAM || m->h.op == SHM_DATAGRAM_IMM;

	if (datagram && m->h.dst_qpn == HCA_QPN_MULTICAST) {
		receive_multicast(l, m);
		return NULL;
	}
	if (!datagram && (m->h.flags & SHM_XRC)) {
		qp = xrc_responder(l, m);
		if (qp)
			return qp;
	}
	if (qp && qp->counters) {
		if (!drop_unless_accepted(qp, m))
			return qp;
		HCA_COUNT_RARE(qp, RX_DROPPED, 1);
	} else {
		HCA_COUNT_PROCESS(UNKNOWN_QP, 1);
		mark(m, SHM_DROPPED, 0);
	}
	return NULL;
}

/* True if the length that a peer gives for a WRITE it carried out itself is possible; it
 * becomes the completion's byte_len. It cannot be more than the largest message, nor
 * anything but 0 if the peer cannot access our memory. */
static bool may_have_written(const struct shm_link *l, const struct message *m)
{
	return m->h.length == 0 ||
	       (m->h.length <= HCA_MAX_MSG_BYTES &&
		((l->lends & HCA_PEER_MEMORY) || atomic_load(&l->lent)));
}

static void dispatch(struct shm_link *l, struct hca_qp *qp, struct message *m)
{
	if ((m->h.flags & (SHM_IN_DATA | SHM_PULL | SHM_MORE)) && !take_extent(m)) {
		mark(m, SHM_INVALID, 0);
		shm_link_violation(l, "malformed message");
		return;
	}
	switch (m->h.op) {
	case SHM_SEND:
	case SHM_SEND_IMM:
	case SHM_SEND_INV:
		receive_message(l, qp, m);
		break;
	case SHM_WRITE_IMM:
		if (likely(may_have_written(l, m)))
			receive_message(l, qp, m);
		else
			shm_link_violation(l, "bytes that it cannot have written");
		break;
	case SHM_DATAGRAM:
	case SHM_DATAGRAM_IMM:
		receive_datagram(l, qp, m);
		break;
	case SHM_COMPARE_SWAP:
	case SHM_FETCH_ADD:
	case SHM_ATOMIC_WRITE:
		receive_atomic(l, qp, m);
		break;
	case SHM_WRITE:
	case SHM_WRITE_DATA_IMM:
	case SHM_READ:
		receive_request(l, qp, m);
		break;
	case SHM_ACCESS_FAULT:
		if ((qp->ibv.qp_type != IBV_QPT_RC &&
		     qp->ibv.qp_type != IBV_QPT_XRC_RECV) ||
		    !shm_from_peer(qp, l, m->h.src_qpn))
			break;
		refuse_access(qp, (enum ibv_wc_status)m->h.imm);
		break;
	default:
		shm_link_violation(l, "unknown message kind");
		break;
	}
}

/* Is it a message of the connection, in sequence? A report of a refused access counts as one. */
static bool establishes(struct shm_link *l, struct hca_qp *qp, const struct message *m)
{
	bool reliable = qp->ibv.qp_type != IBV_QPT_UC;

	return shm_from_peer(qp, l, m->h.src_qpn) &&
	       !(m->h.flags & SHM_UNRELIABLE) == reliable &&
	       (!reliable || m->h.op == SHM_ACCESS_FAULT ||
		m->h.psn == atomic_load_explicit(&qp->rx_psn, memory_order_relaxed));
}

bool shm_receive_other(struct shm_link *l, struct shm_slot *slot, struct shm_header h)
{
	struct message m = { .h = h, .slot = slot };
	struct hca_qp *qp = hca_qp_find(h.dst_qpn);
	enum ibv_qp_state state = qp ? hca_qp_state(qp) : IBV_QPS_RESET;

	if (unlikely(state != IBV_QPS_RTS)) {
		if (!receives_in(qp, state, &m))
			qp = other_destination(l, qp, &m);
		if (qp && !qp->established && hca_qp_state(qp) == IBV_QPS_RTR &&
		    establishes(l, qp, &m))
			hca_qp_established(qp);
	}
	if (likely(qp))
		dispatch(l, qp, &m);
	return m.marked;
}
